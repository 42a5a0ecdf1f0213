"""The settings that every route selector is given, checked once."""

import math
from dataclasses import dataclass
from typing import Literal

from winnow.algorithms.errors import InvalidParameter

KernelName = Literal["linear", "poly3", "rbf"]

FIXED_BANDWIDTH, FIXED_ALPHA = 3.0, 1.0
DEFAULT_DELTA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteConfig:
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
    delta: float = DEFAULT_DELTA
    """The error probability that exploration is set for where `eta` is None, and that of the interval that
    `explore` gives, in (0, 1)."""
    dim: int = 0
    """d, the length of a context, at least 1; has to be given."""
    kernel: KernelName = "rbf"
    """"linear", "poly3": (1 + gamma x.x')^3, or "rbf": exp(-|x - x'|^2 / (2 bandwidth^2))."""
    gamma: float = 0.05
    """Of the poly3 kernel, positive. Small where prompts of one type are not much alike (cosines below a
    half): the paper's 5 and 10 are for embeddings that all point in similar directions."""
    bandwidth: float | Literal["auto"] = "auto"
    """Of the rbf kernel, positive: contexts are at most 2 apart, so 3 is wide, and scores vary slowly. With
    "auto", `pak-ucb` and `rff-ucb` choose it, and `alpha` and `eta` where these are None, from the scores:
    see `TunedPosteriors`. Other methods, and these two before their first choice, take 3."""
    alpha: float | None = None
    """Ridge of the regressions, positive; None for 1, or for what is chosen with the bandwidth."""
    eta: float | None = None
    """Weight of uncertainty in a choice, at least 0; None for sqrt(2 log(2 K / delta)), K the arms so far, or
    for what is chosen with the bandwidth."""
    explore: float = 0.0
    """Share of prompts, in [0, 1], that are given to an arm drawn uniformly, whatever the method would
    choose. With it, and only with it, an interval says whether routing pays: see `AdvantageRecord`."""
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
            (
                "bandwidth",
                self.bandwidth,
                self.bandwidth == "auto" or 0.0 < self.bandwidth < math.inf,
                "positive and finite, or 'auto'",
            ),
            (
                "alpha",
                self.alpha,
                self.alpha is None or 0.0 < self.alpha < math.inf,
                "positive and finite, or None",
            ),
            ("explore", self.explore, 0.0 <= self.explore <= 1.0, "in [0, 1]"),
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

    @property
    def fixed_bandwidth(self) -> float:
        """The bandwidth as long as none is chosen."""
        return FIXED_BANDWIDTH if self.bandwidth == "auto" else self.bandwidth

    @property
    def fixed_alpha(self) -> float:
        """The ridge as long as none is chosen."""
        return FIXED_ALPHA if self.alpha is None else self.alpha

    def exploration(self, n_arms: int, n_events: int = 1) -> float:
        """The weight of uncertainty: `eta`, or what `n_events` bounds on each of `n_arms` arms need.

        Args:
            n_arms: K, the arms so far, those removed included, so that replayed rounds weigh the same.
            n_events: Number of bounds per arm that are to hold at once.

        Returns:
            sqrt(2 log(2 K n_events / delta)) where `eta` is None: Hoeffding's inequality for scores in [-1,
            1] with a union bound.
        """
        return (
            math.sqrt(2.0 * math.log(2.0 * n_arms * n_events / self.delta)) if self.eta is None else self.eta
        )
