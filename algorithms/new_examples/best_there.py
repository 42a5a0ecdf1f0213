"""Which arm is the best on new examples: two statements, each with an error probability of its own.

Both compare pairs by `is_higher`. The proof of both is in docs/how-new-examples-are-judged.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BestThere:
    """Which arms could be the best on new examples."""

    candidates: tuple[int, ...]
    """Arms that no other is shown to exceed, ascending: one with the highest mean is among them, with
    probability at least 1 - alpha."""
    is_better: bool
    """Whether there is one alone, and it is shown to be better than every other arm: if some other arm has
    the highest mean or the same, this is so with probability at most alpha."""


def best_there(
    n_arms: int,
    excluders: Sequence[int],
    silent: frozenset[int],
    alpha: float,
    is_higher: Callable[[int, int, float], bool],
) -> BestThere:
    """Exclude every arm that one of `excluders` is shown to exceed.

    Args:
        n_arms: K, at least 2.
        excluders: Arms to compare the others with, the most promising first; any choice is valid.
        silent: Arms of which nothing can be shown: they exclude none and are never excluded.
        alpha: Error probability of each statement.
        is_higher: Of two arms and a level, whether the first is shown to have the higher mean on new
            examples; true with probability at most the level if that is false.
    """
    level = alpha / (n_arms - 1)
    spoken = [arm for arm in excluders if arm not in silent]
    left = tuple(
        arm
        for arm in range(n_arms)
        if arm in silent or not any(other != arm and is_higher(other, arm, level) for other in spoken)
    )
    if len(left) != 1 or silent:
        return BestThere(left, is_better=False)
    others = [arm for arm in range(n_arms) if arm != left[0]]
    return BestThere(left, is_better=all(is_higher(left[0], arm, alpha / n_arms) for arm in others))
