"""The settings that every best-duel selector is given, checked once."""

from dataclasses import dataclass, field, fields

import numpy as np

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.state.arrays import BoolArray, FloatArray

INTERVAL_DELTA = 0.05  # for the intervals of a campaign that does not stop by them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BestDuelConfig:
    """The size of the problem and the parameters that all methods share; equal when all values are.

    Raises:
        InvalidParameter: If a value is out of range.
    """

    n_arms: int
    """K, at least 2."""
    n_examples: int
    """n, at least 1."""
    batch_size: int = 32
    """Duels in a batch, at least 1; the last batch may be shorter."""
    budget: int | None = None
    """Most duels that may be told, unscored ones included; None for no limit."""
    delta: float | None = None
    """Stop once the best arm is known with error probability delta, in (0, 1); None to go on."""
    epsilon: float = 0.0
    """An arm that no other beats by more than this is good enough, in [0, 1/2), as a preference above 1/2."""
    assume_winner: bool = False
    """Whether some arm is taken to beat or tie every other: then fewer duels are needed, and in a cycle an
    arm is named that does not beat every other."""
    deterministic: BoolArray | None = None
    """Shape (K,), arms that answer an example the same whenever asked, under a judge that then rules the
    same: two such arms meet an example once, drawn without replacement. None where there is no such arm."""
    features: FloatArray | None = field(default=None, repr=False)
    """Shape (K, d), what is known of each arm, for the Bradley-Terry model; None for no model."""
    max_unscored: float = 0.5
    """Share of unscored duels, in [0, 1], beyond which an arm is dropped."""

    def __post_init__(self) -> None:
        for name, value, holds, requirement in (
            ("n_arms", self.n_arms, self.n_arms >= 2, "at least 2 to compare"),
            ("n_examples", self.n_examples, self.n_examples >= 1, "at least 1"),
            ("batch_size", self.batch_size, self.batch_size >= 1, "at least 1"),
            ("budget", self.budget, self.budget is None or self.budget >= 1, "at least 1 or None"),
            ("delta", self.delta, self.delta is None or 0.0 < self.delta < 1.0, "in (0, 1) or None"),
            ("epsilon", self.epsilon, 0.0 <= self.epsilon < 0.5, "in [0, 1/2)"),
            ("max_unscored", self.max_unscored, 0.0 <= self.max_unscored <= 1.0, "in [0, 1]"),
        ):
            if not holds:
                raise InvalidParameter(name, value, requirement)
        if self.features is not None:
            object.__setattr__(self, "features", _checked_features(self.features, self.n_arms))
        if self.deterministic is not None:
            if self.features is not None:
                raise InvalidParameter(
                    "deterministic", self.deterministic, "None with features: the model needs fresh draws"
                )
            object.__setattr__(self, "deterministic", _checked_arms(self.deterministic, self.n_arms))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BestDuelConfig):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, each.name), getattr(other, each.name)) for each in fields(self)
        )


def _checked_features(features: FloatArray, n_arms: int) -> FloatArray:
    """A read-only copy of the features; raises `InvalidParameter` where they cannot be used."""
    if features.ndim != 2 or features.shape[0] != n_arms or features.shape[1] == 0:
        raise InvalidParameter("features", features.shape, f"of shape ({n_arms}, d), a row for each arm")
    if features.dtype.kind not in "fiub":
        raise InvalidParameter("features", str(features.dtype), "an array of numbers")
    copied = np.array(features, dtype=np.float64, order="C")
    for unusable in copied[~np.isfinite(copied)][:1]:
        raise InvalidParameter("features", float(unusable), "finite numbers")
    copied.setflags(write=False)
    return copied


def _checked_arms(deterministic: BoolArray, n_arms: int) -> BoolArray:
    """A read-only copy of the mask; raises `InvalidParameter` where it cannot be used."""
    if deterministic.shape != (n_arms,) or deterministic.dtype != np.bool_:
        raise InvalidParameter("deterministic", deterministic, f"of shape ({n_arms},), true or false each")
    copied = deterministic.copy()
    copied.setflags(write=False)
    return copied


def evidence_delta(config: BestDuelConfig) -> float:
    """The error probability of a campaign's tests and intervals."""
    return INTERVAL_DELTA if config.delta is None else config.delta
