"""A researcher of intrinsic images: my network and my saved predictions beside the classical algorithms, three protocols.
=======================================================================================================================

python examples/intrinsic_researcher.py     # on="mit_intrinsic(root=…)" scores the real objects
"""

import numpy as np
import torch

import diorama

WORLD = diorama.build("world", "mondrian(size=64)").object


class Smooth(torch.nn.Module):
    """Shading is the blurred image: (1, 3, h, w) linear light in, reflectance and shading out."""

    def forward(self, x):
        gray = x.mean(1, keepdim=True).clamp_min(1e-4)
        shading = torch.nn.functional.avg_pool2d(gray, 15, 1, 7, count_include_pad=False)
        return x / shading, shading


def by_hand(frames):
    """A method as a plain NumPy function of frames: every change of gray is shading."""
    image = frames[0].linear()
    gray = image.mean(axis=2, keepdims=True)
    return image / np.maximum(gray, 1e-4), gray


# Predictions of another program, in the order of the cases; here the truth, with S^0.25 leaked into the reflectance.
frames = WORLD.render([WORLD.scene_at(0, i)[1] for i in range(6)])
shading = np.stack([frame.truth["shading"] for frame in frames])
saved = {"reflectance": np.stack([f.truth["reflectance"] for f in frames]) * shading**0.25, "shading": shading**0.75}

result = diorama.evaluate(
    {"blur": Smooth(), "all shading": by_hand, "saved": saved, "Retinex": "retinex_color", "Weiss": "weiss"},
    on={"paintings": WORLD},
    by=["lmse", "si_mse", "dssim"],
    cases=6,
    controls=True,
)
print(result)
print(result.table.pivot_table(index="method", columns="metric", values="mean")[["lmse", "si_mse", "dssim"]].round(4))
result.report("table.tex")  # booktabs; .html is the page with the worst cases
result.plot.doses().savefig("doses.pdf")  # which score a planted error of known size gets
