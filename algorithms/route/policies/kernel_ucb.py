"""KernelUCB: one kernel regression for all arms, distinguished by an indicator."""

import numpy as np

from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.policies.ucb import Ucb
from winnow.algorithms.route.policy import Policy, policy_of
from winnow.algorithms.route.posteriors.kernel_ridge import KernelRidge
from winnow.algorithms.route.posteriors.kernels import Kernel
from winnow.algorithms.route.posteriors.posteriors import JointPosteriors
from winnow.algorithms.state.arrays import BoolArray


class KernelUcb(Ucb):
    """Give each prompt to the arm with the highest mean + eta x deviation of one joint kernel regression.

    Its inputs are contexts with the arm's indicator appended, of length sqrt(2), so scores of one arm inform
    the predictions for every other arm on similar prompts. A baseline: a round costs O(K n^2) after n scores
    in all.

    Source: Valko et al. (2013), "Finite-time analysis of kernelised contextual bandits", UAI, Algorithm 1, in
    the form that Hu, Leung & Farnia (2025), Section 6, compare with.
    """

    def __init__(self, config: RouteConfig) -> None:
        kernel = Kernel.of(config, squared_length=2.0)
        model = KernelRidge(kernel, config.fixed_alpha, config.dim + config.n_arms)

        def policy(model: KernelRidge, usable: BoolArray) -> Policy:
            return policy_of(
                "joint-kernel",
                usable,
                config.dim,
                kernel,
                weights=model.weights,
                contexts=model.inputs[:, : config.dim].astype(np.float32),
                arms=model.inputs[:, config.dim :].argmax(axis=1).astype(np.int64),
            )

        super().__init__(config, JointPosteriors(config.n_arms, model, policy))
