"""A picture of what a learner has learnt so far: images, their reconstructions, then every latent moved alone."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from diorama.io.images import quantise
from diorama.methods.represent.burgess_network import Autoencoder, divergences

#: Pictures in a row, and the values that a latent takes, in standard deviations of the prior.
ACROSS, REACH = 8, 2.0
#: Screen pixels for each pixel, and between pictures.
LARGER, GAP = 2, 2


def traversals(net: Autoencoder, images: Tensor) -> np.ndarray:
    """uint8 (h, w, 3): some images, their reconstructions, and a row for each latent, largest KL first.

    A row decodes the first image's code with one latent going from −2 to 2.
    """
    with torch.inference_mode():
        mean, log_variance = net.encoder(images)
        rows = [images[:ACROSS], torch.sigmoid(net.decoder(mean[:ACROSS]))]
        for latent in divergences(mean, log_variance).mean(0).argsort(descending=True).tolist():
            moved = mean[:1].repeat(ACROSS, 1)
            moved[:, latent] = torch.linspace(-REACH, REACH, ACROSS)
            rows.append(torch.sigmoid(net.decoder(moved)))
    return _sheet([row.permute(0, 2, 3, 1).numpy() for row in rows])


def _sheet(rows: list[np.ndarray]) -> np.ndarray:
    side = rows[0].shape[1] * LARGER + GAP
    sheet = np.full((len(rows) * side + GAP, ACROSS * side + GAP, 3), 255, np.uint8)
    for i, row in enumerate(rows):
        for j, image in enumerate(row):
            y, x = i * side + GAP, j * side + GAP
            large = quantise(image, 8).repeat(LARGER, axis=0).repeat(LARGER, axis=1)
            sheet[y : y + side - GAP, x : x + side - GAP] = large
    return sheet
