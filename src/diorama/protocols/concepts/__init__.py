"""Protocols on concepts: how a model or a decomposition answers to them."""
