"""Fuzzers: hostile specs, plans, options, run directories and data, held against one rule (see harness.py)."""
