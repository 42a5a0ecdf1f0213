"""A text of a large vocabulary does not depend on the size of the groups that it is written in."""

import numpy as np
import torch

from winnow.tasks.engines.protocol import Request, Sampling
from winnow.tasks.engines.transformers.decoding import Decoding

VOCABULARY, N_REQUESTS, LENGTH = 200_000, 64, 2
ROUNDING = 5e-5
"""How far the logits of a model of that size are apart in batches of other sizes, in float32 on a CPU."""
LOGITS = torch.from_numpy(np.random.default_rng(5).normal(scale=2.5, size=VOCABULARY).astype(np.float32))


class Numbers:
    """A tokenizer that spells a token as its number."""

    def decode(self, tokens, **how):
        return " ".join(map(str, tokens))


def texts(size, *, gumbel):
    """The texts of all requests in groups of this size, each of which rounds logits in a way of its own."""
    found = []
    for start in range(0, N_REQUESTS, size):
        numbers = range(start, min(start + size, N_REQUESTS))
        way = Sampling(temperature=1.0, max_tokens=LENGTH, gumbel=gumbel)
        requests = [Request(prompt="p", sampling=way, seed=number) for number in numbers]
        room, prompts = [LENGTH] * len(requests), [[1]] * len(requests)
        decoding = Decoding(Numbers(), requests, prompts, room, frozenset())
        rounding = torch.Generator().manual_seed(len(requests))
        for _ in range(LENGTH):
            noise = (torch.rand(VOCABULARY, generator=rounding) * 2 - 1) * ROUNDING
            rows = torch.stack([LOGITS.roll(number) + noise for number in numbers])
            decoding.append(decoding.draw(rows))
        found += [row.text for row in decoding.finished_rows()]
    return found


def test_groups_of_32_and_of_7_write_the_same_texts_by_noise():
    assert texts(32, gumbel=True) == texts(7, gumbel=True)


def test_along_cumulated_probabilities_they_do_not():
    assert texts(32, gumbel=False) != texts(7, gumbel=False)
