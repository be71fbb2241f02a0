"""Worlds: one file each, staged or recorded."""
