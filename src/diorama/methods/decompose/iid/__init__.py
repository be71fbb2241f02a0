"""The bundled decomposition networks."""
