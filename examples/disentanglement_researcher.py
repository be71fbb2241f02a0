"""A researcher of representations: is my encoder more disentangled than PCA, and does the metric detect an error?
===============================================================================================================

python examples/disentanglement_researcher.py     # small samples; papers use mig(frames=10000)
"""

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.random_projection import GaussianRandomProjection

import diorama


class Encoder(torch.nn.Module):
    """Your own encoder: (n, 3, h, w) in, codes out; a VAE may have encode(x) -> mean, log variance instead."""

    def forward(self, x):
        bright = x.mean(1)
        total = bright.sum((1, 2)).clamp_min(1e-6)
        rows, columns = (torch.linspace(0, 1, side, device=x.device) for side in bright.shape[1:])
        at_row = (bright.sum(2) * rows).sum(1) / total
        at_column = (bright.sum(1) * columns).sum(1) / total
        return torch.stack([total, at_row, at_column], dim=1)


world = diorama.build("world", "sprites(counts=(3, 3, 4, 8, 8))").object
noise = np.random.default_rng(0).normal(size=(600, 5))  # codes computed elsewhere, one row for each frame in order

result = diorama.evaluate(
    {"moments (mine)": Encoder(), "PCA": PCA(5), "projection": GaussianRandomProjection(5), "noise": noise},
    on=world,
    by=["mig(frames=300)", "irs(frames=300)"],
    cases=2,
    controls=True,
)
print(result)
codes = result.case("moments (mine)", 0)  # codes.answer (300, 3), codes.truth["factors"] (300, 5)
print("correlation of each code with each factor, absolute:")
print(abs(np.corrcoef(codes.answer.T, codes.truth["factors"].T)[:3, 3:]).round(2))
result.plot.methods().savefig("methods.pdf")
