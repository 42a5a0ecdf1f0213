"""How many pairs an algorithm may ask: its budget, and as many more as there could be no text for."""


class Allowance:
    """The limit of an algorithm that counts every pair it is told, kept so that only answered ones are spent.

    A pair whose texts could not be made, as where a model cannot be loaded, costs nothing. The algorithm
    counts it all the same; so whenever it was told as many pairs as it may ask, the limit is raised by those
    that cost nothing. The limit follows from the budget and from what the finished rounds came to, in order:
    a resumed campaign has the one that it would have had.

    Args:
        budget: Answered pairs that may be told; None for no limit.
    """

    def __init__(self, budget: int | None) -> None:
        self._budget = budget
        self._asked = 0
        self.answered = 0
        """Pairs of finished rounds that had all their texts."""
        self.limit = budget
        """Pairs that may be told, answered or not; None for no limit."""

    def add(self, asked: int, answered: int) -> bool:
        """Count a finished round; return whether that raised the limit."""
        self._asked += asked
        self.answered += answered
        if self._budget is None or self.limit is None or self._asked < self.limit:
            return False
        before, self.limit = self.limit, self._budget + self._asked - self.answered
        return self.limit > before
