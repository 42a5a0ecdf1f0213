"""Settings common to all best-duel selectors, validated when created."""

from dataclasses import dataclass, field, fields

import numpy as np

from winnow.algorithms.errors import InvalidParameter, check_parameters
from winnow.algorithms.state.arrays import BoolArray, FloatArray

INTERVAL_DELTA = 0.05  # for the intervals of a campaign without delta


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BestDuelConfig:
    """Problem size and parameters that all best-duel methods share.

    Equal if all values are equal.

    Raises:
        InvalidParameter: If a value is out of range.
    """

    n_arms: int
    """K, at least 2."""
    n_examples: int
    """n, at least 1."""
    batch_size: int = 32
    """Duels in a batch, at least 1; the last batch can be shorter."""
    budget: int | None = None
    """Largest number of duels to observe, unscored ones included; None for no limit."""
    delta: float | None = None
    """Error probability, in (0, 1), at which to stop once the best arm is known.
    None never stops for that."""
    epsilon: float = 0.0
    """Tolerance, in [0, 1/2).
    An arm is good enough if no other arm is preferred to it with a probability above 1/2 + epsilon."""
    assume_winner: bool = False
    """Whether to assume that some arm beats or ties every other.
    Fewer duels are then needed. But if preferences are cyclic, the recommended arm does not beat every
    other."""
    deterministic: BoolArray | None = None
    """Shape (K,), whether an arm's output on an example is always the same.
    None if no arm is deterministic. The judge's verdict on equal outputs must always be the same as well.
    Two deterministic arms are compared at most once on an example, drawn without replacement."""
    features: FloatArray | None = field(default=None, repr=False)
    """Shape (K, d), features of the arms for the Bradley-Terry model.
    None to use no model."""
    max_unscored: float = 0.5
    """Share of unscored duels, in [0, 1], above which an arm is dropped."""

    def __post_init__(self) -> None:
        check_parameters(
            ("n_arms", self.n_arms, self.n_arms >= 2, "at least 2 to compare"),
            ("n_examples", self.n_examples, self.n_examples >= 1, "at least 1"),
            ("batch_size", self.batch_size, self.batch_size >= 1, "at least 1"),
            ("budget", self.budget, self.budget is None or self.budget >= 1, "at least 1 or None"),
            ("delta", self.delta, self.delta is None or 0.0 < self.delta < 1.0, "in (0, 1) or None"),
            ("epsilon", self.epsilon, 0.0 <= self.epsilon < 0.5, "in [0, 1/2)"),
            ("max_unscored", self.max_unscored, 0.0 <= self.max_unscored <= 1.0, "in [0, 1]"),
        )
        if self.features is not None:
            object.__setattr__(self, "features", _validate_features(self.features, self.n_arms))
        if self.deterministic is not None:
            if self.features is not None:
                raise InvalidParameter(
                    "deterministic", self.deterministic, "None with features: the model needs fresh draws"
                )
            object.__setattr__(self, "deterministic", _validate_arms(self.deterministic, self.n_arms))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BestDuelConfig):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, each.name), getattr(other, each.name)) for each in fields(self)
        )


def _validate_features(features: FloatArray, n_arms: int) -> FloatArray:
    """Copy the features as a read-only array, or raise `InvalidParameter`."""
    if features.ndim != 2 or features.shape[0] != n_arms or features.shape[1] == 0:
        raise InvalidParameter("features", features.shape, f"of shape ({n_arms}, d), a row for each arm")
    if features.dtype.kind not in "fiub":
        raise InvalidParameter("features", str(features.dtype), "an array of numbers")
    copied = np.array(features, dtype=np.float64, order="C")
    for unusable in copied[~np.isfinite(copied)][:1]:
        raise InvalidParameter("features", float(unusable), "finite numbers")
    copied.setflags(write=False)
    return copied


def _validate_arms(deterministic: BoolArray, n_arms: int) -> BoolArray:
    """Copy the mask as a read-only array, or raise `InvalidParameter`."""
    if deterministic.shape != (n_arms,) or deterministic.dtype != np.bool_:
        raise InvalidParameter("deterministic", deterministic, f"of shape ({n_arms},), true or false each")
    copied = deterministic.copy()
    copied.setflags(write=False)
    return copied


def evidence_delta(config: BestDuelConfig) -> float:
    """Error probability of a campaign's tests and intervals.

    `delta`, or 0.05 if `delta` is None.
    """
    return INTERVAL_DELTA if config.delta is None else config.delta
