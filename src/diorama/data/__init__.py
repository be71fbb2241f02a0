"""Scenes as data: worlds in Python, folders for training loops, weak labels, pictures for teaching."""

from diorama.data.weak import labelled, query, sharing

__all__ = ["labelled", "query", "sharing"]
