"""Reports: views of rows and manifests; nothing here depends on a particular world, model or method."""
