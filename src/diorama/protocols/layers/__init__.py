"""Protocols that judge reflectance and shading."""
