"""The public contract suite: what a world, method or protocol must hold, for outsiders and for ourselves."""
