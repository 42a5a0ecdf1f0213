"""Sup-PAK-UCB: PAK-UCB in stages, the variant with proven regret."""

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.policies.staged import Staged
from winnow.algorithms.route.posteriors.kernel_ridge import kernel_posteriors


class SupPakUcb(Staged):
    """Give each prompt to an arm by stages of kernel regressions, with regret of order sqrt(K T).

    The bound holds with probability 1 - delta, one prompt at a time, if kernels are at most 1 and each arm's
    expected score has norm at most 1 in the kernel's space; "linear" and "rbf" are such kernels.

    Args:
        config: The problem and the common parameters; `eta` of None is sqrt(2 log(2 K T / delta)) here.
        horizon: T, the planned number of prompts, at least 1; None for the largest possible.

    Source: Hu, Leung & Farnia (2025), "An Online Learning Approach to Prompt-based Selection of Generative
    Models and LLMs", ICML, Algorithm 3 and Theorem 3.
    """

    def __init__(self, config: RouteConfig, *, horizon: int | None = None) -> None:
        if horizon is not None and horizon < 1:
            raise InvalidParameter("horizon", horizon, "at least 1 or None")
        super().__init__(config, lambda: kernel_posteriors(config), horizon, events_per_round=1)
