"""Scenes as data: a world in Python, a folder for a training loop of one's own, weak labels, a teacher's pictures."""

from diorama.data.weak import labelled, query, sharing

__all__ = ["labelled", "query", "sharing"]
