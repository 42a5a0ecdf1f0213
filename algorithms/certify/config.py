"""Settings common to all certify selectors, validated when created."""

from dataclasses import dataclass
from typing import Literal

from winnow.algorithms.errors import check_parameters

Rule = Literal["star", "up", "wsr", "mixture"]
"""Betting rule of the tests:

* star: sizes bets by the evidence still needed per remaining label; certifies most.
* up: universal portfolio, without a horizon; needs the fewest labels if the risk is far below alpha.
* mixture: 7/10 of the capital on "star", 3/10 on "up"; has nearly the advantages of both.
* wsr: the published alternative to "up", which takes less time.
"""
Betting = Literal["auto", "star", "up", "wsr", "mixture"]
Procedure = Literal["fixed-sequence", "bonferroni"]

MOST_LABELS_FOR_STAR = 300
"""Largest number of labels for which "auto" is "star".
Up to this number, "star" certifies an arm in up to 8 percentage points more runs than "mixture" if its risk
is near alpha.
With more labels the difference is up to 6 points, and "mixture" needs a fifth fewer labels at a risk of
alpha / 2 (see `tests/benchmarks/certify_rules.py`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifyConfig:
    """Problem size and parameters that all certify methods share.

    Arms are in testing order, from the most expensive to the cheapest: arm 0 is tested first. Of the
    certified arms, the last one is recommended.

    A label is an annotator's answer to one example. It is bought once and serves every arm, so the budget
    counts labelled examples, not pairs of an arm and an example.

    Raises:
        InvalidParameter: If a value is out of range.
    """

    n_arms: int
    """K, at least 1."""
    n_examples: int
    """n, at least 1: number of examples that can be labelled."""
    batch_size: int = 32
    """Pairs in a batch, at least 1; batches can be shorter."""
    budget: int | None = None
    """Largest number of labels to buy, including those of unscored pairs.
    None to label every example."""
    alpha: float = 0.1
    """Largest risk of a certified arm, in (0, 1)."""
    delta: float = 0.1
    """Error probability of the certificates, in (0, 1)."""
    betting: Betting = "auto"
    """Betting rule of the tests.
    See `Rule`. "auto" is "star" for up to 300 labels and "mixture" for more. A campaign keeps the rule
    with which it began."""
    procedure: Procedure = "fixed-sequence"
    """Multiple testing procedure.
    "fixed-sequence" tests the arms one after another, each at delta, until the first that fails.
    "bonferroni" tests every arm at delta / K."""
    max_unscored: float = 0.5
    """Share of unscored pairs, in [0, 1], above which an arm is dropped."""
    intervals: bool = True
    """Whether decisions have intervals; False saves the time to compute them."""

    def __post_init__(self) -> None:
        check_parameters(
            ("n_arms", self.n_arms, self.n_arms >= 1, "at least 1"),
            ("n_examples", self.n_examples, self.n_examples >= 1, "at least 1"),
            ("batch_size", self.batch_size, self.batch_size >= 1, "at least 1"),
            ("budget", self.budget, self.budget is None or self.budget >= 1, "at least 1 or None"),
            ("alpha", self.alpha, 0.0 < self.alpha < 1.0, "in (0, 1)"),
            ("delta", self.delta, 0.0 < self.delta < 1.0, "in (0, 1)"),
            ("max_unscored", self.max_unscored, 0.0 <= self.max_unscored <= 1.0, "in [0, 1]"),
        )

    @property
    def n_labels(self) -> int:
        """Largest possible number of labels."""
        return self.n_examples if self.budget is None else min(self.budget, self.n_examples)

    @property
    def rule(self) -> Rule:
        """Betting rule, with "auto" resolved by the number of labels."""
        return rule_for(self.betting, self.n_labels)

    @property
    def level(self) -> float:
        """Error probability of the test that would certify an arm."""
        return self.delta / self.n_arms if self.procedure == "bonferroni" else self.delta

    @property
    def refutation_level(self) -> float:
        """Error probability of the test that would refute an arm.

        The error probabilities of all arms' tests sum to delta.
        """
        return self.delta / self.n_arms


def rule_for(betting: Betting, n_labels: int) -> Rule:
    """Betting rule for a number of labels."""
    if betting != "auto":
        return betting
    return "star" if n_labels <= MOST_LABELS_FOR_STAR else "mixture"
