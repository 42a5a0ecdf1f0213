"""What an undecided campaign would still take: continued on plausible scores, and said as an estimate."""

import numpy as np
import pytest
from stored_campaigns import NOW, new_database, store_campaign

from winnow.algorithms.champion.continuations import Observed, plausible_scores, remaining
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector
from winnow.storage.models import Campaign
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import outcomes as outcome_records
from winnow.tasks.answer import next_step
from winnow.tasks.answer.earlier_campaigns import held_out_positions
from winnow.tasks.answer.sentences.answer_lines import answer_lines
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.rounds.record import as_record
from winnow.tasks.text.phrases import about

RIGHT = 0.62, 0.6, 0.58, 0.5, 0.3


def table(seed, right=RIGHT, n_examples=240):
    """Scores of 0 and 1 that agree on some examples, shape (K, N)."""
    rng = np.random.default_rng(seed)
    easy = rng.standard_normal(n_examples)
    means = np.array(right)[:, np.newaxis]
    return ((0.6 * easy + 0.8 * rng.standard_normal((len(right), n_examples))) < 3 * (means - 0.5)).astype(
        float
    )


def begun(n_arms, n_examples, **params):
    """A champion without observations that computes no intervals."""
    settings = {"batch_size": 16, "delta": 0.05, "ties": "open"} | params
    selector = create_selector("champion", n_arms=n_arms, n_examples=n_examples, **settings)
    selector.leave_out_intervals()
    return selector


def played(scores, until, seed, **params):
    """The estimate after about so many comparisons, and what was taken from there; None if it had stopped."""
    selector, asked = begun(*scores.shape, **params), np.zeros(scores.shape, dtype=bool)
    estimate, spent, rounds = None, 0, 0
    while len(batch := selector.ask(round_rng(seed, rounds))):
        selector.tell(batch, scores[batch.arms, batch.examples])
        asked[batch.arms, batch.examples] = True
        spent, rounds = spent + len(batch), rounds + 1
        if spent >= until and estimate is None:
            if selector.decision().stop:
                return None
            observed = Observed(np.where(asked, scores, np.nan), asked.copy())
            estimate, at = remaining(selector, observed, np.random.default_rng(seed)), spent
    return None if estimate is None else (estimate, spent - at)


def test_what_is_said_is_about_what_is_taken():
    """Median said / taken within 0.7 to 1.4, and 80% ranges that hold what was taken in more than half."""
    found = [
        each
        for seed in range(6)
        for params, until in (({}, 100), ({"epsilon": 0.05}, 150), ({"start": "champion"}, 200))
        if (each := played(table(seed, n_examples=120), until, seed, **params)) is not None
    ]
    assert len(found) > 14
    ratios = np.array([said.comparisons / taken for said, taken in found])
    assert 0.7 < np.median(ratios) < 1.4
    assert np.mean([said.fewest <= taken <= said.most for said, taken in found]) > 0.55


def test_all_that_are_open_are_priced_and_not_two_alone():
    """Of five that are alike, the estimate is far above what the best two would need to separate."""
    scores = table(3, right=(0.6,) * 5)
    said, _ = played(scores, 120, 3)
    of_two, _ = played(scores[:2], 48, 3)
    assert said.comparisons > 1.5 * of_two.comparisons


def test_a_continuation_keeps_what_was_observed_and_leaves_the_selector_as_it_is():
    scores, selector = table(1), begun(5, 240)
    asked = np.zeros(scores.shape, dtype=bool)
    for number in range(6):
        batch = selector.ask(round_rng(1, number))
        selector.tell(batch, scores[batch.arms, batch.examples])
        asked[batch.arms, batch.examples] = True
    observed, before = Observed(np.where(asked, scores, np.nan), asked), selector.decision()
    completed = plausible_scores(observed, np.arange(5), None, np.random.default_rng(0))
    assert np.array_equal(completed[asked], scores[asked])
    assert np.isin(completed, (0.0, 1.0)).all()
    first, again = (remaining(selector, observed, np.random.default_rng(2)) for _ in range(2))
    assert first == again
    assert selector.decision() == before


