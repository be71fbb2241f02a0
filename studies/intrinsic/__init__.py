"""Intrinsic images: docs/results/intrinsic.md."""
