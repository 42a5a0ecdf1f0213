"""Naive KRR: the arm with the highest predicted score, without exploring."""

from dataclasses import replace

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.policies.ucb import Ucb
from winnow.algorithms.route.posteriors.kernel_ridge import kernel_posteriors


class NaiveKrr(Ucb):
    """Give each prompt to the arm with the highest mean of its own kernel regression: PAK-UCB with eta = 0.

    A baseline: an arm with low first scores may never be tried again.

    Source: Hu, Leung & Farnia (2025), "An Online Learning Approach to Prompt-based Selection of Generative
    Models and LLMs", ICML, Section 6.
    """

    def __init__(self, config: RouteConfig) -> None:
        if config.eta:
            raise InvalidParameter("eta", config.eta, "0 or None: naive-krr does not explore")
        super().__init__(replace(config, eta=0.0), kernel_posteriors(config))
