"""Reports: views of rows and manifests; nothing here knows a world, a model or a method."""
