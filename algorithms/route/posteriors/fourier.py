"""Ridge regressions of scores on random Fourier features of contexts, one per arm."""

from collections.abc import Sequence

import numpy as np

from winnow.algorithms.route.policy import Policy, policy_of
from winnow.algorithms.route.posteriors.linear_ridge import LinearRidge
from winnow.algorithms.route.posteriors.posteriors import PerArmBeliefs
from winnow.algorithms.route.posteriors.random_features import RandomFeatures
from winnow.algorithms.route.setting import Setting
from winnow.algorithms.state.arrays import BoolArray


def fourier_beliefs(setting: Setting, features: RandomFeatures) -> PerArmBeliefs[LinearRidge]:
    """What is believed before any score, on these features."""

    def policy(models: Sequence[LinearRidge | None], usable: BoolArray) -> Policy:
        weights = np.zeros((len(models), features.width))
        for arm, model in enumerate(models):
            if model is not None:
                weights[arm] = model.weights
        return policy_of("fourier", usable, setting.dim, weights=weights, frequencies=features.frequencies)

    return PerArmBeliefs(
        setting.n_arms,
        make=lambda: LinearRidge(features.width, setting.fixed_alpha),
        lift=features,
        as_policy=policy,
    )
