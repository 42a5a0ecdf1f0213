"""PAK-UCB: kernel ridge regression per arm, choosing the arm with the highest upper confidence bound."""

from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.policies.ucb import Ucb
from winnow.algorithms.route.posteriors.kernel_ridge import kernel_posteriors
from winnow.algorithms.route.posteriors.tuned import TunedPosteriors, is_tuned


class PakUcb(Ucb):
    """Give each prompt to the arm with the highest mean + eta x deviation of its own kernel regression.

    A round costs O(n d + n^2) for each arm with n scores, and memory grows with n^2: for long streams use
    `rff-ucb`. With the linear kernel an arm's expected score is linear in the embedding; "poly3" and "rbf"
    can separate types of prompts that lie close together. With the bandwidth "auto" of "rbf", the scores
    determine the scale, see `TunedPosteriors`; with a number it is the published algorithm. The published
    program starts the inverse of the first kernel matrix as 1/k + alpha; this one follows the mathematics, (k
    + alpha)^-1.

    Source: Hu, Leung & Farnia (2025), "An Online Learning Approach to Prompt-based Selection of Generative
    Models and LLMs", ICML, Algorithm 2.
    """

    def __init__(self, config: RouteConfig) -> None:
        tuned = is_tuned(config)
        super().__init__(
            config, TunedPosteriors(config, kernel_posteriors) if tuned else kernel_posteriors(config)
        )
