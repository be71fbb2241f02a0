"""Protocols that judge codes: disentanglement scores."""
