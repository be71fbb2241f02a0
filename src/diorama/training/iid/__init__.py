"""The three decomposition networks: their data, losses and recipes."""
