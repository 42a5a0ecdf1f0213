"""The settings that every best-mean selector is given, checked once."""

from dataclasses import dataclass

from winnow.algorithms.errors import InvalidParameter


@dataclass(frozen=True, slots=True, kw_only=True)
class BestMeanConfig:
    """The size of the problem and the parameters that all methods share.

    Raises:
        InvalidParameter: If a value is out of range.
    """

    n_arms: int
    """K, at least 2."""
    n_examples: int
    """n, at least 1."""
    batch_size: int = 32
    """Pairs in a batch, at least 1; the last batches may be shorter."""
    budget: int | None = None
    """Most pairs that may be told, unscored ones included; None for no limit."""
    delta: float | None = None
    """Stop once the best arm is known with error probability delta, in (0, 1); None to go on."""
    epsilon: float = 0.0
    """The most by which the mean of the best arm may be below the highest for it to be known, in [0, 1)."""
    max_unscored: float = 0.5
    """Share of unscored pairs, in [0, 1], beyond which an arm is dropped."""
    intervals: bool = True
    """Whether decisions have intervals; where only estimates are looked at, False saves half of the time."""

    def __post_init__(self) -> None:
        for name, value, holds, requirement in (
            ("n_arms", self.n_arms, self.n_arms >= 2, "at least 2 to compare"),
            ("n_examples", self.n_examples, self.n_examples >= 1, "at least 1"),
            ("batch_size", self.batch_size, self.batch_size >= 1, "at least 1"),
            ("budget", self.budget, self.budget is None or self.budget >= 1, "at least 1 or None"),
            ("delta", self.delta, self.delta is None or 0.0 < self.delta < 1.0, "in (0, 1) or None"),
            ("epsilon", self.epsilon, 0.0 <= self.epsilon < 1.0, "in [0, 1)"),
            ("intervals", self.intervals, self.intervals or self.delta is None, "true for a delta"),
            ("max_unscored", self.max_unscored, 0.0 <= self.max_unscored <= 1.0, "in [0, 1]"),
        ):
            if not holds:
                raise InvalidParameter(name, value, requirement)
