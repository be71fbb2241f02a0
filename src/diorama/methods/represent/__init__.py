"""Representation learners and encoders: one file each."""
