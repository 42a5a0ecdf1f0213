import numpy as np
import pytest

from winnow.tasks.engines.next_token import choose_token
from winnow.tasks.engines.protocol import Sampling

PROBABILITIES = np.array([0.05, 0.4, 0.15, 0.3, 0.1])
LOGITS = np.log(PROBABILITIES)


WAYS = pytest.mark.parametrize("gumbel", [False, True], ids=["cumulated", "noise"])


def drawn(**sampling):
    rng = np.random.default_rng(0)
    return {choose_token(LOGITS, Sampling(**sampling), rng) for _ in range(400)}


@WAYS
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
def test_only_the_tokens_that_sampling_allows_are_drawn(sampling, tokens, gumbel):
    assert drawn(**sampling, gumbel=gumbel) == tokens


@WAYS
def test_a_token_that_the_model_rules_out_is_never_drawn_and_logits_are_left_as_they_are(gumbel):
    logits = np.array([-np.inf, 0.0, -np.inf, 0.0, -np.inf], dtype=np.float32)
    before, rng = logits.copy(), np.random.default_rng(3)
    sampling = Sampling(temperature=1.0, top_k=1, gumbel=gumbel)  # both of the two are the first
    assert {choose_token(logits, sampling, rng) for _ in range(100)} == {1, 3}
    assert np.array_equal(logits, before)


def choose_by_noise_of_the_other_sign(logits, sampling, rng):
    """A broken variant: the smallest of many is wanted of such noise."""
    noise = np.log(rng.standard_exponential(logits.size))
    return int((logits / sampling.temperature + noise).argmax())


def choose_by_noise_before_the_temperature(logits, sampling, rng):
    """A broken variant: the noise is divided as the logits are."""
    return int(((logits - np.log(rng.standard_exponential(logits.size))) / sampling.temperature).argmax())


# Pearson's statistic over 5 tokens has 4 degrees of freedom: above 33.4 with probability 1e-6.
LIMIT = 33.4
WARMER = np.sqrt(PROBABILITIES) / np.sqrt(PROBABILITIES).sum()


def misfit(choose, expected, **sampling):
    """Pearson's statistic of 4,000 tokens."""
    rng, way = np.random.default_rng(1), Sampling(**sampling)
    counts = np.bincount([choose(LOGITS, way, rng) for _ in range(4_000)], minlength=5)
    expected = 4_000 * expected
    return float(((counts - expected)[expected > 0] ** 2 / expected[expected > 0]).sum())


@WAYS
@pytest.mark.statistical
def test_tokens_are_drawn_with_the_probabilities_of_their_temperature(gumbel):
    assert misfit(choose_token, WARMER, temperature=2.0, gumbel=gumbel) < LIMIT
    assert misfit(choose_token, PROBABILITIES, temperature=2.0, gumbel=gumbel) > LIMIT  # none forgotten


@WAYS
@pytest.mark.statistical
def test_what_top_p_leaves_is_drawn_with_the_probabilities_left(gumbel):
    left = np.where(PROBABILITIES >= 0.15, PROBABILITIES, 0.0)
    assert misfit(choose_token, left / left.sum(), temperature=1.0, top_p=0.8, gumbel=gumbel) < LIMIT


@pytest.mark.statistical
@pytest.mark.parametrize(
    "broken", [choose_by_noise_of_the_other_sign, choose_by_noise_before_the_temperature]
)
def test_other_noise_is_caught(broken):
    assert misfit(broken, WARMER, temperature=2.0) > LIMIT


VOCABULARY = 200_000
ROUNDING = 5e-5
"""How far logits of a model with 262,144 tokens in float32 were apart in batches of other sizes."""


def changed(n, **sampling):
    """How many of n draws from a large vocabulary are others where each logit is rounded otherwise."""
    world = np.random.default_rng(5)
    logits = world.normal(scale=2.5, size=VOCABULARY).astype(np.float32)
    rounded = logits + world.uniform(-ROUNDING, ROUNDING, size=VOCABULARY).astype(np.float32)
    way = Sampling(temperature=1.0, **sampling)
    return sum(
        choose_token(logits, way, np.random.default_rng(seed))
        != choose_token(rounded, way, np.random.default_rng(seed))
        for seed in range(n)
    )


def test_rounding_changes_no_draw_by_noise_and_several_along_cumulated_probabilities():
    """Of 150 draws; by noise two sums that are closer than the rounding are needed, one in some 10,000."""
    assert changed(150, gumbel=True) == 0
    assert changed(150) > 0


def test_noise_is_the_same_at_each_position_whatever_was_left_out_before():
    rngs = [np.random.default_rng(9) for _ in range(2)]
    for rng, top_k in zip(rngs, (0, 2), strict=True):
        choose_token(LOGITS, Sampling(temperature=1.0, top_k=top_k, gumbel=True), rng)
    assert rngs[0].random() == rngs[1].random()


def test_greedy_choice_leaves_the_generator_alone():
    rng = np.random.default_rng(2)
    before = rng.bit_generator.state
    choose_token(LOGITS, Sampling(), rng)
    assert rng.bit_generator.state == before
