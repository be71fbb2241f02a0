"""How the bundled networks were trained, and how anybody's network is fitted to a staged world."""
