"""LinUCB: one linear regression for all arms, distinguished by an indicator."""

import numpy as np

from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.policies.ucb import Ucb
from winnow.algorithms.route.policy import Policy, policy_of
from winnow.algorithms.route.posteriors.linear_ridge import LinearRidge
from winnow.algorithms.route.posteriors.posteriors import JointPosteriors
from winnow.algorithms.state.arrays import BoolArray


class LinUcb(Ucb):
    """Give each prompt to the arm with the highest mean + eta x deviation of one joint linear regression.

    Its inputs are contexts with the arm's indicator appended, so the means of two arms differ by the same
    amount on every prompt: it can find the arm that is best on average, but cannot route. A baseline. It is
    linear for any `kernel`, and a round costs O(K (d + K)^2).

    Source: Chu et al. (2011), "Contextual bandits with linear payoff functions", AISTATS, Algorithm 1, in the
    form that Hu, Leung & Farnia (2025), Section 6, compare with.
    """

    def __init__(self, config: RouteConfig) -> None:
        model = LinearRidge(config.dim + config.n_arms, config.fixed_alpha)

        def policy(model: LinearRidge, usable: BoolArray) -> Policy:
            shared, offsets = np.split(model.weights, [config.dim])
            weights = np.tile(shared, (len(usable), 1))
            return policy_of("linear", usable, config.dim, weights=weights, offsets=offsets)

        super().__init__(config, JointPosteriors(config.n_arms, model, policy))
