"""Examples that selection never sees: which they are, who is scored on them, and what may be said then."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries
from scipy.stats import binom
from stored_campaigns import NOW, store_campaign

from winnow.algorithms.bounds.mean_interval import mean_interval
from winnow.algorithms.errors import MalformedBatch
from winnow.algorithms.protocols import Batch, round_rng
from winnow.algorithms.registry import create_selector
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records.record_types import DecisionRecord, NewExample
from winnow.tasks.answer.earlier_campaigns import Earlier, earlier_of, held_out_positions
from winnow.tasks.answer.model import Answer, Claim
from winnow.tasks.answer.sentences.answer_lines import answer_lines
from winnow.tasks.answer.sentences.clauses import MIXED
from winnow.tasks.answer.sentences.new_examples import held_out_lines
from winnow.tasks.campaign.budget import BudgetUsage
from winnow.tasks.campaign.changed_models import CanaryChange
from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import SpecError
from winnow.tasks.objectives.best_mean.holdout.results import (
    LEVEL,
    HeldOut,
    completed,
    held_out_of,
    others_came_first,
)
from winnow.tasks.objectives.best_mean.holdout.selector import HoldoutSelector, finalists
from winnow.tasks.objectives.best_mean.holdout.split import (
    Split,
    selection_budget,
    selection_keys,
    split_examples,
    stored_split,
)
from winnow.tasks.queries.held_out import scored_words
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.queries.views import ask
from winnow.tasks.setup.load import check_campaign_file, exhaustive_campaign
from winnow.tasks.simulation.forecast.requests import Player
from winnow.tasks.spec.identity_keys import has_the_same_scores

KEYS = [f"e{i}" for i in range(30)]


def a_split(n=30, share=0.3, seed=7):
    return split_examples([f"e{i}" for i in range(n)], share=share, seed=seed)


def test_the_split_is_the_order_of_digests_of_seed_and_key():
    def number(key):
        text = json.dumps(["holdout", 7, key], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    expected = sorted(KEYS, key=number)
    split = a_split()
    assert [KEYS[i] for i in split.held_out] == expected[:9]
    assert [KEYS[i] for i in split.selection] == sorted(expected[9:], key=KEYS.index)


def test_the_split_depends_on_keys_and_seed_and_not_on_the_order_of_rows():
    backwards = split_examples(KEYS[::-1], share=0.3, seed=7)
    assert [KEYS[::-1][i] for i in backwards.held_out] == [KEYS[i] for i in a_split().held_out]
    assert backwards.fingerprint == a_split().fingerprint != a_split(seed=8).fingerprint


def test_every_example_is_held_out_as_often_as_its_share_says():
    """False alarms: 30 binomial counts at 1e-4 each way, so at most 0.6%."""
    counts = np.zeros(30, dtype=int)
    for seed in range(1000):
        counts[a_split(seed=seed).held_out] += 1
    low, high = binom.ppf([1e-4, 1 - 1e-4], 1000, 0.3)
    assert ((low <= counts) & (counts <= high)).all()


@pytest.mark.parametrize(("n", "share"), [(30, 0.04), (30, 0.96), (3, 0.5), (2, 0.5)])
def test_too_few_examples_on_a_side_are_refused(n, share):
    with pytest.raises(SpecError, match="are needed on either side; change holdout, or add examples"):
        a_split(n, share)


@pytest.mark.parametrize(
    ("best", "estimates", "status", "expected"),
    [
        (None, [0.5, 0.6], ["dropped", "dropped"], []),
        (0, [0.5, None], ["best", "active"], [0]),
        (0, [0.9, 0.95, 0.2], ["best", "dropped", "eliminated"], [0, 2]),
        (2, [0.5, 0.5, 0.7], ["active"] * 3, [2, 0]),
        (1, [np.nan, 0.5, 0.4], ["active"] * 3, [1, 2]),
    ],
)
def test_the_finalists_are_the_best_and_the_closest_of_those_that_are_left(best, estimates, status, expected):
    assert finalists(best, estimates, status) == expected


def a_selector(split, name="ucb-e", n_arms=4, limit=None, batch_size=5, **params):
    inner = create_selector(
        name,
        n_arms=n_arms,
        n_examples=len(split.selection),
        budget=selection_budget(limit, split),
        batch_size=batch_size,
        **params,
    )
    return HoldoutSelector(inner, split, limit=limit, batch_size=batch_size)


def played(selector, scores, seed=0):
    """Rounds, as a campaign plays them, until nothing is asked."""
    told = []
    for number in range(10_000):
        batch = selector.ask(round_rng(seed, number))
        if len(batch) == 0:
            return told
        selector.tell(batch, scores[batch.arms, batch.examples])
        told.append(batch)
    raise AssertionError("it never ends")


@tries(15)
@given(
    seed=st.integers(0, 2**32 - 1),
    share=st.sampled_from([0.1, 0.3, 0.6]),
    limit=st.one_of(st.none(), st.integers(50, 130)),
    name=st.sampled_from(["ucb-e", "champion", "row-mean"]),
    delta=st.sampled_from([None, 0.3]),
)
def test_selection_never_sees_what_is_held_out_and_the_finalists_see_all_of_it(
    seed, share, limit, name, delta
):
    split = a_split(30, share)
    rng = np.random.default_rng(seed)
    scores = np.where(rng.random((4, 30)) < 0.1, np.nan, rng.random((4, 30)).round())
    selector = a_selector(split, name, limit=limit, delta=delta)
    told = played(selector, scores, seed)
    decision = selector.decision()
    pairs = [
        (arm, int(example)) for batch in told for arm, example in zip(batch.arms, batch.examples, strict=True)
    ]
    assert decision.stop
    assert len(set(pairs)) == len(pairs) <= (limit or len(pairs))
    held_out = set(split.held_out.tolist())
    chosen = finalists(decision.best, decision.estimates.tolist(), decision.status)
    asked = {(arm, example) for arm, example in pairs if example in held_out}
    assert asked == {(arm, example) for arm in chosen for example in held_out}
    # The decision is that of the algorithm on its own part.
    alone = create_selector(
        name, n_arms=4, n_examples=len(split.selection), budget=selection_budget(limit, split), batch_size=5,
        delta=delta,
    )  # fmt: skip
    numbers = {int(position): number for number, position in enumerate(split.selection)}
    for batch in told:
        if int(batch.examples[0]) in numbers:
            mapped = np.array([numbers[int(each)] for each in batch.examples])
            alone.tell(Batch(batch.arms, mapped), scores[batch.arms, batch.examples])
    assert alone.decision() == decision
    # A fresh one that is told the same goes on, and ends, alike from every round on.
    again = a_selector(split, name, limit=limit, delta=delta)
    for number, batch in enumerate(told):
        assert again.ask(round_rng(seed, number)) == batch
        again = a_selector(split, name, limit=limit, delta=delta)
        for earlier in told[: number + 1]:
            again.tell(earlier, scores[earlier.arms, earlier.examples])
    assert again.decision() == decision


@pytest.mark.parametrize("limit", [None, 60])
def test_resumed_among_batches_in_flight_it_goes_on_as_the_original_and_asks_the_finalists_last(limit):
    split = a_split()
    scores = np.where(np.random.default_rng(4).random((4, 30)) < [[0.1], [0.9], [0.5], [0.3]], 1.0, 0.0)
    original = a_selector(split, "champion", limit=limit, delta=0.2)
    waiting, told, asked, at_once = [], [], 0, set()
    while True:
        resumed = a_selector(split, "champion", limit=limit, delta=0.2)
        for batch in told:
            resumed.tell(batch, scores[batch.arms, batch.examples])
        for batch in waiting:
            resumed.take_up(batch)
        assert resumed.decision() == original.decision()
        while len(waiting) < 3 and len(batch := original.ask(round_rng(1, asked))):
            assert resumed.ask(round_rng(1, asked)) == batch
            waiting.append(batch)
            asked += 1
        at_once.add(tuple(batch.examples[0] in split.held_out for batch in waiting))
        if not waiting:
            break
        told.append(waiting.pop(0))
        original.tell(told[-1], scores[told[-1].arms, told[-1].examples])
    assert sum(map(len, told)) <= (limit or 120)
    assert {(False,) * 3, (True,) * 3, ()} <= at_once
    assert all(len(set(kinds)) <= 1 for kinds in at_once)
    assert original.decision().stop


@given(seed=st.integers(0, 500), bound=st.sampled_from([0.4, 0.8, 1.0]))
@tries(15)
def test_where_constraints_have_to_be_met_the_winner_alone_sees_what_is_held_out(seed, bound):
    split = split_examples(KEYS, share=0.3, seed=7, has_constraints=True)
    params = {"n_examples": len(split.selection), "batch_size": 5, "delta": 0.3}
    params |= {"n_arms": 4, "constraints": np.array([bound])}
    rng = np.random.default_rng(seed)
    told = (rng.random((4, 30, 2)) < rng.uniform(0.3, 1.0, (4, 1, 2))).astype(float)
    inner, alone = (create_selector("champion", **params) for _ in range(2))
    selector = HoldoutSelector(inner, split, limit=None, batch_size=5)
    numbers = {int(position): number for number, position in enumerate(split.selection)}
    asked = set()
    for number in range(60):
        batch = selector.ask(round_rng(seed, number))
        if len(batch) == 0:
            break
        outcomes = told[batch.arms, batch.examples]
        selector.tell(batch, outcomes)
        if int(batch.examples[0]) in numbers:
            mapped = np.array([numbers[int(each)] for each in batch.examples])
            alone.tell(Batch(batch.arms, mapped), outcomes)
        else:
            asked |= set(zip(batch.arms.tolist(), batch.examples.tolist(), strict=True))
    decision = selector.decision()
    assert decision.stop
    assert decision == alone.decision()  # whatever was held out
    best = [] if decision.best is None else [decision.best]
    assert asked == {(arm, example) for arm in best for example in split.held_out.tolist()}


def test_it_goes_on_until_the_finalists_are_scored_and_keeps_the_claim():
    split = a_split()
    scores = np.tile([[0.0], [1.0], [0.4], [0.2]], 30)
    selector = a_selector(split, "champion", delta=0.05)
    seen = set()
    for number in range(1000):
        decision = selector.decision()
        batch = selector.ask(round_rng(3, number))
        if len(batch) == 0:
            break
        if batch.examples[0] in split.held_out:
            assert (decision.stop, decision.reason, decision.claim.kind) == (False, "confident", "proven")
            seen.add(tuple(batch.arms.tolist()))
        selector.tell(batch, scores[batch.arms, batch.examples])
    assert seen
    assert selector.decision().stop
    assert selector.decision().reason == "confident"


def test_a_limit_that_ends_it_before_says_so():
    split = a_split()
    scores = np.tile([[0.0], [1.0], [0.4], [0.2]], 30)
    # As where a raised budget has another winner than the one that was scored.
    inner = create_selector("row-mean", n_arms=4, n_examples=21, budget=22, batch_size=5)
    cut = HoldoutSelector(inner, split, limit=27, batch_size=5)
    assert sum(len(batch) for batch in played(cut, scores)) == 27
    decision = cut.decision()
    assert (decision.stop, decision.reason, decision.claim.kind) == (True, "budget", "heuristic")
    assert len(cut.ask(round_rng(0, 6))) == 0


def test_a_budget_that_what_is_in_flight_passes_asks_nothing_further():
    split = a_split()
    scores = np.tile([[0.0], [1.0], [0.4], [0.2]], 30)
    whole = a_selector(split, "champion", delta=0.05)
    told = []
    while (batch := whole.ask(round_rng(0, len(told)))).examples[0] not in split.held_out:
        whole.tell(batch, scores[batch.arms, batch.examples])
        told.append(batch)
    # Resumed by a lower budget: fewer pairs are left than were asked for.
    room = 2
    assert room < len(batch)
    lower = HoldoutSelector(
        create_selector("champion", n_arms=4, n_examples=len(split.selection), batch_size=5, delta=0.05),
        split,
        limit=sum(map(len, told)) + room,
        batch_size=5,
    )
    for each in told:
        lower.tell(each, scores[each.arms, each.examples])
    lower.take_up(batch)
    assert len(lower.ask(round_rng(0, len(told) + 1))) == 0


def test_a_batch_of_both_parts_is_refused():
    split = a_split()
    mixed = Batch(np.array([0, 0]), np.array([split.held_out[0], split.selection[0]]))
    with pytest.raises(MalformedBatch, match="all held out, or none of them"):
        a_selector(split).tell(mixed, [1.0, 1.0])


STANDING = HeldOut(
    n_examples=40, n_selection=60, winner="a", runner_up="b", told=40, scored=40, is_complete=True
)


def test_the_interval_holds_for_new_examples_and_the_one_of_selection_does_not():
    """500 equal arms on 40 + 40 examples: the best of selection is flattered there, and not on the others.

    At most 5% of 60 runs may miss: more than 10 have probability 2e-4. Of the broken variant, which takes the
    scores that the winner was chosen by, three in four do.
    """
    true, missed, missed_by_selection = 0.7, 0, 0
    for seed in range(60):
        split = a_split(80, 0.5, seed)
        scores = (np.random.default_rng([seed, 1]).random((500, 80)) < true).astype(float)
        selector = a_selector(split, "row-mean", n_arms=500, batch_size=20_000, intervals=False)
        played(selector, scores, seed)
        best, second = finalists(
            selector.decision().best, selector.decision().estimates.tolist(), selector.decision().status
        )
        found = completed(
            STANDING, scores[best, split.held_out].tolist(), scores[second, split.held_out].tolist()
        )
        missed += not (
            found.lower <= true <= found.upper and found.difference_lower <= 0.0 <= found.difference_upper
        )
        lower, upper = mean_interval(scores[best, split.selection], LEVEL / 2)
        missed_by_selection += not lower <= true <= upper
    assert missed <= 10 < missed_by_selection


def test_the_interval_of_what_has_to_be_met_holds_for_new_examples_and_that_of_selection_does_not():
    """200 arms that meet a constraint equally often, of which the one is chosen that met it most often.

    A chance of at most 5% in 200 campaigns to miss: 35 or more happen with probability 1e-9.
    """
    split, rng = a_split(80, 0.5), np.random.default_rng(11)
    missed = missed_by_selection = 0
    for _ in range(200):
        values = (rng.random((200, 80)) < 0.8).astype(float)
        best = int(values[:, split.selection].mean(axis=1).argmax())
        held_out = {"valid at least 0.9": values[best, split.held_out].tolist()}
        found = completed(STANDING, [1.0] * len(split.held_out), values=held_out)
        (value,) = found.values
        missed += not value.lower <= 0.8 <= value.upper
        lower, upper = mean_interval(values[best, split.selection], LEVEL / 2)
        missed_by_selection += not lower <= 0.8 <= upper
    assert missed < 35 < missed_by_selection


def test_a_value_that_is_missing_counts_at_its_worst_and_all_intervals_share_their_level():
    values = {"a at least 0.9": [1.0, None] * 20, "b at most 0.5": [0.0] * 40, "c at least 1": [None] * 40}
    found = completed(STANDING, [1.0] * 40, values=values)
    assert found.lower == mean_interval(np.ones(40), LEVEL / 4)[0]
    first, second, third = found.values
    assert (first.mean, first.valued) == (1.0, 20)
    assert first.lower == mean_interval(np.array([1.0, 0.0] * 20), LEVEL / 4)[0]
    assert first.upper == mean_interval(np.ones(40), LEVEL / 4)[1]
    assert (second.mean, second.valued, second.lower) == (0.0, 40, 0.0)
    assert (third.mean, third.valued, third.lower, third.upper) == (None, 0, 0.0, 1.0)
    said = [line for key, line in held_out_lines(replace(ANSWER, held_out=found)) if key == "held out"]
    assert "this interval and the next 3 all hold with probability 95%" in said[0]
    assert said[1].startswith("a at least 0.9: 1.000 on these (20 without an outcome: excluded here")
    assert said[1].endswith("(together with the interval above)")
    assert said[3] == "c at least 1: not known, none of the 40 comparisons has a value"


def test_what_has_no_outcome_counts_at_its_worst():
    ours, theirs = [1.0, None, 0.0, 1.0] * 10, [0.5, 0.5, None, 0.0] * 10
    found = completed(STANDING, ours, theirs)
    assert found.mean == pytest.approx(2 / 3)
    assert found.lower == mean_interval(np.array([1.0, 0.0, 0.0, 1.0] * 10), LEVEL / 2)[0]
    assert found.upper == mean_interval(np.array([1.0, 1.0, 0.0, 1.0] * 10), LEVEL / 2)[1]
    assert (found.both_scored, found.difference) == (20, 0.75)
    least, most = np.array([0.5, -0.5, -1.0, 1.0] * 10), np.array([0.5, 0.5, 0.0, 1.0] * 10)
    assert found.difference_lower == 2 * mean_interval((least + 1) / 2, LEVEL / 2)[0] - 1
    assert found.difference_upper == 2 * mean_interval((most + 1) / 2, LEVEL / 2)[1] - 1


ANSWER = Answer(
    objective="best-mean",
    outcome="winner",
    claim=Claim(kind="proven", delta=0.05),
    reason="confident",
    best="a",
    candidates=(),
    n_examples=60,
    delta=0.05,
    held_out=STANDING,
)
CURSED = (
    "the mean above is on the examples used to select a, so it tends to be too high for new ones (the "
    "winner's curse)"
)
SURE = (
    " (this interval and the next both hold with probability 95%, if the examples of the dataset were drawn "
    "at random from the examples that you will see in production)"
)
TOKENS = BudgetUsage(kind="tokens", spent=16, limit=15, key="stopping.budget.tokens")


def test_the_claim_and_the_mean_are_about_the_examples_of_selection():
    assert dict(answer_lines(ANSWER))["confidence"] == (
        "on the 60 examples of selection no candidate has a mean that is higher (at most 5% risk of error)"
    )


def test_the_words_of_a_scored_winner():
    ones = [1.0] * 30 + [0.0] * 10
    found = completed(STANDING, ones, [0.5] * 40)
    said = dict(held_out_lines(replace(ANSWER, held_out=found)))
    assert said["held out"] == (
        f"0.750 on the 40 examples that selection did not use; on new examples like these between "
        f"0.508 and 0.946{SURE}; {CURSED}; the held-out mean has no such bias"
    )
    assert said["ahead by"] == (
        "+0.250 against b, the highest of the others in selection, on the same examples; "
        "on new examples like these between 0.010 and 0.418 (together with the interval above)"
    )


def test_who_may_have_been_added_for_the_held_out_scores_takes_the_guarantee_away():
    found = replace(completed(STANDING, [1.0] * 40, [0.5] * 40), joined="c")
    said = dict(held_out_lines(replace(ANSWER, held_out=found)))
    seen = "(this guarantees nothing: c was added after scores on these examples were seen)"
    assert seen in said["ahead by"]
    assert said["held out"].endswith(f"{seen}; {CURSED}")


def test_whoever_looked_at_held_out_scores_and_let_selection_go_on_has_no_guarantee():
    found = replace(completed(STANDING, [1.0] * 40, [0.5] * 40), went_on=True)
    said = dict(held_out_lines(replace(ANSWER, held_out=found)))
    seen = (
        "(this guarantees nothing: selection went on to other finalists after scores on these examples were "
        "seen)"
    )
    assert seen in said["ahead by"]
    assert said["held out"].endswith(f"{seen}; {CURSED}")


def test_held_out_examples_that_an_earlier_campaign_scored_are_not_called_fresh():
    found = completed(STANDING, [1.0] * 40, [0.5] * 40)
    earlier = Earlier(campaign="first", examples=12, of=40)
    said = dict(held_out_lines(replace(ANSWER, held_out=found, earlier=earlier)))
    seen = (
        "(this guarantees nothing if candidates, the judge or a setting were changed after seeing results "
        "of campaign first, which has outcomes on 12 of these examples)"
    )
    assert seen in said["ahead by"]
    assert said["held out"].endswith(f"{seen}; {CURSED}")


def test_an_example_of_a_file_that_was_edited_since_is_the_same_example(database):
    """Ids alone do not tell: in many files examples are called by their numbers."""
    first = store_campaign(database, n_examples=6)
    first.finish(first.plan(0, [0] * 6, list(range(6))), [1.0] * 6)
    edited = [NewExample(key="e0", fields={"input": "mended"}, targets=["x"])]
    edited += [
        NewExample(key=f"e{i}", fields={"input": str(i), "note": "a column that is new"}, targets=["y"])
        for i in range(7, 0, -1)
    ]
    with database.writing() as session:
        dataset_id = dataset_records.ensure_dataset(
            session, fingerprint="e" * 64, name="letters", path="letters.jsonl", examples=edited, now=NOW
        )
    spec = {**first.record.spec, "holdout": 0.75, "prompts": ["mended"]}
    later = replace(first.record, id=first.record.id + 1, name="later", dataset_id=dataset_id, spec=spec)
    keys = [each.key for each in edited]
    held_out = {keys[at] for at in split_examples(keys, share=0.75, seed=later.seed).held_out}
    seen = held_out & {"e1", "e2", "e3", "e4", "e5"}
    assert len(held_out) > len(seen) > 0
    with database.reading() as session:
        assert earlier_of(Look(session, later)) == Earlier(
            campaign="letters", examples=len(seen), of=len(held_out)
        )
    with database.writing() as session:
        changed = "json_set(spec, '$.holdout', 0.75, '$.model_fingerprints', json('{}'))"
        session.connection().exec_driver_sql(f"UPDATE campaigns SET spec = {changed}")
    with database.reading() as session:  # the same question of more data is no other one
        same = {**first.record.spec, "holdout": 0.75, "dataset_fingerprint": "e" * 64}
        same["model_fingerprints"] = {}
        assert earlier_of(Look(session, replace(later, spec=same))) is None
        # Nor is that of a server that moved, or of one metric more.
        moved = {"served_at": {"one": "http://127.0.0.1:2/v1"}, "model_fingerprints": {"one": "there"}}
        same |= {**moved, "metrics": [{"name": "valid"}]}
        assert earlier_of(Look(session, replace(later, spec=same))) is None
        assert earlier_of(Look(session, later)) is not None


def test_who_joined_in_sight_of_a_later_campaign_is_tested_on_examples_that_were_seen(database):
    """A candidate may be taken from it, for what it did on the examples that are held out here."""
    first = store_campaign(database, n_examples=6)
    spec = {**first.record.spec, "holdout": 0.5}
    later = store_campaign(database, name="later", names="pqrs", n_examples=6)
    later.finish(later.plan(0, [0] * 6, list(range(6))), [1.0] * 6)
    record = replace(first.record, spec=spec)
    with database.reading() as session:
        assert earlier_of(Look(session, record)) is None
    with database.writing() as session:
        joined = "UPDATE candidates SET first_round = 1 WHERE campaign_id = 1 AND position = 2"
        session.connection().exec_driver_sql(joined)
    with database.reading() as session:
        assert earlier_of(Look(session, record)) == Earlier(campaign="later", examples=3, of=3)


def test_finalists_that_were_scored_are_told_from_others_and_from_another_order():
    assert not others_came_first([3, 1, 3, 1], [3, 1])
    assert not others_came_first([3], [3, 1])  # a round of one comparison
    assert others_came_first([3, 1, 3, 1], [1, 3])
    assert others_came_first([3, 1, 3, 1], [3, 2])
    assert others_came_first([3, 1], [3])
    assert others_came_first([1, 1, 2, 1, 0], [1, 0])  # rounds of one comparison


def test_of_a_server_that_changed_nothing_is_guaranteed():
    found = completed(STANDING, [1.0] * 40, [0.5] * 40)
    change = CanaryChange(
        model="m", server="s", found_at=None, when="during", changed=9, prompts=16, texts_before=3
    )
    said = dict(held_out_lines(replace(ANSWER, held_out=found, servers=(change,))))
    assert f"(this guarantees nothing: {MIXED})" in said["held out"]
    assert f"(this guarantees nothing: {MIXED})" in said["ahead by"]


def test_the_words_of_comparisons_without_an_outcome():
    found = completed(replace(STANDING, scored=39), [None] + [1.0] * 39, [None, None] + [0.5] * 38)
    said = dict(held_out_lines(replace(ANSWER, held_out=found)))
    assert "did not use (1 without an outcome: excluded here, and counted as the worst" in said["held out"]
    assert "same examples (2 without an outcome: excluded" in said["ahead by"]
    alone = held_out_lines(replace(ANSWER, held_out=completed(STANDING, [1.0] * 40)))
    assert [word for word, _ in alone] == ["held out"]
    assert "(this interval holds with probability 95%, if" in alone[0][1]
    none = completed(replace(STANDING, scored=0), [None] * 40, [1.0] * 40)
    said = dict(held_out_lines(replace(ANSWER, held_out=none)))
    assert said == {"held out": "not known: none of the 40 comparisons has an outcome"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"outcome": None}, "3 of the 40 examples that selection does not use are scored for a so far"),
        (
            {"limit": TOKENS},
            "not known: 3 of the 40 examples that selection does not use are scored for a, then the token "
            f"budget is spent: 16 of 15; {CURSED}",
        ),
    ],
)
def test_the_words_of_a_winner_that_is_not_scored_yet(changes, expected):
    unfinished = replace(STANDING, told=3, scored=3, is_complete=False)
    assert held_out_lines(replace(ANSWER, held_out=unfinished, **changes)) == [("held out", expected)]


def a_decision(**changes):
    found = DecisionRecord(
        round_number=1,
        best="b",
        estimates=[0.4, 0.8, 0.6],
        lower=[None] * 3,
        upper=[None] * 3,
        status=["active"] * 3,
        claim={"kind": "heuristic", "delta": None, "assumptions": [], "refuted": []},
        stop=True,
        reason="budget",
        decided_at=None,
    )
    return replace(found, **changes)


def test_the_standing_is_read_from_the_rows(database):
    campaign = store_campaign(database)
    record = replace(campaign.record, spec={**campaign.record.spec, "holdout": 0.4})
    split: Split = split_examples([f"e{i}" for i in range(5)], share=0.4, seed=7)
    campaign.finish(campaign.plan(0, [0, 1, 2], split.selection.tolist()), [0.0, 1.0, 1.0])
    with database.reading() as session:
        before = held_out_of(Look(session, record), "abc", a_decision())
        assert held_out_of(Look(session, campaign.record), "abc", a_decision()) is None
        assert held_out_of(Look(session, record), "abc", None).winner is None
    assert (before.winner, before.runner_up, before.told, before.is_complete) == ("b", "c", 0, False)
    assert (before.n_examples, before.n_selection) == (2, 3)
    first, second = split.held_out.tolist()
    campaign.finish(campaign.plan(1, [1, 2, 1, 2], [first, first, second, second]), [1.0, 0.0, 0.0, None])
    with database.reading() as session:
        after = held_out_of(Look(session, record), "abc", a_decision())
        other = held_out_of(Look(session, record), "abc", a_decision(best="a"))
    assert after == completed(replace(before, told=2, scored=2, is_complete=True), [1.0, 0.0], [0.0, None])
    assert (other.told, other.is_complete) == (0, False)


CONSTRAINED = """\
metrics: [{name: short, judge: {type: contains}}]
constraints: [{metric: short, at_least: 0.5}]
"""


@pytest.mark.parametrize(("add", "finalists"), [("", "bc"), (CONSTRAINED, "b")])
def test_a_stored_campaign_is_divided_for_all_its_readers_as_it_was_when_it_ran(
    campaign_file, database, add, finalists
):
    champion = ("selector: {name: ucb-e, params: {a: 1.0}}", "selector: {name: champion}")
    checked = check_campaign_file(campaign_file(*champion, add=f"holdout: 0.34\n{add}"))
    split, identity = checked.split, checked.identity()
    campaign = store_campaign(database, n_examples=len(split.keys))
    its = {key: identity[key] for key in ("holdout", "constraints") if key in identity}
    record = replace(campaign.record, spec={**campaign.record.spec, **its}, seed=checked.spec.seed)
    held_out, keys = split.held_out.tolist(), list(split.keys)
    campaign.finish(campaign.plan(0, [1] * 2, held_out), [1.0, 0.0])
    with database.reading() as session:
        stored = stored_split(Look(session, record))
        standing = held_out_of(Look(session, record), "abc", a_decision())
        assert held_out_positions(Look(session, record)) == set(held_out)
        assert selection_keys(Look(session, record)) == set(keys) - {keys[position] for position in held_out}
    assert (stored.fingerprint, stored.finalists, stored.whose) == (
        split.fingerprint, len(finalists), split.whose
    )  # fmt: skip
    assert [standing.winner, standing.runner_up] == [*finalists, None][:2]
    assert standing.is_complete == (len(finalists) == 1)
    player = Player(checked, seeds=[0], workers=1)
    assert player.held_out_comparisons == stored.comparisons == 2 * len(finalists)


def test_what_a_candidate_lacks_of_the_held_out_examples_does_not_leave_open_who_is_best(database):
    campaign = store_campaign(database)
    record = replace(campaign.record, spec={**campaign.record.spec, "holdout": 0.4})
    split: Split = split_examples([f"e{i}" for i in range(5)], share=0.4, seed=7)
    ended = {"best": 1, "estimates": [None, 1.0, None], "lower": [0.0] * 3, "upper": [1.0] * 3}
    ended |= {"status": ["eliminated", "active", "eliminated"], "reason": "exhausted", "stop": True}
    campaign.finish(campaign.plan(0, [1, 1, 1], split.selection.tolist()), [1.0, None, 1.0], **ended)
    campaign.finish(campaign.plan(1, [1, 1], split.held_out.tolist()), [None, None], **ended)
    with database.reading() as session:
        (lacks,) = campaign_status(Look(session, record)).answer.lacking
        (lacks_all,) = campaign_status(Look(session, campaign.record)).answer.lacking
    assert (lacks.name, lacks.told, lacks.unscored) == ("b", 3, 1)
    assert (lacks_all.told, lacks_all.unscored) == (5, 3)


@pytest.mark.parametrize(
    ("best", "n_scored", "budget", "goes_on"),
    [
        (None, 0, 7, False),
        (None, 0, 8, True),
        (1, 2, 7, False),
        (1, 2, 8, True),
        (1, 0, 7, True),
        (1, 1, 7, True),
    ],
)
def test_what_is_kept_for_finalists_that_are_not_there_lets_nothing_be_asked(
    database, best, n_scored, budget, goes_on
):
    """The reproduction: with no or one known candidate `winnow run` never ended, with exit code 1."""
    campaign = store_campaign(database, budget=budget)
    record = replace(campaign.record, spec={**campaign.record.spec, "holdout": 0.4})
    split: Split = split_examples([f"e{i}" for i in range(5)], share=0.4, seed=7)
    known = {"estimates": [None] * 3, "lower": [0.0] * 3, "upper": [1.0] * 3, "best": best}
    known |= {"reason": "budget", "stop": True, "status": ["active"] * 3}
    if best is not None:
        known["estimates"][best] = 0.5
    campaign.finish(campaign.plan(0, [0, 1, 2], split.selection.tolist()), [None] * 3, **known)
    if n_scored:
        held_out = split.held_out[:n_scored].tolist()
        campaign.finish(campaign.plan(1, [best] * n_scored, held_out), [0.5] * n_scored, **known)
    with database.reading() as session:
        found = campaign_status(Look(session, record))
    assert found.is_settled is not goes_on
    assert (
        "the budget is spent except for the part reserved for held-out examples"
        in dict(answer_lines(found.answer))["confidence"]
    )


def test_views_tell_comparisons_on_held_out_examples_from_those_that_estimates_are_of(database):
    campaign = store_campaign(database)
    record = replace(campaign.record, spec={**campaign.record.spec, "holdout": 0.4})
    split: Split = split_examples([f"e{i}" for i in range(5)], share=0.4, seed=7)
    campaign.finish(campaign.plan(0, [1, 1, 1, 0], [*split.selection.tolist(), 0]), [1.0, None, 1.0, 0.0])
    campaign.finish(campaign.plan(1, [1, 1], split.held_out.tolist()), [0.0, 1.0], best=1)
    with database.reading() as session:
        board = {row["candidate"]: row for row in ask(Look(session, record), "leaderboard")}
        rows = list(ask(Look(session, record), "comparisons", candidate="b"))
        (first,) = ask(Look(session, record), "comparisons", candidate="b", limit=1)
        plain = [
            *ask(Look(session, campaign.record), "leaderboard"),
            *ask(Look(session, campaign.record), "comparisons"),
        ]
    held_out = {split.keys[position] for position in split.held_out.tolist()}
    assert (board["b"]["scored"], board["b"]["held_out"]) == (4, 2)
    assert board["a"]["held_out"] == board["c"]["held_out"] == 0
    assert [scored_words(board[name]) for name in "abc"] == ["1", "2 (+2 held out)", "0"]
    assert {row["example"]: row["held_out"] for row in rows} == {
        f"e{i}": f"e{i}" in held_out for i in range(5)
    }
    assert first == rows[0]
    assert not any("held_out" in row for row in plain)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("holdout: 0.1", "holdout: holds out 1 of the 6 examples, and at least 2 are needed on either side"),
        ("holdout: 0.9", "holdout: holds out 5 of the 6 examples, and at least 2 are needed on either side"),
        ("holdout: 1.5", "holdout"),
        ("holdout: 0", "holdout"),
    ],
)
def test_a_file_with_an_unusable_share_is_refused(campaign_file, line, message):
    with pytest.raises(SpecError) as refused:
        check_campaign_file(campaign_file(add=line + "\n"))
    assert message in str(refused.value)


def test_a_budget_that_the_finalists_use_up_is_refused(campaign_file):
    with pytest.raises(
        SpecError, match=r"need 6 of the budget of 10 comparisons for the 3 held-out examples"
    ):
        check_campaign_file(campaign_file("budget: 40", "budget: 10", add="holdout: 0.5\n"))


def test_other_objectives_have_no_holdout(campaign_file):
    path = campaign_file("objective: best-mean", "objective: best-duel", add="holdout: 0.5\n")
    with pytest.raises(SpecError, match="does not apply to best-duel; remove it"):
        check_campaign_file(path)


def test_the_split_is_part_of_what_a_campaign_is(campaign_file):
    half = check_campaign_file(campaign_file(add="holdout: 0.5\n"))
    assert half.identity()["held_out_fingerprint"] == half.split.fingerprint
    assert "3 of the examples are held out for the winner and the runner-up" in half.size
    assert check_campaign_file(campaign_file()).identity()["held_out_fingerprint"] is None


def test_history_is_of_the_examples_of_selection(campaign_file, folder):
    scores = np.arange(12).reshape(2, 6) / 12
    np.savez(folder / "past.npz", scores=scores)
    path = campaign_file("selector: {name: ucb-e, params: {a: 1.0}}", "selector: {name: pulse}")
    checked = check_campaign_file(path, ["history=['past.npz']", "holdout=0.5"])
    assert (checked.found_params()["history"] == scores[:, checked.split.selection]).all()


def test_a_full_table_holds_nothing_out_and_has_the_same_scores(campaign_file):
    checked = check_campaign_file(campaign_file(add="holdout: 0.5\n"))
    full = exhaustive_campaign(checked)
    assert (full.split, full.spec.own_budget) == (None, 8 * 6)
    assert has_the_same_scores(full.identity(), checked.identity())
