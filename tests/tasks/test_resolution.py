"""What can be shown on new examples is said before a run, by the rule of the claims, with its basis."""

from dataclasses import replace

import pytest

from winnow.tasks.answer.resolution import has_resolution, resolution_of, resolution_words
from winnow.tasks.setup.load import check_campaign_file


def test_the_sentence_names_examples_candidates_difference_and_what_a_smaller_one_needs():
    assert resolution_words(resolution_of(300, 5, 0.18)) == (
        "with 300 examples and 5 candidates, a difference below 6.7 points will probably not be shown on new "
        "examples; 2 points would need about 3,000 examples (5% risk of error, if two candidates "
        "disagree on 18% of the examples)"
    )


@pytest.mark.parametrize(
    ("n_examples", "disagreement", "said"),
    [
        (
            8,
            0.18,
            "with 8 examples and 5 candidates, probably no difference will be shown on new examples; 2",
        ),
        (
            10_000,
            0.18,
            "below 1.1 points will probably not be shown on new examples; 1 point would",
        ),
        (100_000, 0.18, "will probably not be shown on new examples (5% risk"),  # 1 point is shown
        (1_000, 0.015, "; 1 point would need about "),  # no two candidates differ by more than they disagree
        (1_000, 0.0, "probably no difference will be shown on new examples (5% risk"),
    ],
)
def test_what_cannot_be_shown_or_is_shown_already_has_no_number(n_examples, disagreement, said):
    assert said in resolution_words(resolution_of(n_examples, 5, disagreement))


def test_more_candidates_and_fewer_examples_show_less():
    assert resolution_of(300, 20, 0.18).least > resolution_of(300, 2, 0.18).least
    assert resolution_of(100, 5, 0.18).least > resolution_of(300, 5, 0.18).least


def test_it_is_said_only_where_claims_about_all_candidates_are_made(campaign_file):
    plain = check_campaign_file(campaign_file())
    assert has_resolution(plain)
    spec = plain.spec

    def changed(**values):
        return replace(plain, spec=spec.model_copy(update=values))

    dataset = spec.dataset.model_copy(update={"cluster": "input"})
    selector = spec.selector.model_copy(update={"params": {"top_m": 2}})
    gate = spec.selector.model_copy(update={"name": "gate"})
    for other in (
        {"dataset": dataset},
        {"selector": selector},
        {"selector": gate},
        {"objective": "best-duel"},
    ):
        assert not has_resolution(changed(**other)), other
