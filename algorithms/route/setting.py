"""What every route selector is given, checked once."""

import math
from dataclasses import dataclass
from typing import Literal

from algorithms.errors import InvalidParameter

KernelName = Literal["linear", "poly3", "rbf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The size of the problem and the parameters that all methods share.

    A prompt is given to one arm, so the budget counts prompts. For a stream without end, `n_examples` may be
    any large number: nothing costs time or memory for a prompt that has not come, and nothing that is learned
    depends on it, the staged methods' horizon excepted.

    Raises:
        InvalidParameter: If a value is out of range.
    """

    n_arms: int
    """K, at least 1; arms may be added later."""
    n_examples: int
    """n, at least 1: the most prompts there can be."""
    batch_size: int = 32
    """Prompts in a batch that `next_examples` names, at least 1; the last one may be shorter."""
    budget: int | None = None
    """Most prompts that may be told, unscored ones included; None for all of them."""
    delta: float = 0.05
    """The error probability that exploration is set for where `eta` is None, in (0, 1)."""
    dim: int = 0
    """d, the length of a context, at least 1; has to be given."""
    kernel: KernelName = "rbf"
    """"linear", "poly3": (1 + gamma x.x')^3, or "rbf": exp(-|x - x'|^2 / (2 bandwidth^2))."""
    gamma: float = 0.05
    """Of the poly3 kernel, positive. Small where prompts of one type are not much alike (cosines below a
    half): the paper's 5 and 10 are for embeddings that all point in similar directions."""
    bandwidth: float = 3.0
    """Of the rbf kernel, positive. Contexts are at most 2 apart, so it is wide, and scores vary slowly."""
    alpha: float = 1.0
    """Ridge of the regressions, positive."""
    eta: float | None = None
    """Weight of uncertainty in a choice, at least 0; None for sqrt(2 log(2 K / delta)), K the arms so far."""
    max_unscored: float = 0.5
    """Share of unscored prompts, in [0, 1], beyond which an arm is dropped."""

    def __post_init__(self) -> None:
        for name, value, holds, requirement in (
            ("n_arms", self.n_arms, self.n_arms >= 1, "at least 1"),
            ("n_examples", self.n_examples, self.n_examples >= 1, "at least 1"),
            ("batch_size", self.batch_size, self.batch_size >= 1, "at least 1"),
            ("budget", self.budget, self.budget is None or self.budget >= 1, "at least 1 or None"),
            ("delta", self.delta, 0.0 < self.delta < 1.0, "in (0, 1)"),
            ("dim", self.dim, self.dim >= 1, "given, the length of a context, at least 1"),
            ("gamma", self.gamma, 0.0 < self.gamma < math.inf, "positive and finite"),
            ("bandwidth", self.bandwidth, 0.0 < self.bandwidth < math.inf, "positive and finite"),
            ("alpha", self.alpha, 0.0 < self.alpha < math.inf, "positive and finite"),
            (
                "eta",
                self.eta,
                self.eta is None or 0.0 <= self.eta < math.inf,
                "at least 0, or None",
            ),
            ("max_unscored", self.max_unscored, 0.0 <= self.max_unscored <= 1.0, "in [0, 1]"),
        ):
            if not holds:
                raise InvalidParameter(name, value, requirement)

    @property
    def n_prompts(self) -> int:
        """The most prompts that can be told."""
        return self.n_examples if self.budget is None else min(self.budget, self.n_examples)

    def exploration(self, n_arms: int, n_events: int = 1) -> float:
        """The weight of uncertainty: `eta`, or what `n_events` bounds on each of `n_arms` arms need.

        Args:
            n_arms: K, the arms so far, those removed included, so that replayed rounds weigh the same.
            n_events: How many bounds per arm are to hold at once.

        Returns:
            sqrt(2 log(2 K n_events / delta)) where `eta` is None: Hoeffding's inequality for scores in [-1,
            1] with a union bound.
        """
        return (
            math.sqrt(2.0 * math.log(2.0 * n_arms * n_events / self.delta)) if self.eta is None else self.eta
        )
