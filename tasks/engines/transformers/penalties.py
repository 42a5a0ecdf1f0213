"""What is done to the logits of the next token before one is drawn, as in vLLM. V: size of the vocabulary."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from winnow.tasks.engines.protocol import Sampling

Row = NDArray[np.floating]


def shifted_logits(logits: Row, sampling: Sampling, prompt: NDArray[np.integer], text: Sequence[int]) -> Row:
    """The logits with their bias and the penalties for what was said already.

    Args:
        logits: Shape (V,); left as they are.
        sampling: Whose bias and penalties count.
        prompt: The different token ids of the prompt.
        text: The token ids generated so far.

    Returns:
        Shape (V,), of the same type.
    """
    if (sampling.logit_bias, *_penalties(sampling)) == ((), 1.0, 0.0, 0.0):
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


def _penalties(sampling: Sampling) -> tuple[float, float, float]:
    return sampling.repetition_penalty, sampling.frequency_penalty, sampling.presence_penalty
