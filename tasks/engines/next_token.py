"""Bias, penalties and drawing of the next token; V is the size of the vocabulary.

The token with the largest sum of logit and Gumbel noise is drawn. Each token of the vocabulary has its own
noise value, so that draws follow the softmax. Rounding changes a draw only if the two largest sums are about
as close as the rounding error. Campaigns started before this rule draw from the cumulated probabilities. The
distribution is the same, but a rounded logit moves the boundary of every later token: in a vocabulary of
262,144 tokens, 279 of 36,000 draws differed.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from winnow.tasks.engines.protocol import GREEDY_BELOW, Sampling

Row = NDArray[np.floating]


def shifted_logits(logits: Row, sampling: Sampling, prompt: NDArray[np.integer], text: Sequence[int]) -> Row:
    """Logits with the bias, and with the penalties for tokens that have occurred.

    Args:
        logits: Shape (V,); not modified.
        sampling: Settings with the bias and the penalties.
        prompt: Distinct token ids of the prompt.
        text: Token ids generated so far.

    Returns:
        Shape (V,), of the same type.
    """
    penalties = sampling.repetition_penalty, sampling.frequency_penalty, sampling.presence_penalty
    if (sampling.logit_bias, *penalties) == ((), 1.0, 0.0, 0.0):
        return logits
    shifted = logits.copy()
    for token, bias in sampling.logit_bias:
        shifted[token] += bias
    written, counts = np.unique(np.asarray(text, dtype=np.int64), return_counts=True)
    if sampling.repetition_penalty != 1.0:
        seen = np.union1d(prompt, written)
        penalty = sampling.repetition_penalty
        shifted[seen] = np.where(shifted[seen] > 0.0, shifted[seen] / penalty, shifted[seen] * penalty)
    shifted[written] -= sampling.frequency_penalty * counts
    shifted[written] -= sampling.presence_penalty
    return shifted


def choose_token(logits: NDArray[np.floating], sampling: Sampling, rng: np.random.Generator) -> int:
    """Draw a token id: temperature first, then min-p, top-k and top-p, in vLLM's order.

    With Gumbel noise, each draw takes V numbers from the generator, whatever the logits.

    Args:
        logits: Unnormalised log-probabilities, shape (V,); minus infinity excludes a token.
        sampling: Sampling settings; greedy decoding does not use the generator.
        rng: The request's own generator.

    Returns:
        A token id in [0, V).
    """
    if sampling.temperature < GREEDY_BELOW:
        return int(logits.argmax())
    weights = logits.astype(np.float64) / sampling.temperature  # (V,)
    if sampling.min_p > 0.0:
        weights[weights < weights.max() + np.log(sampling.min_p)] = -np.inf
    if 0 < sampling.top_k < weights.size:
        weakest = np.partition(weights, -sampling.top_k)[-sampling.top_k]
        weights[weights < weakest] = -np.inf
    probabilities = np.exp(weights - weights.max())  # (V,)
    probabilities /= probabilities.sum()
    if sampling.top_p < 1.0:
        tokens = np.argsort(-probabilities, kind="stable")  # (V,)
        ordered = probabilities[tokens]
        # A token stays if those before it do not reach top_p yet: the most probable one always does.
        probabilities[tokens[ordered.cumsum() - ordered >= sampling.top_p]] = 0.0
        probabilities /= probabilities.sum()
    if sampling.gumbel:
        # Negative logarithms of these are Gumbel noise; none is 0.
        exponential = np.maximum(rng.standard_exponential(weights.size), np.finfo(np.float64).tiny)  # (V,)
        with np.errstate(divide="ignore"):
            return int((np.log(probabilities) - np.log(exponential)).argmax())
    return int(rng.choice(weights.size, p=probabilities))
