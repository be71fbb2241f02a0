"""Concept sensitivity: docs/results/concepts.md."""
