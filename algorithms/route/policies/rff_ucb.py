"""RFF-UCB: PAK-UCB with random Fourier features, at the same cost in every round."""

from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.policies.ucb import Ucb
from winnow.algorithms.route.posteriors.fourier_ridge import fourier_posteriors
from winnow.algorithms.route.posteriors.linear_ridge import LinearRidge
from winnow.algorithms.route.posteriors.posteriors import PerArmPosteriors
from winnow.algorithms.route.posteriors.random_fourier_features import RandomFeatures
from winnow.algorithms.route.posteriors.tuned import TunedPosteriors, is_tuned


class RffUcb(Ucb):
    """Give each prompt to the arm with the highest mean + eta x deviation of its regression on features.

    It approximates `pak-ucb` with the rbf kernel. A round costs O(D d + K D^2) time, and the state is K
    matrices of 2 D x 2 D, halved by symmetry and stored twice, for any number of rounds.

    The bandwidth is chosen from the scores, unless a number is given: see `TunedPosteriors`. With a number
    the state has this size from the beginning; otherwise the first 4 096 contexts are stored until the last
    choice.

    The features are drawn once, whereas Algorithm 5 would draw new ones in every round and for every arm:
    sums over rounds require the same features. The published program counts the first score of an arm twice;
    this one follows the mathematics.

    Args:
        config: The problem and the common parameters; the kernel must be "rbf".
        n_features: D, the number of frequencies, at least 1; there are 2 D features.
        feature_seed: Seed of the frequencies, non-negative.

    Source: Hu, Leung & Farnia (2025), "An Online Learning Approach to Prompt-based Selection of Generative
    Models and LLMs", ICML, Algorithms 4 and 5.
    """

    def __init__(self, config: RouteConfig, *, n_features: int = 200, feature_seed: int = 0) -> None:

        def make(config: RouteConfig) -> PerArmPosteriors[LinearRidge]:
            return fourier_posteriors(config, RandomFeatures(config, n_features, feature_seed))

        super().__init__(config, TunedPosteriors(config, make) if is_tuned(config) else make(config))
