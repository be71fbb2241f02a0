"""Learners of codes with bundled weights: one file each, what they share in `trained.py`."""