@pytest.mark.parametrize("kind", ["common", "apart", "filled"])
def test_plausible_scores_have_the_means_that_were_observed(kind):
    """Over many draws the mean of an arm is about the observed one, for the three ways to choose donors."""
    rng = np.random.default_rng(5)
    scores = np.clip(rng.normal(0.5, 0.2, (3, 100)) + np.array([[0.1], [0.0], [-0.1]]), 0.0, 1.0)
    asked = np.zeros(scores.shape, dtype=bool)
    asked[:, :50] = True
    if kind != "common":
        asked[:] = rng.permuted(asked, axis=1)
    if kind == "filled":
        asked[0] = True
    observed = Observed(np.where(asked, scores, np.nan), asked)
    champion = 0 if kind == "filled" else None
    drawn = [plausible_scores(observed, np.arange(3), champion, rng).mean(axis=1) for _ in range(200)]
    seen = np.nanmean(observed.scores, axis=1)
    assert np.abs(np.mean(drawn, axis=0) - seen).max() < 0.03
    assert np.all((np.min(drawn, axis=0) >= 0.0) & (np.max(drawn, axis=0) <= 1.0))
    assert np.std(drawn, axis=0)[1] > 0.005


def test_common_examples_keep_the_scores_of_all_arms_together():
    """Two arms that were equal on all common examples mostly stay so; donors of their own would differ."""
    rng = np.random.default_rng(6)
    row = (rng.random(200) < 0.5).astype(float)
    asked = np.zeros((2, 200), dtype=bool)
    asked[:, :100] = True
    observed = Observed(np.where(asked, [row, row], np.nan), asked)
    completed = plausible_scores(observed, np.arange(2), None, rng)
    assert np.mean(completed[0] != completed[1]) < 0.15


def store_undecided(
    path, scores, budget=160, *, name="letters", holdout=None, unscored=(), params=None, **spec
):
    """A stored campaign of champion that its budget has ended; comparisons of these numbers have no score."""
    n_arms, n_examples = scores.shape
    given = {"epsilon": 0.0, "delta": 0.05} | spec
    campaign = store_campaign(
        new_database(path), name, n_examples=n_examples, budget=budget, names="abcde"[:n_arms], **given
    )
    identity = {
        "objective": "best-mean",
        "stopping": {**given, "ties": "open"},
        "selector": {"name": "champion", "params": params or {}},
        "batch_size": 16,
        "fail_on_error": 0.5,
        "holdout": holdout,
    }
    with campaign.database.writing() as session:
        session.get_one(Campaign, campaign.record.id).spec = identity
    with campaign.database.reading() as session:
        record = campaign_records.get_campaign(session, name)
        kept = sorted({*range(n_examples)} - held_out_positions(Look(session, record)))
    selector = create_selector(
        "champion",
        n_arms=n_arms,
        n_examples=len(kept),
        batch_size=16,
        budget=budget,
        ties="open",
        **given,
        **(params or {}),
    )
    rounds, spent = 0, 0
    while len(batch := selector.ask(round_rng(7, rounds))):
        positions = np.array(kept)[batch.examples]
        outcomes = scores[batch.arms, positions]
        outcomes[[at - spent for at in unscored if 0 <= at - spent < len(batch)]] = np.nan
        selector.tell(batch, outcomes)
        decided = as_record(selector.decision(), campaign.candidate_ids)
        round_ = campaign.plan(rounds, batch.arms.tolist(), positions.tolist())
        told = [None if np.isnan(each) else float(each) for each in outcomes]
        with campaign.database.writing() as session:
            outcome_records.add_outcomes(session, round_.id, campaign.comparisons(round_, told), decided, NOW)
        rounds, spent = rounds + 1, spent + len(batch)
    return campaign.database, record


def lines_of(database, record, *, in_full=True):
    with database.reading() as session:
        status = campaign_status(Look(session, record), in_full=in_full)
        return dict(answer_lines(status.answer)), status.answer


