"""How often the full tables ask a network, counted on two birds at two settings and continued along the straight line."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: What is asked at full size: birds, networks, and each explainer with the parameter that its cost is linear in.
BIRDS, NETWORKS = 2500, 8
EXPLAINERS: dict[str, tuple[str, int, int, int]] = {
    "rise": ("masks", 16, 32, 6000),
    "lime": ("samples", 16, 32, 1000),
    "integrated_gradients": ("steps", 4, 8, 50),
    "input_x_gradient": ("", 0, 0, 0),
    "grad_cam": ("", 0, 0, 0),
}
PROTOCOLS = ["single_deletion", "funnybirds"]


def passes() -> dict[str, float]:
    """Images forward and backward per bird, for every explainer at the size of its paper, under both protocols."""
    found: dict[str, float] = {}
    for name, (parameter, small, large, full) in EXPLAINERS.items():
        if not parameter:
            forward, backward = _count(name)
        else:
            low, high = _count(f"{name}({parameter}={small})"), _count(f"{name}({parameter}={large})")
            slope = [(h - w) / (large - small) for w, h in zip(low, high, strict=True)]
            forward, backward = (w + s * (full - small) for w, s in zip(low, slope, strict=True))
        found |= {f"{name}_forward_per_bird": forward, f"{name}_backward_per_bird": backward}
    return found


def _count(method: str, birds: int = 8) -> tuple[float, float]:
    """Images per bird that pass through birds_cnn, and those of them through which a gradient comes back."""
    from diorama.core.plan import Plan
    from diorama.core.run import create
    from diorama.launch.local import launch

    with tempfile.TemporaryDirectory() as folder, _Counted() as counted:
        plan = Plan(["birds"], [method], PROTOCOLS, ["birds_cnn"], cases=birds)
        launch(create(Path(folder), plan), 1)
    return counted.forward / birds, counted.backward / birds


class _Counted:
    """Counts images at the first convolution of whatever network runs."""

    def __enter__(self) -> "_Counted":
        import torch

        self.forward = self.backward = 0
        self._handle: Any = torch.nn.modules.module.register_module_forward_hook(self._seen())
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.remove()

    def _seen(self) -> Callable[..., None]:
        import torch

        def seen(module: Any, given: Any, made: Any) -> None:
            if isinstance(module, torch.nn.Conv2d) and module.in_channels == 3:
                self.forward += len(made)
                if made.requires_grad:
                    made.register_hook(lambda gradient: self._back(len(gradient)))

        return seen

    def _back(self, count: int) -> None:
        self.backward += count
