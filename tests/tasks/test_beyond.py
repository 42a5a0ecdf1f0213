"""What an answer says of new examples."""

import pytest
from stored_campaigns import store_campaign

from tasks.answer import beyond
from tasks.answer.model import AnswerClaim
from tasks.answer.words import answer_lines
from tasks.status import campaign_status

PROVEN = {"kind": "proven", "delta": 0.05, "assumptions": []}


@pytest.fixture
def ended(database, monkeypatch):
    """A campaign that ended; b and a were both scored on all five examples, c on one."""
    monkeypatch.setattr(beyond, "LEAST", 5)
    campaign = store_campaign(database)
    round_ = campaign.plan(0, [0] * 5 + [1] * 5 + [2], [*range(5), *range(5), 0])
    scores = [1.0, 0.0, 1.0, 0.0, 0.5, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0]
    campaign.finish(
        round_,
        scores,
        best=1,
        stop=True,
        reason="confident",
        claim=PROVEN,
        estimates=[0.5, 0.8, 0.6],
        lower=[0.4, 0.7, 0.0],
        upper=[0.6, 0.9, 0.7],
        status=["eliminated", "best", "dropped"],
    )
    return campaign


def full(campaign):
    with campaign.database.reading() as session:
        return campaign_status(session, campaign.record, in_full=True).answer


def test_the_winner_is_compared_with_its_closest_rival_that_was_not_dropped(ended):
    found = full(ended).beyond
    assert (found.winner, found.rival, found.n) == ("b", "a", 5)
    assert found.difference == pytest.approx(0.3)
    assert -1.0 <= found.lower < 0.3 < found.upper <= 1.0


def test_it_is_said_with_all_that_it_takes_for_granted(ended):
    said = dict(answer_lines(full(ended)))["beyond"]
    assert said.startswith("on new examples like these: b scores +0.300 against a, between -")
    assert "5 examples, taken as a random sample" in said
    assert said.endswith("95%, for all pairs of candidates at once)")


def test_too_few_examples_say_nothing(ended, monkeypatch):
    monkeypatch.setattr(beyond, "LEAST", 6)
    found = full(ended).beyond
    assert (found.n, found.difference, found.lower) == (5, None, None)
    said = dict(answer_lines(full(ended)))["beyond"]
    assert said == "nothing follows for new examples: only 5 examples were scored for both b and a"


def test_a_campaign_that_goes_on_says_nothing_of_it(campaign):
    campaign.finish(campaign.plan(0, [0, 1], [0, 0]), [1.0, 0.0], best=0, estimates=[1.0, 0.0, None])
    answer = full(campaign)
    assert (answer.beyond, answer.claim) == (None, AnswerClaim())
