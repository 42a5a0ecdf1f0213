"""Counts of how often a candidate was asked an example: it answers anew, and its texts are numbered."""

from collections import Counter
from collections.abc import Iterable, Sequence

from winnow.storage.json_types import Arms

ArmExample = tuple[int, int]
"""An arm and an example, by number."""


class ReplicateCounter:
    """Counts the pairs of finished rounds, in memory alone: they follow from the stored rounds."""

    def __init__(self) -> None:
        self._counts: Counter[ArmExample] = Counter()

    def add(self, pairs: Iterable[ArmExample]) -> None:
        """Count the pairs of a round that is finished."""
        self._counts.update(pairs)

    def replicates(self, pairs: Iterable[ArmExample]) -> list[int]:
        """For each pair of the next round, how often it came before."""
        now: Counter[ArmExample] = Counter()
        replicates = []
        for pair in pairs:
            replicates.append(self._counts[pair] + now[pair])
            now[pair] += 1
        return replicates


def arms_and_examples(arms: Arms, examples: Sequence[int]) -> list[ArmExample]:
    """The arm and the example of each answer in planned order; a duel is two pairs, its first arm's first."""
    return [
        (arm, example)
        for arms_of_one, example in zip(arms, examples, strict=True)
        for arm in (arms_of_one if isinstance(arms_of_one, list) else [arms_of_one])
    ]
