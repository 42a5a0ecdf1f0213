"""Drawing the next token. V is the size of the vocabulary."""

import torch

from winnow.tasks.engines.protocol import Sampling

GREEDY_BELOW = 1e-5  # dividing logits by less overflows float32; vLLM draws the same line


def choose_token(logits: torch.Tensor, sampling: Sampling, generator: torch.Generator) -> int:
    """Draw one token id: temperature first, then top-k, then top-p, as vLLM orders them.

    Args:
        logits: Unnormalised log-probabilities, shape (V,), on the CPU.
        sampling: How to draw; greedy draws leave the generator untouched.
        generator: The request's own source of randomness, on the CPU.

    Returns:
        A token id in [0, V).
    """
    if sampling.temperature < GREEDY_BELOW:
        return int(logits.argmax())
    logits = logits.double() / sampling.temperature  # (V,)
    if 0 < sampling.top_k < logits.numel():
        weakest = logits.topk(sampling.top_k).values[-1]
        logits = logits.masked_fill(logits < weakest, -torch.inf)
    probabilities = logits.softmax(dim=-1)  # (V,)
    if sampling.top_p < 1.0:
        ordered, tokens = probabilities.sort(descending=True, stable=True)  # (V,), (V,)
        # A token stays when those before it do not reach top_p yet: the most probable one always does.
        beyond = ordered.cumsum(dim=-1) - ordered >= sampling.top_p
        probabilities = probabilities.index_fill(0, tokens[beyond], 0.0)
    return int(torch.multinomial(probabilities, 1, generator=generator))
