"""Stage small scenes whose truth is known, change one thing, and score what a vision model says about itself."""

__version__ = "0.1.0"
