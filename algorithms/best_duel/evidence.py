"""The evidence in the duels so far: the common interface of counting and of the Bradley-Terry model."""

from typing import Protocol

from winnow.algorithms.claims import Claim
from winnow.algorithms.state.arrays import BoolArray, FloatArray


class Evidence(Protocol):
    """The preferences that a record of duels shows, and how sure they are.

    All that is read here is a function of what was told, in order, and of nothing else: `update` follows
    every tell at once, and looking at a value changes nothing. So a resumed campaign believes the same, bit
    for bit. The arrays must not be written to.
    """

    @property
    def preferences(self) -> FloatArray:
        """P(row is preferred to column), shape (K, K), 1/2 on the diagonal, NaN where nothing is known."""
        ...

    @property
    def estimates(self) -> FloatArray:
        """The values that the arms are ranked by, shape (K,): see `worst_preferences`."""
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
        """Z, the least evidence against any active arm but the best; 0 when there is none."""
        ...

    @property
    def is_separated(self) -> bool:
        """Whether the best arm is known at the error probability of the config."""
        ...

    @property
    def is_settled(self) -> bool:
        """Whether it is certain which active arm is best, which are tied for it, or that none is."""
        ...

    @property
    def beaten(self) -> BoolArray:
        """Active arms shown not to be the best, shape (K,)."""
        ...

    @property
    def losers(self) -> BoolArray:
        """Active arms that lose to another active arm for certain, shape (K,)."""
        ...

    @property
    def tied(self) -> BoolArray:
        """Active arms that share the first place for certain, shape (K,)."""
        ...

    @property
    def claim(self) -> Claim:
        """The claim to be made of the best arm once it is separated, or of all arms once they are settled."""
        ...

    @property
    def in_force(self) -> "Evidence":
        """This evidence, or that by counts once the duels refute its model."""
        ...

    def update(self) -> None:
        """Follow the record, which has just been told a batch."""
        ...
