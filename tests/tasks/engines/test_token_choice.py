import numpy as np
import pytest

from winnow.tasks.engines.choices.next_token import choose_token
from winnow.tasks.engines.protocol import Sampling

PROBABILITIES = np.array([0.05, 0.4, 0.15, 0.3, 0.1])
LOGITS = np.log(PROBABILITIES)


def drawn(**sampling):
    rng = np.random.default_rng(0)
    return {choose_token(LOGITS, Sampling(**sampling), rng) for _ in range(400)}


@pytest.mark.parametrize(
    ("sampling", "tokens"),
    [
        ({"temperature": 0.0}, {1}),
        ({"temperature": 1.0}, {0, 1, 2, 3, 4}),
        ({"temperature": 1.0, "top_k": 2}, {1, 3}),
        ({"temperature": 1.0, "top_k": 99}, {0, 1, 2, 3, 4}),
        ({"temperature": 1.0, "top_p": 0.39}, {1}),
        ({"temperature": 1.0, "top_p": 0.6}, {1, 3}),
        ({"temperature": 1.0, "top_p": 0.71}, {1, 3, 2}),
        ({"temperature": 1.0, "top_p": 1e-9}, {1}),
        # Of the two that top-k leaves, the first holds 4/7 of the probability.
        ({"temperature": 1.0, "top_k": 2, "top_p": 0.5}, {1}),
        ({"temperature": 0.02}, {1}),
        ({"temperature": 1.0, "min_p": 0.74}, {1, 3}),
        ({"temperature": 1.0, "min_p": 0.76}, {1}),
        ({"temperature": 1.0, "min_p": 1.0}, {1}),
        # At temperature 2 the second is sqrt(3/4) = 0.87 as probable as the first.
        ({"temperature": 2.0, "min_p": 0.86}, {1, 3}),
        # Of the three that min-p leaves, the first two hold 14/17 of the probability.
        ({"temperature": 1.0, "min_p": 0.3, "top_p": 0.8}, {1, 3}),
    ],
)
def test_only_the_tokens_that_sampling_allows_are_drawn(sampling, tokens):
    assert drawn(**sampling) == tokens


def test_a_token_that_the_model_rules_out_is_never_drawn_and_logits_are_left_as_they_are():
    logits = np.array([-np.inf, 0.0, -np.inf, 0.0, -np.inf], dtype=np.float32)
    before, rng = logits.copy(), np.random.default_rng(3)
    sampling = Sampling(temperature=1.0, top_k=1)  # both of the two are the first
    assert {choose_token(logits, sampling, rng) for _ in range(100)} == {1, 3}
    assert np.array_equal(logits, before)


@pytest.mark.statistical
def test_tokens_are_drawn_with_the_probabilities_of_their_temperature():
    # Pearson's statistic over 5 tokens has 4 degrees of freedom: above 33.4 with probability 1e-6.
    def misfit(expected):
        counts = np.bincount(tokens, minlength=5)
        return float(((counts - 4_000 * expected) ** 2 / (4_000 * expected)).sum())

    rng = np.random.default_rng(1)
    tokens = [choose_token(LOGITS, Sampling(temperature=2.0), rng) for _ in range(4_000)]
    warmer = np.sqrt(PROBABILITIES)
    assert misfit(warmer / warmer.sum()) < 33.4
    assert misfit(PROBABILITIES) > 33.4  # the check catches a forgotten temperature


def test_greedy_choice_leaves_the_generator_alone():
    rng = np.random.default_rng(2)
    before = rng.bit_generator.state
    choose_token(LOGITS, Sampling(), rng)
    assert rng.bit_generator.state == before
