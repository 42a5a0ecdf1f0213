"""The settings that every certify selector is given, checked once."""

from dataclasses import dataclass
from typing import Literal

from winnow.algorithms.errors import InvalidParameter

Rule = Literal["star", "up", "wsr"]
"""The rule that makes the bets of the tests:

* star: what is still needed over the labels that are left; it certifies most where labels are few.
* up: the universal portfolio, whose bets need no horizon; it takes fewest labels where there are many.
* wsr: the published alternative to it, which takes less time.
"""
Betting = Literal["auto", "star", "up", "wsr"]
Procedure = Literal["fixed-sequence", "bonferroni"]

MOST_LABELS_FOR_STAR = 300
"""Up to so many labels "star" certifies more than "up" (measured on the published tables); with more, both
certify nearly all that can be, and "up" is done sooner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifyConfig:
    """The size of the problem and the parameters that all methods share.

    Arms come in testing order, from the dearest to the cheapest: arm 0 is tested first, and of the certified
    arms the last one is recommended.

    A label is the human answer to one example. It is bought once and serves every arm, so the budget counts
    the examples that are labelled, and not the pairs of an arm and an example that are scored with them.

    Raises:
        InvalidParameter: If a value is out of range.
    """

    n_arms: int
    """K, at least 1."""
    n_examples: int
    """n, at least 1: the examples that can be labelled."""
    batch_size: int = 32
    """Pairs in a batch, at least 1; batches may be shorter."""
    budget: int | None = None
    """Most labels that may be bought, those of unscored pairs included; None to label every example."""
    alpha: float = 0.1
    """The risk that a certified arm may have, in (0, 1)."""
    delta: float = 0.1
    """The error probability of the certificates, in (0, 1)."""
    betting: Betting = "auto"
    """The betting rule of the tests; see `Rule`. "auto" is "star" for up to 300 labels and "up" for more."""
    procedure: Procedure = "fixed-sequence"
    """"fixed-sequence" tests one arm after the other, each at delta, up to the first that fails; "bonferroni"
    tests every arm at delta / K."""
    max_unscored: float = 0.5
    """Share of unscored pairs, in [0, 1], beyond which an arm is dropped."""
    intervals: bool = True
    """Whether decisions have intervals; where nobody looks at them, False saves their time."""

    def __post_init__(self) -> None:
        for name, value, holds, requirement in (
            ("n_arms", self.n_arms, self.n_arms >= 1, "at least 1"),
            ("n_examples", self.n_examples, self.n_examples >= 1, "at least 1"),
            ("batch_size", self.batch_size, self.batch_size >= 1, "at least 1"),
            ("budget", self.budget, self.budget is None or self.budget >= 1, "at least 1 or None"),
            ("alpha", self.alpha, 0.0 < self.alpha < 1.0, "in (0, 1)"),
            ("delta", self.delta, 0.0 < self.delta < 1.0, "in (0, 1)"),
            ("max_unscored", self.max_unscored, 0.0 <= self.max_unscored <= 1.0, "in [0, 1]"),
        ):
            if not holds:
                raise InvalidParameter(name, value, requirement)

    @property
    def n_labels(self) -> int:
        """The most labels that there can be."""
        return self.n_examples if self.budget is None else min(self.budget, self.n_examples)

    @property
    def rule(self) -> Rule:
        """The betting rule, "auto" resolved by the number of labels."""
        return rule_for(self.betting, self.n_labels)

    @property
    def level(self) -> float:
        """The error probability of the test that would certify one arm."""
        return self.delta / self.n_arms if self.procedure == "bonferroni" else self.delta

    @property
    def refutation_level(self) -> float:
        """The error probability of the test that would refute one arm: delta for all of them together."""
        return self.delta / self.n_arms


def rule_for(betting: Betting, n_labels: int) -> Rule:
    """The betting rule for so many labels."""
    if betting != "auto":
        return betting
    return "star" if n_labels <= MOST_LABELS_FOR_STAR else "up"
