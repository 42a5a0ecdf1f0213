"""Drawing the next token. V is the size of the vocabulary."""

import numpy as np
from numpy.typing import NDArray

from winnow.tasks.engines.protocol import Sampling

GREEDY_BELOW = 1e-5  # dividing logits by less overflows float32; vLLM draws the same line


def choose_token(logits: NDArray[np.floating], sampling: Sampling, rng: np.random.Generator) -> int:
    """Draw one token id: temperature first, then top-k, then top-p, as vLLM orders them.

    Args:
        logits: Unnormalised log-probabilities, shape (V,); minus infinity rules a token out.
        sampling: How to draw; greedy draws leave the generator untouched.
        rng: The request's own source of randomness.

    Returns:
        A token id in [0, V).
    """
    if sampling.temperature < GREEDY_BELOW:
        return int(logits.argmax())
    weights = logits.astype(np.float64) / sampling.temperature  # (V,)
    if 0 < sampling.top_k < weights.size:
        weakest = np.partition(weights, -sampling.top_k)[-sampling.top_k]
        weights[weights < weakest] = -np.inf
    probabilities = np.exp(weights - weights.max())  # (V,)
    probabilities /= probabilities.sum()
    if sampling.top_p < 1.0:
        tokens = np.argsort(-probabilities, kind="stable")  # (V,)
        ordered = probabilities[tokens]
        # A token stays when those before it do not reach top_p yet: the most probable one always does.
        probabilities[tokens[ordered.cumsum() - ordered >= sampling.top_p]] = 0.0
        probabilities /= probabilities.sum()
    return int(rng.choice(weights.size, p=probabilities))
