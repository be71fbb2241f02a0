"""Your own training loop on a folder of staged scenes: train on confounded images, test on others too.
====================================================================================================

    diorama render "candle(width=64, samples=8)" -n 1500 --layout dataset -o candle
    python examples/own_training_loop.py candle object

The network learns a factor from the confounded images alone (cubes are red or blue, …) and is tested on confounded and on
other images. With these 1,500 images its accuracy is .48 on confounded images and .11 on the others; chance is .20. It has
learnt colours.
"""

import csv
import sys
from pathlib import Path

import cv2
import numpy as np
import torch
from torch import nn

import diorama


def read(folder, rows, factor, values):
    """Images (n, 3, h, w) in [0, 1], and the index of each image's value of the factor."""
    images = np.stack([cv2.imread(str(folder / row["file"]))[:, :, ::-1] for row in rows])
    return torch.from_numpy(images).permute(0, 3, 1, 2) / 255, torch.tensor([values.index(row[factor]) for row in rows])


def main(folder, factor, epochs=20):
    """Train on the confounded part, test inside and outside of it."""
    rows = list(csv.DictReader((folder / "labels.csv").open()))
    values = sorted({row[factor] for row in rows})
    training = [row for row in rows if row["split"] == "train" and row["confounded"] == "1"]
    x, y = read(folder, training, factor, values)
    torch.manual_seed(0)
    blocks = [(nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU()) for a, b in ((3, 16), (16, 32), (32, 64))]
    net = nn.Sequential(*sum(blocks, ()), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, len(values)))
    optimizer = torch.optim.AdamW(net.parameters(), 3e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(32):
            loss = nn.functional.cross_entropy(net(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    net.eval()
    for name, mark in (("inside the confounded part", "1"), ("outside", "0")):
        test, labels = read(
            folder, [r for r in rows if r["split"] == "test" and r["confounded"] == mark], factor, values
        )
        print(f"{name}:", diorama.metrics.accuracy(net(test).detach(), labels))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
