"""Settings common to all route selectors, validated when created."""

import math
from dataclasses import dataclass
from typing import Literal

from winnow.algorithms.errors import check_parameters

KernelName = Literal["linear", "poly3", "rbf"]

FIXED_BANDWIDTH, FIXED_ALPHA = 3.0, 1.0
DEFAULT_DELTA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteConfig:
    """Problem size and parameters that all route methods share.

    A prompt is given to one arm, so the budget counts prompts. For an endless stream, `n_examples` can be any
    large number: future prompts cost no time or memory, and nothing learned depends on their number, except
    the horizon of the staged methods.

    Raises:
        InvalidParameter: If a value is out of range.
    """

    n_arms: int
    """K, at least 1; arms can be added later."""
    n_examples: int
    """n, at least 1: the largest number of prompts."""
    batch_size: int = 32
    """Number of prompts in a batch that `next_examples` returns, at least 1.
    The last batch can be shorter."""
    budget: int | None = None
    """Largest number of prompts to observe, unscored ones included.
    None to observe all prompts."""
    delta: float = DEFAULT_DELTA
    """Error probability, in (0, 1).
    It sets the exploration if `eta` is None, and is that of the interval that `explore` enables."""
    dim: int = 0
    """d, the length of a context, at least 1; required."""
    kernel: KernelName = "rbf"
    """Kernel k(x, x') of the regressions. "linear": x.x'; "poly3": (1 + gamma x.x')^3.
    "rbf": exp(-|x - x'|^2 / (2 bandwidth^2))."""
    gamma: float = 0.05
    """gamma of the poly3 kernel, positive.
    Use a small value if prompts of one type are not very similar (cosines below 0.5): the paper's 5 and 10
    are for embeddings that all point in similar directions."""
    bandwidth: float | Literal["auto"] = "auto"
    """Bandwidth of the rbf kernel, positive, or "auto".
    Contexts are at most 2 apart, so 3 is wide and makes scores vary slowly. With "auto", `pak-ucb` and
    `rff-ucb` choose it from the scores, and also `alpha` and `eta` if these are None: see
    `TunedPosteriors`. Other methods, and these two before their first choice, use 3."""
    alpha: float | None = None
    """Ridge of the regressions, positive.
    None for 1, or for the value chosen with the bandwidth."""
    eta: float | None = None
    """Weight of uncertainty in a choice, at least 0.
    None for sqrt(2 log(2 K / delta)), with K the number of arms so far, or for the value chosen with the
    bandwidth."""
    explore: float = 0.0
    """Share of prompts, in [0, 1], that are given to an arm drawn uniformly.
    Independent of the method's choice. Only if it is positive, an interval shows whether routing pays: see
    `AdvantageRecord`."""
    max_unscored: float = 0.5
    """Share of unscored prompts, in [0, 1], above which an arm is dropped."""

    def __post_init__(self) -> None:
        check_parameters(
            ("n_arms", self.n_arms, self.n_arms >= 1, "at least 1"),
            ("n_examples", self.n_examples, self.n_examples >= 1, "at least 1"),
            ("batch_size", self.batch_size, self.batch_size >= 1, "at least 1"),
            ("budget", self.budget, self.budget is None or self.budget >= 1, "at least 1 or None"),
            ("delta", self.delta, 0.0 < self.delta < 1.0, "in (0, 1)"),
            ("dim", self.dim, self.dim >= 1, "set to the length of a context, at least 1"),
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
        )

    @property
    def n_prompts(self) -> int:
        """Largest number of prompts that can be observed."""
        return self.n_examples if self.budget is None else min(self.budget, self.n_examples)

    @property
    def fixed_bandwidth(self) -> float:
        """Bandwidth that is used until one is chosen from the data."""
        return FIXED_BANDWIDTH if self.bandwidth == "auto" else self.bandwidth

    @property
    def fixed_alpha(self) -> float:
        """Ridge that is used until one is chosen from the data."""
        return FIXED_ALPHA if self.alpha is None else self.alpha

    def exploration(self, n_arms: int, n_events: int = 1) -> float:
        """Weight of uncertainty in a choice.

        `eta` if it is set, otherwise a value that makes confidence bounds valid. That value is sqrt(2 log(2 K
        n_events / delta)), from Hoeffding's inequality for scores in [-1, 1] with a union bound.

        Args:
            n_arms: K, the number of arms so far, removed ones included, so that replayed rounds use the same
                weight.
            n_events: Number of bounds per arm that must hold simultaneously.
        """
        return (
            math.sqrt(2.0 * math.log(2.0 * n_arms * n_events / self.delta)) if self.eta is None else self.eta
        )
