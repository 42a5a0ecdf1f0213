"""Settings common to all best-mean selectors, validated when created."""

from dataclasses import dataclass

from winnow.algorithms.errors import check_parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class BestMeanConfig:
    """Problem size and parameters that all best-mean methods share.

    Raises:
        InvalidParameter: If a value is out of range.
    """

    n_arms: int
    """K, at least 2."""
    n_examples: int
    """n, at least 1."""
    batch_size: int = 32
    """Pairs in a batch, at least 1; the last batches can be shorter."""
    budget: int | None = None
    """Largest number of pairs to observe, unscored ones included; None for no limit."""
    delta: float | None = None
    """Error probability, in (0, 1), at which to stop once the best arm is known.
    None never stops for that."""
    epsilon: float = 0.0
    """Tolerance in [0, 1).
    The recommended arm's mean can be this far below the highest mean."""
    max_unscored: float = 0.5
    """Share of unscored pairs, in [0, 1], above which an arm is dropped."""
    intervals: bool = True
    """Whether decisions have intervals.
    False saves half of the time if only estimates are needed."""

    def __post_init__(self) -> None:
        check_parameters(
            ("n_arms", self.n_arms, self.n_arms >= 2, "at least 2 to compare"),
            ("n_examples", self.n_examples, self.n_examples >= 1, "at least 1"),
            ("batch_size", self.batch_size, self.batch_size >= 1, "at least 1"),
            ("budget", self.budget, self.budget is None or self.budget >= 1, "at least 1 or None"),
            ("delta", self.delta, self.delta is None or 0.0 < self.delta < 1.0, "in (0, 1) or None"),
            ("epsilon", self.epsilon, 0.0 <= self.epsilon < 1.0, "in [0, 1)"),
            ("intervals", self.intervals, self.intervals or self.delta is None, "true if delta is set"),
            ("max_unscored", self.max_unscored, 0.0 <= self.max_unscored <= 1.0, "in [0, 1]"),
        )
