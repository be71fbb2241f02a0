"""Protocols: one file per published way of scoring."""
