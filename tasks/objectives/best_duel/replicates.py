"""How often a candidate has met an example: a duel that meets it again is answered anew."""

from collections import Counter
from collections.abc import Iterable, Sequence

from winnow.storage.json_types import Arms

Meeting = tuple[int, int]
"""An arm and an example."""


class ReplicateCounter:
    """Counts the meetings of finished rounds, in memory alone: they follow from the stored rounds."""

    def __init__(self) -> None:
        self._counts: Counter[Meeting] = Counter()

    def add(self, meetings: Iterable[Meeting]) -> None:
        """Count the meetings of a round that is finished."""
        self._counts.update(meetings)

    def replicates(self, meetings: Iterable[Meeting]) -> list[int]:
        """For each meeting of the next round, how many of its arm and example came before it."""
        now: Counter[Meeting] = Counter()
        replicates = []
        for meeting in meetings:
            replicates.append(self._counts[meeting] + now[meeting])
            now[meeting] += 1
        return replicates


def meetings_of(arms: Arms, examples: Sequence[int]) -> list[Meeting]:
    """Who meets which example in a round, in planned order; a duel is two meetings, its first arm's first."""
    return [
        (arm, example)
        for arms_of_one, example in zip(arms, examples, strict=True)
        for arm in (arms_of_one if isinstance(arms_of_one, list) else [arms_of_one])
    ]
