"""Staged objects on a white table."""
