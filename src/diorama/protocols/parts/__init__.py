"""Protocols on scenes made of parts: what removing a part does to the model, and what the explanation said."""
