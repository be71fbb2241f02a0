"""Staged objects in panoramas, with the causes behind them."""
