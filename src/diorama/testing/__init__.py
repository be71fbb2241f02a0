"""The public contract suite: checks for worlds, models, methods and protocols, bundled ones and those of outsiders."""
