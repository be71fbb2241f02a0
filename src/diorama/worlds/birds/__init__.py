"""Staged birds in fifty classes."""
