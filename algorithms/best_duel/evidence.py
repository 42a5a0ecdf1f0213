"""Common interface of the evidence from counts and from the Bradley-Terry model."""

from typing import Protocol

from winnow.algorithms.claims import Claim
from winnow.algorithms.state.arrays import BoolArray, FloatArray


class Evidence(Protocol):
    """Preferences that a record of duels shows, with their uncertainty.

    All values are functions of the observations in their order and of nothing else: `update` follows every
    tell at once, and reading a value changes nothing. So a resumed campaign has the same values, bit for bit.
    The arrays must not be modified.
    """

    @property
    def preferences(self) -> FloatArray:
        """P(row is preferred to column), shape (K, K), 1/2 on the diagonal, NaN if unknown."""
        ...

    @property
    def estimates(self) -> FloatArray:
        """Values by which the arms are ranked, shape (K,): see `worst_preferences`."""
        ...

    @property
    def lower(self) -> FloatArray:
        """Lower ends of the intervals of the estimates, shape (K,), in [0, 1]."""
        ...

    @property
    def upper(self) -> FloatArray:
        """Upper ends of the intervals of the estimates, shape (K,), in [0, 1]."""
        ...

    @property
    def best(self) -> int | None:
        """The active arm with the highest estimate; None when there is none."""
        ...

    @property
    def statistic(self) -> float:
        """Z, the least evidence against any active arm except the best; 0 if there is none."""
        ...

    @property
    def is_separated(self) -> bool:
        """Whether the best arm is known with the error probability of the config."""
        ...

    @property
    def is_settled(self) -> bool:
        """Whether it is certain which active arm is best, which are tied, or that there is no best arm."""
        ...

    @property
    def beaten(self) -> BoolArray:
        """Active arms shown not to be the best, shape (K,)."""
        ...

    @property
    def losers(self) -> BoolArray:
        """Active arms that certainly lose to another active arm, shape (K,)."""
        ...

    @property
    def tied(self) -> BoolArray:
        """Active arms certainly tied for first place, shape (K,)."""
        ...

    @property
    def claim(self) -> Claim:
        """Claim about the best arm once it is separated, or about all arms once they are settled."""
        ...

    @property
    def in_force(self) -> "Evidence":
        """This evidence, or the evidence by counts once the duels refute its model."""
        ...

    def update(self) -> None:
        """Update from the record after a batch was observed."""
        ...
