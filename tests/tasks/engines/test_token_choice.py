import pytest
import torch

from winnow.tasks.engines.choices.token_choice import choose_token
from winnow.tasks.engines.protocol import Sampling

PROBABILITIES = torch.tensor([0.05, 0.4, 0.15, 0.3, 0.1])
LOGITS = PROBABILITIES.log()


def drawn(**sampling):
    generator = torch.Generator().manual_seed(0)
    return {choose_token(LOGITS, Sampling(**sampling), generator) for _ in range(400)}


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
    ],
)
def test_only_the_tokens_that_sampling_allows_are_drawn(sampling, tokens):
    assert drawn(**sampling) == tokens


@pytest.mark.statistical
def test_tokens_are_drawn_with_the_probabilities_of_their_temperature():
    # Pearson's statistic over 5 tokens has 4 degrees of freedom: above 33.4 with probability 1e-6.
    def misfit(expected):
        counts = torch.bincount(torch.tensor(tokens), minlength=5)
        return float(((counts - 4_000 * expected) ** 2 / (4_000 * expected)).sum())

    generator = torch.Generator().manual_seed(1)
    tokens = [choose_token(LOGITS, Sampling(temperature=2.0), generator) for _ in range(4_000)]
    assert misfit(torch.softmax(LOGITS / 2.0, dim=-1)) < 33.4
    assert misfit(PROBABILITIES) > 33.4  # the check catches a forgotten temperature


def test_greedy_choice_leaves_the_generator_alone():
    generator = torch.Generator().manual_seed(2)
    before = generator.get_state()
    choose_token(LOGITS, Sampling(), generator)
    assert torch.equal(generator.get_state(), before)