@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_an_undecided_answer_says_what_would_settle_it_as_an_estimate(tmp_path, epsilon):
    database, record = store_undecided(tmp_path / "w.db", table(2)[:3], epsilon=epsilon)
    lines, answer = lines_of(database, record)
    said = answer.next_step
    assert 0 < said.fewest <= said.comparisons <= said.most <= 3 * 240
    better = "better by more than 0.05" if epsilon else "better"
    number, fewest, most = (about(each) for each in (said.comparisons, said.fewest, said.most))
    assert lines["next"] == (
        f"about {number} more comparisons ({fewest} to {most} in 80% of simulated continuations) until it is "
        f"shown that no other candidate is {better}: an estimate, not a claim"
    )
    assert lines_of(database, record)[1].next_step == said
    assert "next" not in lines_of(database, record, in_full=False)[0]


def test_the_m_best_are_priced_as_what_they_are(tmp_path):
    database, record = store_undecided(tmp_path / "w.db", table(2), 200, params={"top_m": 2})
    lines, answer = lines_of(database, record)
    assert answer.next_step.comparisons > 0
    assert (
        "until it is shown that no candidate outside of the 2 best is better than one of them"
        in lines["next"]
    )


def test_held_out_examples_and_unscored_comparisons_are_replayed_as_they_were(tmp_path):
    database, record = store_undecided(tmp_path / "w.db", table(2)[:3], holdout=0.25, unscored=(3, 40))
    _, answer = lines_of(database, record)
    assert answer.n_examples == 180
    assert 0 < answer.next_step.comparisons <= 3 * 180 - 140


@pytest.mark.parametrize(
    ("changes", "because"),
    [
        ({"selector": {"name": "ucb-e", "params": {}}}, "the selector ucb-e is not simulated"),
        (
            {"selector": {"name": "champion", "params": {"prefer": "cost", "costs": {}}}},
            "the search for the cheapest candidate is not simulated",
        ),
        (
            {"groups": {"by": "input", "objective": "worst", "weights": "equal"}},
            "a comparison of means of groups is not simulated",
        ),
        (
            {"constraints": [{"metric": "length", "at_least": 0.5, "at_most": None}]},
            "a search among candidates that meet constraints is not simulated",
        ),
        ({"fail_on_error": 7.0}, "the stored rounds cannot be replayed"),
    ],
)
def test_where_it_is_not_estimated_the_line_says_why(tmp_path, changes, because):
    database, record = store_undecided(tmp_path / "w.db", table(2)[:3])
    with database.writing() as session:
        row = session.get_one(Campaign, record.id)
        row.spec = {**row.spec, **changes}
    with database.reading() as session:
        record = campaign_records.get_campaign(session, record.name)
    lines, answer = lines_of(database, record)
    assert answer.next_step.comparisons is None
    assert lines["next"] == f"the number of further comparisons is not estimated: {because}"


def test_a_campaign_that_is_too_large_is_not_simulated(tmp_path, monkeypatch):
    database, record = store_undecided(tmp_path / "w.db", table(2)[:3])
    monkeypatch.setattr(next_step, "MOST_TOLD", 100)
    lines, _ = lines_of(database, record)
    assert lines["next"].endswith("the campaign is too large to be simulated")


def test_scores_that_are_missing_for_good_leave_it_open(tmp_path):
    """Both rows are full, and what they lack could make either the better one, so nothing more settles it."""
    scores = np.zeros((2, 20))
    scores[:, :10] = 1.0
    database, record = store_undecided(tmp_path / "w.db", scores, 36, unscored=range(0, 30, 3))
    lines, _ = lines_of(database, record)
    assert lines["next"].endswith("missing scores would probably leave it open even if all else were scored")


def test_a_settled_campaign_has_no_next_step(tmp_path):
    scores = np.zeros((3, 240))
    scores[0] = 1.0
    database, record = store_undecided(tmp_path / "w.db", scores, 720)
    lines, answer = lines_of(database, record)
    assert answer.outcome == "winner"
    assert "next" not in lines


def test_counts_are_said_with_two_digits():
    assert [about(each) for each in (0, 7, 85, 537, 1_749, 12_345)] == [
        "0",
        "7",
        "85",
        "540",
        "1,700",
        "12,000",
    ]
