"""Benchmarks: ratios against peers, both sides measured in one run."""
