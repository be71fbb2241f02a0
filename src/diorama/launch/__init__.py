"""Launchers: each only starts work(run, i, n)."""
