"""Kernel ridge regressions of scores on contexts, one per arm."""

from collections.abc import Sequence

import numpy as np

from winnow.algorithms.route.policy import Policy, policy_of
from winnow.algorithms.route.posteriors.kernel_ridge import KernelRidge
from winnow.algorithms.route.posteriors.kernels import Kernel
from winnow.algorithms.route.posteriors.posteriors import PerArmBeliefs
from winnow.algorithms.route.setting import Setting
from winnow.algorithms.state.arrays import BoolArray


def kernel_beliefs(setting: Setting) -> PerArmBeliefs[KernelRidge]:
    """What is believed before any score, with the kernel of the setting."""
    kernel = Kernel.of(setting)

    def policy(models: Sequence[KernelRidge | None], usable: BoolArray) -> Policy:
        known = [(arm, model) for arm, model in enumerate(models) if model is not None and model.n > 0]
        if kernel.name == "linear":
            weights = np.zeros((len(models), setting.dim))
            for arm, model in known:
                weights[arm] = model.weights @ model.inputs
            return policy_of("linear", usable, setting.dim, weights=weights, offsets=np.zeros(len(models)))
        return policy_of(
            "kernel",
            usable,
            setting.dim,
            kernel,
            weights=np.concatenate([model.weights for _, model in known] or [np.empty(0)]),
            contexts=np.concatenate(
                [model.inputs.astype(np.float32) for _, model in known]
                or [np.empty((0, setting.dim), dtype=np.float32)]
            ),
            arms=np.repeat([arm for arm, _ in known], [model.n for _, model in known]).astype(np.int64),
        )

    return PerArmBeliefs(
        setting.n_arms,
        make=lambda: KernelRidge(kernel, setting.fixed_alpha, setting.dim),
        lift=lambda context: context,
        as_policy=policy,
    )
