"""Sup-RFF-UCB: RFF-UCB in stages."""

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.policies.staged import Staged
from winnow.algorithms.route.posteriors.fourier_ridge import fourier_posteriors
from winnow.algorithms.route.posteriors.random_fourier_features import RandomFeatures


class SupRffUcb(Staged):
    """Give each prompt to an arm by stages of regressions on random Fourier features.

    The published proof lets the number of features grow like t^4 and more, and adds the error of the features
    to the deviations. Here the number is D in every round and nothing is added, so no bound is proven.

    Args:
        config: The problem and the common parameters; the kernel must be "rbf", and `eta` of None is sqrt(2
            log(4 K T / delta)) here.
        n_features: D, the number of frequencies, at least 1; there are 2 D features.
        feature_seed: Seed of the frequencies, non-negative.
        horizon: T, the planned number of prompts, at least 1; None for the largest possible.

    Source: Hu, Leung & Farnia (2025), "An Online Learning Approach to Prompt-based Selection of Generative
    Models and LLMs", ICML, Algorithm 6 and Theorem 4.
    """

    def __init__(
        self, config: RouteConfig, *, n_features: int = 200, feature_seed: int = 0, horizon: int | None = None
    ) -> None:
        if horizon is not None and horizon < 1:
            raise InvalidParameter("horizon", horizon, "at least 1 or None")
        features = RandomFeatures(config, n_features, feature_seed)
        super().__init__(config, lambda: fourier_posteriors(config, features), horizon, events_per_round=2)
