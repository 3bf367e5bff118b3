"""Hooks of agent frameworks that ask hookyard."""

from ._shared import Halted, Place

__all__ = ["Halted", "Place"]
