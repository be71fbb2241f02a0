"""Small models with weights made on the spot, for tests that need a network but no training."""

from functools import cached_property

import numpy as np


class Tiny:
    """A convolution, a ReLU, a pool and a linear head with fixed random weights; `size` pixels, 50 classes."""

    classes = 50
    encoding = "srgb"
    cam_layer = "conv"

    def __init__(self, size: int = 64, seed: int = 0, bias: bool = True):
        self.size, self.seed, self.bias = size, seed, bias

    @cached_property
    def module(self):
        import torch

        generator = torch.Generator().manual_seed(self.seed)
        conv, head = torch.nn.Conv2d(3, 8, 5, 2, bias=self.bias), torch.nn.Linear(8 * 9, 50, bias=self.bias)
        net = torch.nn.Sequential()
        for name, part in {"conv": conv, "relu": torch.nn.ReLU(), "pool": torch.nn.AdaptiveAvgPool2d(3)}.items():
            net.add_module(name, part)
        net.add_module("flat", torch.nn.Flatten())
        net.add_module("head", head)
        for p in net.parameters():
            torch.nn.init.normal_(p, std=0.3, generator=generator)
        return net.eval().requires_grad_(False)

    def logits(self, images: np.ndarray) -> np.ndarray:
        import torch

        with torch.no_grad():
            return self.module(torch.from_numpy(images.transpose(0, 3, 1, 2).copy())).numpy()


class Linear(Tiny):
    """f(x) = W x, for which every method is known in closed form."""

    @cached_property
    def module(self):
        import torch

        head = torch.nn.Linear(3 * self.size**2, 50, bias=False)
        torch.nn.init.normal_(head.weight, generator=torch.Generator().manual_seed(self.seed))
        return torch.nn.Sequential(torch.nn.Flatten(), head).eval().requires_grad_(False)


class Two(Tiny):
    """The same with a head for two classes."""

    classes = 2

    @cached_property
    def module(self):
        import torch

        net, head = Tiny.module.func(self), torch.nn.Linear(50, 2)
        torch.nn.init.normal_(head.weight, generator=torch.Generator().manual_seed(self.seed))
        net.add_module("two", head)
        return net.eval().requires_grad_(False)


class Broken(Tiny):
    """Logits that are not numbers."""

    def logits(self, images):
        return np.full((len(images), 50), np.nan)
