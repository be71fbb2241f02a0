"""Disentanglement scores: docs/results/disentangle.md."""
