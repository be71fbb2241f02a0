"""X-DNN's own explanation: Input × Gradient, which is Integrated Gradients there because the network has no bias."""

from dataclasses import dataclass
from typing import Any

from diorama.core.inherent import Homogeneous, inside
from diorama.methods.explain.input_x_gradient import InputXGradient


@dataclass(frozen=True, slots=True)
class Xdnn(InputXGradient):
    """x · ∂f_target/∂x of a network with f(αx) = α·f(x), signed, per channel; its sum is the logit."""

    example = "diorama run -w birds -M birds_xdnn -m {} -p single_deletion"
    cite = ("hesse2021",)

    def refuses(self, model: Any) -> str:
        """Why a network is refused that is not homogeneous; empty for others."""
        return "" if inside(model.module, Homogeneous) else "xdnn needs a network without biases (birds_xdnn)"
