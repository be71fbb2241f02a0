"""Intrinsic-image algorithms: reflectance and shading from one image or several."""
