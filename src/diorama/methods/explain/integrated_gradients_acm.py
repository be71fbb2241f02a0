"""Integrated Gradients as in the Attribution Confusion Matrix: 30 steps from black, summed over channels."""

from dataclasses import dataclass

from diorama.core.bounds import Count
from diorama.methods.explain.gradients import Channels
from diorama.methods.explain.integrated_gradients import IntegratedGradients


@dataclass(frozen=True, slots=True)
class IntegratedGradientsAcm(IntegratedGradients):
    """IG of Arias-Duart et al.: 30 steps, black baseline, signed sum over channels.

    Their script takes the image itself as the baseline when it runs on a CPU, which gives zeros; this one never does.
    """

    cite = ("sundararajan2017", "ariasduart2023")

    steps: Count = 30
    channels: Channels = "sum"
