"""Recipes for autoencoders of sprites: what `diorama train beta_vae` does, by the loop that all recipes share.

The loss of an image is reconstruction (Bernoulli, summed over pixels) + β·KL; codes are sampled with noise that is a
function of (seed, step), so that a training that was interrupted ends with the same weights. Sprites are drawn when a
batch needs them. The checkpoint is one for the encoder `burgess_vae(checkpoint=…)`.
"""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diorama.core.scene import rng
from diorama.io.digests import file_digest
from diorama.io.locks import locked
from diorama.io.store import write_json, write_whole
from diorama.models.weights import require_torch
from diorama.training.schedule import Schedule
from diorama.training.staged import Progress, Staged
from diorama.worlds.sprites import Sprites

if TYPE_CHECKING:
    from torch import Tensor, nn

    from diorama.training.loop import State


@dataclass(frozen=True, slots=True)
class VaeRecipe:
    """An autoencoder of sprites: `images` in an epoch, `test` images held out for the card; the code has `latents`."""

    name: str
    schedule: Schedule
    beta: float = 4.0
    latents: int = 10
    images: int = 64_000
    test: int = 2_000


_PLAIN = Schedule(sizes=(64,) * 6, rate=1e-3, decay=0.0, shift=0, flip=False)
VAE_RECIPES: dict[str, VaeRecipe] = {"beta_vae": VaeRecipe("beta_vae", _PLAIN)}


class Drawn:
    """Sprites of the world's fixed shuffle from `first` on, as uint8 images (n, 64, 64, 3) drawn at every look."""

    def __init__(self, first: int, count: int) -> None:
        self.world, self.first, self.count = Sprites(), first, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: Any) -> np.ndarray:
        places = np.atleast_1d(np.arange(self.count)[index]) + self.first
        frames = self.world.render([self.world.scene(int(i))[1] for i in places])
        return np.stack([frame.image for frame in frames]).astype(np.uint8) * 255


def drawn(first: int, count: int) -> Staged:
    """Sprites as the training loop takes them; there is nothing to aim at but the image itself."""
    return Staged(Drawn(first, count), np.zeros(count, int), np.zeros((count, 1), bool))  # type: ignore[arg-type]


def train_vae(recipe: VaeRecipe, out: Path, progress: Progress) -> Path:
    """Train, judge on held-out sprites, write checkpoint and card; continues what is there."""
    require_torch(f"training {recipe.name}")
    import torch

    from diorama.training.loop import Task, fit

    with locked(out / "lock"):
        torch.manual_seed(recipe.schedule.seed)
        net = sampling(recipe)
        train, held = drawn(0, recipe.images), drawn(recipe.images, recipe.test)
        task = Task(net, elbo(recipe.beta), train, held, recipe.schedule, judge=lambda n, d: -_losses(n, d).sum())
        return _finish(recipe, fit(task, out, progress), held, out)


def sampling(recipe: VaeRecipe) -> nn.Module:
    """The network with the noise of its steps; a number of the step is part of its state."""
    import torch
    from torch import nn

    from diorama.methods.represent.burgess_network import Autoencoder

    class Sampling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = Autoencoder(recipe.latents)
            self.step: Tensor
            self.register_buffer("step", torch.zeros((), dtype=torch.int64))

        def forward(self, images: Tensor) -> tuple[Tensor, ...]:
            x = images[:, :1]
            if not self.training:
                return (*self.net(x), x)
            noise = rng(recipe.schedule.seed, "noise", int(self.step)).standard_normal(
                (len(x), recipe.latents), np.float32
            )
            self.step += 1
            return (*self.net(x, torch.from_numpy(noise)), x)

    return Sampling()


def elbo(beta: float) -> Any:
    """Reconstruction + β·KL, the mean over a batch."""
    from diorama.methods.represent.burgess_network import divergence, reconstruction_loss

    def loss(output: tuple[Tensor, ...], targets: Tensor) -> Tensor:
        logits, mean, log_variance, x = output
        return (reconstruction_loss(logits, x) + beta * divergence(mean, log_variance)).mean()

    return loss


def _losses(net: nn.Module, data: Staged, batch: int = 100) -> np.ndarray:
    """Mean reconstruction loss and KL of images, with means for codes."""
    import torch

    from diorama.methods.represent.burgess_network import divergence, reconstruction_loss
    from diorama.training.loop import to_tensor

    net.eval()
    found = []
    with torch.inference_mode():
        for i in range(0, len(data), batch):
            logits, mean, log_variance, x = net(to_tensor(data.images[np.arange(i, min(i + batch, len(data)))]))
            found.append(np.stack([reconstruction_loss(logits, x).numpy(), divergence(mean, log_variance).numpy()]))
    return np.concatenate(found, axis=1).mean(axis=1)


def _finish(recipe: VaeRecipe, state: State, held: Staged, out: Path) -> Path:
    """The averaged weights as float16 with the card; the losses are those of the file as written."""
    import torch
    from safetensors.torch import load_file, save

    path, inner = out / f"{recipe.name}.safetensors", state.mean.get_submodule("net")
    write_whole(path, save({k: v.contiguous().half() for k, v in inner.state_dict().items()}))
    inner.load_state_dict(load_file(path))
    reconstruction, divergence = _losses(state.mean, held)
    write_json(
        path.with_suffix(".json"),
        {
            "name": recipe.name,
            "world": "sprites, dSprites re-rendered; held-out images were not trained on",
            "recipe": asdict(recipe),
            "reconstruction": float(reconstruction),
            "divergence": float(divergence),
            "history": state.history,
            "seconds": round(sum(epoch["seconds"] for epoch in state.history)),
            "bytes": path.stat().st_size,
            "digest": file_digest(path),
            "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
        },
    )
    return path
