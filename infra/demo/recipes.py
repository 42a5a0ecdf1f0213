"""Recipes of the demo's checkpoints: size, length of training, and mix of training tasks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from winnow.infra.demo.data import TrainingText, training_texts
from winnow.infra.demo.pairs import judged_texts
from winnow.infra.demo.problems import TASKS

CONTEXT = 128
"""Context length of the checkpoints: maximum tokens of prompt and answer together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All settings that determine a checkpoint."""

    name: str
    """Name of the checkpoint's folder, and of the model in the campaign."""
    hidden_size: int
    """Width of the model; its feed-forward layers are twice as wide."""
    layers: int
    heads: int
    """Even number of attention heads, each of size 32, the smallest size that vLLM supports on a CPU."""
    steps: int
    mix: Mapping[str, float]
    """Task -> its weight in the training texts."""
    batch_size: int = 96
    learning_rate: float = 0.02
    """Maximum learning rate, for the weight matrices."""
    seed: int = 1

    @property
    def cost(self) -> int:
        """Estimated training time in arbitrary units."""
        return self.hidden_size * self.layers * self.steps * self.batch_size

    def texts(self) -> Iterator[TrainingText]:
        """Yield the training texts without end; the same ones in every call."""
        return training_texts(self.seed, self.mix)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRecipe(Recipe):
    """A checkpoint that learns to prefer one of two answers."""

    mix: Mapping[str, float] = field(default_factory=dict)
    """Not used, because all tasks are equally frequent."""

    def texts(self) -> Iterator[TrainingText]:
        """Yield prompts with two answers, and the verdicts, without end."""
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
"""The demo's five checkpoints, from very poor to good; "numbers" and "letters" are trained for some tasks."""

DUELLISTS = tuple(recipe for recipe in RECIPES if recipe.name in ("medium", "large"))
"""Candidates of the demo's duels."""

CERTIFIED = tuple(recipe for recipe in reversed(RECIPES) if recipe.name != "numbers")
"""Candidates of the demo's certify campaign, largest first; the first is also the autoevaluator."""

ROUTED = tuple(recipe for recipe in RECIPES if recipe.name in ("sprout", "numbers", "letters"))
"""Candidates of the demo's route campaign; none of them is good at every task."""

JUDGE = JudgeRecipe(name="judge", hidden_size=64, layers=2, heads=4, steps=500, batch_size=64)
"""The judge of the demo's duels."""

QUICK_TASK = "letter"
QUICK = (
    Recipe(name="novice", hidden_size=32, layers=1, heads=2, steps=60, batch_size=64, mix={QUICK_TASK: 1.0}),
    Recipe(
        name="skilled", hidden_size=64, layers=2, heads=4, steps=100, batch_size=64, mix={QUICK_TASK: 1.0}
    ),
)
"""Candidates of the quick demo; both learn one task in seconds, and the second is larger."""
