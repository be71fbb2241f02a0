"""Pictures for galleries: signed heat maps over an image, and part maps in distinguishable colours."""

import numpy as np

#: Colour-blind-safe colours for parts, repeated; 0 is the empty ground.
_COLOURS = np.array(
    [
        [0.93, 0.93, 0.93],
        [0.62, 0.62, 0.62],
        [0.90, 0.62, 0.00],
        [0.34, 0.71, 0.91],
        [0.00, 0.62, 0.45],
        [0.94, 0.89, 0.26],
        [0.00, 0.45, 0.70],
        [0.84, 0.37, 0.00],
        [0.80, 0.47, 0.65],
        [0.45, 0.20, 0.50],
    ]
)


#: Colours of positive and negative evidence.
Colours = tuple[tuple[float, float, float], tuple[float, float, float]]
RED_BLUE: Colours = ((0.79, 0.0, 0.13), (0.02, 0.30, 0.69))
PURPLE_ORANGE: Colours = ((0.33, 0.15, 0.53), (0.90, 0.38, 0.0))


def diverging(heat: np.ndarray, image: np.ndarray, colours: Colours = RED_BLUE) -> np.ndarray:
    """Positive evidence red, negative blue, over a pale gray image; full strength at the 99.5th percentile."""
    heat = heat.sum(axis=2) if heat.ndim == 3 else heat
    top = max(float(np.quantile(np.abs(heat), 0.995)), 1e-12)
    strength = np.clip(heat / top, -1, 1)[:, :, None]
    ground = 0.75 + 0.25 * image.mean(axis=2, keepdims=True)
    colour = np.where(strength > 0, np.array(colours[0]), np.array(colours[1]))
    return ground * (1 - np.abs(strength)) + colour * np.abs(strength)


def coloured_parts(parts: np.ndarray) -> np.ndarray:
    """A part map in colours; ids from ten on (background objects) share pale ones."""
    parts = np.asarray(parts).astype(int)
    shown = _COLOURS[np.where(parts < 10, parts, 0)]
    return np.where(parts[:, :, None] >= 10, 0.8 * np.ones(3), shown)
