"""How each demo checkpoint is built: its size, how long it trains and what it mostly sees."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Everything that determines one checkpoint."""

    name: str
    hidden_size: int
    """Width of the model, a multiple of the head size 32."""
    layers: int
    steps: int
    mix: Mapping[str, float]
    """Weight of each task in the training texts."""
    batch_size: int = 128
    learning_rate: float = 4e-3
    """The peak of the one-cycle schedule."""
    seed: int = 1


_EVENLY = {"sum": 1.0, "letter": 1.0, "count": 1.0, "unscramble": 1.0}
RECIPES: tuple[Recipe, ...] = ()
