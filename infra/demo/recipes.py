"""The recipe of each demo checkpoint: its size, how long it trains and what it mostly sees."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from winnow.infra.demo.data import TrainingText, training_texts
from winnow.infra.demo.pairs import judged_texts
from winnow.infra.demo.problems import TASKS

CONTEXT = 128
"""The most tokens that a checkpoint takes, prompt and answer together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Everything that determines one checkpoint."""

    name: str
    """Of the checkpoint's folder, and of the model in the campaign."""
    hidden_size: int
    """Width of the model; the width of its feed-forward layers is twice that."""
    layers: int
    heads: int
    """Attention heads, each of size 32 (the smallest that vLLM runs on a CPU); an even number."""
    steps: int
    mix: Mapping[str, float]
    """Weight of each task in the training texts."""
    batch_size: int = 96
    learning_rate: float = 0.02
    """The highest rate, for the weight matrices."""
    seed: int = 1

    @property
    def cost(self) -> int:
        """Training time in arbitrary units, to start the longest first."""
        return self.hidden_size * self.layers * self.steps * self.batch_size

    def texts(self) -> Iterator[TrainingText]:
        """The texts that the checkpoint learns from, without end; the same on every call."""
        return training_texts(self.seed, self.mix)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRecipe(Recipe):
    """A checkpoint that learns to prefer one of two answers."""

    mix: Mapping[str, float] = field(default_factory=dict)
    """Not used: pairs are of all tasks equally often."""

    def texts(self) -> Iterator[TrainingText]:
        """Prompts with two answers, and verdicts on them."""
        return judged_texts(self.seed)


_EVENLY = {task: 1.0 for task in TASKS} | {"sum": 2.0}  # sums take longest to learn

RECIPES = (
    Recipe(name="sprout", hidden_size=32, layers=1, heads=2, steps=250, mix=_EVENLY),
    Recipe(
        name="numbers", hidden_size=64, layers=2, heads=4, steps=600, mix=_EVENLY | {"sum": 4.0, "count": 2.0}
    ),
    Recipe(
        name="letters",
        hidden_size=64,
        layers=2,
        heads=4,
        steps=600,
        mix=_EVENLY | {"letter": 3.0, "unscramble": 3.0},
    ),
    Recipe(name="medium", hidden_size=64, layers=2, heads=4, steps=700, mix=_EVENLY),
    Recipe(name="large", hidden_size=96, layers=2, heads=6, steps=800, learning_rate=0.012, mix=_EVENLY),
)
"""The five checkpoints of the demo, from hopeless to good; two of them know some tasks better than others."""

DUELLISTS = tuple(recipe for recipe in RECIPES if recipe.name in ("medium", "large"))
"""The checkpoints that meet in the demo's duels."""

CERTIFIED = tuple(recipe for recipe in reversed(RECIPES) if recipe.name != "numbers")
"""The checkpoints that the demo certifies, from the dearest on; the first is its autoevaluator too."""

ROUTED = tuple(recipe for recipe in RECIPES if recipe.name in ("sprout", "numbers", "letters"))
"""The checkpoints that the demo routes prompts to: none of them is good at every task."""

JUDGE = JudgeRecipe(name="judge", hidden_size=64, layers=2, heads=4, steps=500, batch_size=64)
"""The checkpoint that judges them."""

QUICK_TASK = "letter"
QUICK = (
    Recipe(name="novice", hidden_size=32, layers=1, heads=2, steps=60, batch_size=64, mix={QUICK_TASK: 1.0}),
    Recipe(
        name="skilled", hidden_size=64, layers=2, heads=4, steps=100, batch_size=64, mix={QUICK_TASK: 1.0}
    ),
)
"""The checkpoints of the quick demo: both learn one task in seconds, and the second is larger."""
