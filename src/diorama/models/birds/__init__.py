"""The bundled classifiers of staged birds."""
