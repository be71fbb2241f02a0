"""Mosaics of anything that has a label."""
