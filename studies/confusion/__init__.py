"""Mosaics: docs/results/confusion.md."""
