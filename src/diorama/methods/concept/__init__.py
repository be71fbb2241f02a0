"""Trainers of concept activation vectors: one file each."""
