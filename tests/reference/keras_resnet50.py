"""The first Keras ResNet-50, written as its model.json reads: layer by layer, by Keras' names, on BGR bytes minus a mean."""

import numpy as np
import torch
from torch.nn import functional

BLOCKS = {2: "abc", 3: "abcd", 4: "abcdef", 5: "abc"}
MEAN_BGR = (103.939, 116.779, 123.68)


def keras_resnet50(arrays: dict[str, np.ndarray], rgb: np.ndarray) -> np.ndarray:
    """Logits of images (n, h, w, 3), RGB in [0, 1]; `arrays` as Keras stores them."""

    def conv(x, name, stride=1, pad=0):
        kernel = torch.from_numpy(arrays[f"{name}/kernel"].transpose(3, 2, 0, 1).copy())
        return functional.conv2d(x, kernel, torch.from_numpy(arrays[f"{name}/bias"]), stride, pad)

    def norm(x, name):
        gamma, beta, mean, variance = (
            torch.from_numpy(arrays[f"{name}/{f}"])[:, None, None]
            for f in ("gamma", "beta", "moving_mean", "moving_variance")
        )
        return gamma * (x - mean) / torch.sqrt(variance + 1e-3) + beta

    bgr = rgb[:, :, :, ::-1] * 255 - np.array(MEAN_BGR, np.float32)
    x = functional.pad(torch.from_numpy(bgr.transpose(0, 3, 1, 2).astype(np.float32)), (3, 3, 3, 3))
    x = functional.pad(torch.relu(norm(conv(x, "conv1", 2), "bn_conv1")), (1, 1, 1, 1))
    x = functional.max_pool2d(x, 3, 2)
    for stage, letters in BLOCKS.items():
        for letter in letters:
            place, stride = f"{stage}{letter}_branch", 2 if stage > 2 and letter == "a" else 1
            inner = torch.relu(norm(conv(x, f"res{place}2a", stride), f"bn{place}2a"))
            inner = torch.relu(norm(conv(inner, f"res{place}2b", pad=1), f"bn{place}2b"))
            inner = norm(conv(inner, f"res{place}2c"), f"bn{place}2c")
            skip = norm(conv(x, f"res{place}1", stride), f"bn{place}1") if letter == "a" else x
            x = torch.relu(inner + skip)
    return x.mean(dim=(2, 3)).numpy() @ arrays["fc1000/kernel"] + arrays["fc1000/bias"]
