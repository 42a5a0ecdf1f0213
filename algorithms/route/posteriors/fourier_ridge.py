"""Ridge regressions of scores on random Fourier features of contexts, one per arm."""

from collections.abc import Sequence

import numpy as np

from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.policy import Policy, policy_of
from winnow.algorithms.route.posteriors.linear_ridge import LinearRidge
from winnow.algorithms.route.posteriors.posteriors import PerArmPosteriors
from winnow.algorithms.route.posteriors.random_fourier_features import RandomFeatures
from winnow.algorithms.state.arrays import BoolArray


def fourier_posteriors(config: RouteConfig, features: RandomFeatures) -> PerArmPosteriors[LinearRidge]:
    """Create posteriors without scores on these features."""

    def policy(models: Sequence[LinearRidge | None], usable: BoolArray) -> Policy:
        weights = np.zeros((len(models), features.width))
        for arm, model in enumerate(models):
            if model is not None:
                weights[arm] = model.weights
        return policy_of("fourier", usable, config.dim, weights=weights, frequencies=features.frequencies)

    return PerArmPosteriors(
        config.n_arms,
        make=lambda: LinearRidge(features.width, config.fixed_alpha),
        lift=features,
        as_policy=policy,
    )
