"""Penalties and biases, beside a literal implementation and that of transformers."""

import numpy as np
import pytest
import torch
from transformers import RepetitionPenaltyLogitsProcessor

from winnow.tasks.engines.next_token import shifted_logits
from winnow.tasks.engines.protocol import Sampling

LOGITS = np.random.default_rng(0).normal(size=12).astype(np.float32)  # (V,)
PROMPT, TEXT = np.array([1, 2, 3]), [3, 4, 4, 4, 7]


def literal(sampling):
    found = []
    for token, logit in enumerate(LOGITS.tolist()):
        logit += dict(sampling.logit_bias).get(token, 0.0)
        if token in TEXT or token in PROMPT:
            penalty = sampling.repetition_penalty
            logit = logit / penalty if logit > 0 else logit * penalty
        logit -= sampling.frequency_penalty * TEXT.count(token)
        logit -= sampling.presence_penalty * (token in TEXT)
        found.append(logit)
    return found


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(presence_penalty=0.7),
        Sampling(frequency_penalty=-0.5),
        Sampling(repetition_penalty=1.5),
        Sampling(logit_bias=((3, 2.0), (11, -100.0))),
        Sampling(
            presence_penalty=0.7, frequency_penalty=0.3, repetition_penalty=0.8, logit_bias=((4, -3.0),)
        ),
    ],
)
def test_logits_are_shifted_as_the_literal_rules_say(sampling):
    before = LOGITS.copy()
    found = shifted_logits(LOGITS, sampling, PROMPT, TEXT)
    assert found == pytest.approx(literal(sampling), abs=1e-5)
    assert found.dtype == np.float32
    assert np.array_equal(LOGITS, before)


def test_the_penalty_of_repetition_is_that_of_transformers():
    processor = RepetitionPenaltyLogitsProcessor(1.7)
    ids = torch.tensor([[*PROMPT.tolist(), *TEXT]])
    expected = processor(ids, torch.tensor(LOGITS[None].copy()))[0].numpy()
    found = shifted_logits(LOGITS, Sampling(repetition_penalty=1.7), PROMPT, TEXT)
    assert found == pytest.approx(expected, rel=1e-6)


def test_a_token_that_is_ruled_out_stays_so():
    logits = np.array([-np.inf, 1.0, 0.0], dtype=np.float32)
    sampling = Sampling(repetition_penalty=2.0, presence_penalty=-2.0, logit_bias=((0, 100.0),))
    assert shifted_logits(logits, sampling, np.array([0]), [0])[0] == -np.inf
