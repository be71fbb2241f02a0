"""The study of concept sensitivity: docs/results/concepts.md."""
