"""Absolute Integrated Gradients, "IG abs." of FunnyBirds: the absolute value of Integrated Gradients."""

from dataclasses import dataclass

from diorama.methods.explain.integrated_gradients import IntegratedGradients


@dataclass(frozen=True, slots=True)
class IntegratedGradientsAbs(IntegratedGradients):
    """|IG| of every channel, taken before any sum: how much a pixel matters, for or against the class."""

    absolute: bool = True
