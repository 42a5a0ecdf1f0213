# ruff: noqa: E501 -- a situation is a line
"""Every way a campaign can end, and the sentence that says how sure its answer is, word by word.

A situation is what the selector decided and what the campaign was asked for. The sentence must follow from
these alone: a row that is added here with a claim that nobody proved should look wrong to who reads it.
"""

import datetime as dt
from dataclasses import replace
from typing import NamedTuple

import pytest
from stored_campaigns import store_campaign

from algorithms.route.advantage import Advantage
from storage.records import DecisionRecord
from tasks.answer import derive
from tasks.answer.phrases import NOBODY
from tasks.answer.words import answer_lines, headline
from tasks.budgets import Spending
from tasks.canaries.changes import CanaryChange
from tasks.certifying.certificate import Certificate
from tasks.routing.standing import Standing

TOKENS = Spending(kind="tokens", spent=16, limit=15, key="stopping.budget.tokens")
OWN = Spending(kind="comparisons", spent=40, limit=40, key="stopping.budget")
LABELS = Spending(kind="human_labels", spent=40, limit=40, key="stopping.budget")

WITHIN = "the chance that this is wrong is at most"
UNSCORED = (
    "undecided: nothing is left to ask, and comparisons without an outcome could still change who is best "
    "(a lacks 2, b lacks 1); winnow query NAME coverage says why"
)
POLICY = (
    "heuristic: prompts are given to whoever is thought good at them, so that means say nothing of other "
    "prompts"
)
CERTIFIED = (
    "the chance that any certified candidate has a higher risk is at most 0.1, whatever the autoevaluator is "
    "worth, if the labelled examples were drawn at random from those that matter"
)
LACKS = {"a": "2 of its 2", "b": "1 of its 1", "c": "0 of its 1"}
ONE_GONE = "but the 1 that was dropped, of which nothing is claimed, "
TWO_GONE = "but the 2 that were dropped, of which nothing is claimed, "


class Situation(NamedTuple):
    """What was decided, what was asked for, and what is to be said."""

    name: str
    objective: str
    reason: str
    claim: tuple  # kind, delta, assumptions
    headline: str
    sure: str
    best: int | None = 1
    status: tuple = ("eliminated", "best", "eliminated")
    delta: float | None = 0.05
    epsilon: float = 0.0
    spent: Spending | None = None
    """A limit that ended it."""
    ended: bool = True
    selector: str = "r-autoeval-plus"
    waits: tuple = ()
    mixed: bool = False
    """Whether a served model changed on the way."""
    unread: tuple = (0, 0, 1)
    """The arms of the comparisons without an outcome; c's has one."""


NONE, EXACT, HEURISTIC = ("none", None, ()), ("exact", None, ()), ("heuristic", None, ())
PROVEN = ("proven", 0.05, ())
OPEN = ("active", "active", "active")
TIED = ("tied", "tied", "eliminated")

MEAN = "on these 5 examples no candidate {}has a mean that is higher{}"
DUEL = "no candidate {}is preferred over b{}"

SITUATIONS = [
    # best-mean
    Situation("mean running", "best-mean", "running", NONE, "interrupted", "not yet: the campaign has not ended", status=OPEN, ended=False),
    Situation("mean proven", "best-mean", "confident", PROVEN, "winner, proven", f"{MEAN.format('', '')}; {WITHIN} 0.05"),
    Situation("mean proven at another delta", "best-mean", "confident", ("proven", 0.1, ()), "winner, proven", f"{MEAN.format('', '')}; {WITHIN} 0.1", delta=0.1),
    Situation("mean proven within epsilon", "best-mean", "confident", PROVEN, "winner, proven", f"{MEAN.format('', ' by more than 0.02')}; {WITHIN} 0.05", status=("not-better", "best", "eliminated"), epsilon=0.02),
    Situation("mean proven, one dropped", "best-mean", "confident", PROVEN, "winner, proven", f"{MEAN.format(ONE_GONE, '')}; {WITHIN} 0.05", status=("dropped", "best", "eliminated")),
    Situation("mean proven, two of four dropped", "best-mean", "confident", PROVEN, "winner, proven", f"{MEAN.format(TWO_GONE, '')}; {WITHIN} 0.05", status=("dropped", "best", "dropped", "eliminated")),
    Situation("mean proven with a larger bound after drops", "best-mean", "confident", ("proven", 0.1, ()), "winner, proven", f"{MEAN.format(ONE_GONE, '')}; {WITHIN} 0.1 (0.05 was asked for; candidates that were dropped on the way raise it)", status=("dropped", "best", "eliminated")),
    Situation("mean exact", "best-mean", "exhausted", EXACT, "winner, exact", f"exact: {MEAN.format('', '')}"),
    Situation("mean exact without delta", "best-mean", "exhausted", EXACT, "winner, exact", f"exact: {MEAN.format('', '')}", delta=None),
    Situation("mean exact, one dropped", "best-mean", "exhausted", EXACT, "winner, exact", f"exact: {MEAN.format(ONE_GONE, '')}", status=("dropped", "best", "eliminated")),
    Situation("mean exact within epsilon", "best-mean", "exhausted", EXACT, "winner, exact", f"exact: {MEAN.format('', ' by more than 0.01')}", epsilon=0.01),
    Situation("mean tied exactly", "best-mean", "exhausted", EXACT, "tied, exact", "exact: on these 5 examples the tied candidates have the same mean, and no other candidate has one that is higher", status=TIED),
    Situation("mean tied, rest proven worse", "best-mean", "confident", PROVEN, "tied, proven", f"on these 5 examples the tied candidates have the same mean, and no other candidate has one that is higher; {WITHIN} 0.05", status=TIED),
    Situation("mean tied within epsilon", "best-mean", "exhausted", EXACT, "tied, exact", "exact: on these 5 examples the tied candidates have means within 0.05 of the highest, and no other candidate has one that is higher by more than 0.05", status=TIED, epsilon=0.05),
    Situation("mean tied, one dropped", "best-mean", "exhausted", EXACT, "tied, exact", f"exact: on these 5 examples the tied candidates have the same mean, and no other candidate {ONE_GONE}has one that is higher", status=("tied", "tied", "dropped")),
    Situation("mean exhausted with unscored cells", "best-mean", "exhausted", NONE, "undecided", UNSCORED, status=("active", "active", "eliminated")),
    Situation("mean exhausted with unscored cells, no delta", "best-mean", "exhausted", NONE, "undecided", UNSCORED, status=OPEN, delta=None),
    Situation("mean budget, delta asked", "best-mean", "budget", NONE, "undecided", "undecided at error probability 0.05: the comparison budget is spent: 40 of 40; go on with winnow run SPEC --set stopping.budget=MORE", status=OPEN, spent=OWN),
    Situation("mean budget, no delta", "best-mean", "budget", HEURISTIC, "winner, heuristic", "heuristic: the comparison budget is spent: 40 of 40, and no error probability (stopping.delta) was asked for", status=OPEN, delta=None, spent=OWN),
    Situation("mean tokens spent, delta asked", "best-mean", "running", NONE, "undecided", "undecided at error probability 0.05: the token budget is spent: 16 of 15; go on with winnow run SPEC --set stopping.budget.tokens=MORE", status=OPEN, spent=TOKENS),
    Situation("mean tokens spent, no delta", "best-mean", "running", NONE, "winner, heuristic", "heuristic: the token budget is spent: 16 of 15, and no error probability (stopping.delta) was asked for", status=OPEN, delta=None, spent=TOKENS),
    Situation("mean tokens spent, nothing known, no delta", "best-mean", "running", NONE, "undecided", "undecided: the token budget is spent: 16 of 15; go on with winnow run SPEC --set stopping.budget.tokens=MORE", best=None, status=OPEN, delta=None, spent=TOKENS),
    Situation("mean all dropped", "best-mean", "all-dropped", NONE, "failed", NOBODY, best=None, status=("dropped",) * 3),
    Situation("mean all dropped, no delta", "best-mean", "all-dropped", NONE, "failed", NOBODY, best=None, status=("dropped",) * 3, delta=None),
    Situation("mean missing at random", "best-mean", "confident", ("proven", 0.05, ("missing-at-random",)), "winner, proven", f"{MEAN.format('', '')}; {WITHIN} 0.05, if which comparisons have no outcome has nothing to do with what it would have been"),
    Situation("mean exact, all others dropped", "best-mean", "exhausted", EXACT, "winner, exact", "exact: every other candidate was dropped, so there is none to compare it with", status=("dropped", "best", "dropped")),
    Situation("mean proven of a served model that changed", "best-mean", "confident", PROVEN, "winner, heuristic", "heuristic: a served model changed on the way, so that one candidate stands for two models", mixed=True),
    # best-duel
    Situation("duel running", "best-duel", "running", NONE, "interrupted", "not yet: the campaign has not ended", status=OPEN, ended=False),
    Situation("duel proven by its own duels", "best-duel", "confident", PROVEN, "winner, proven", f"{DUEL.format('', '')}; {WITHIN} 0.05"),
    Situation("duel proven if a winner exists", "best-duel", "confident", ("proven", 0.05, ("winner-exists",)), "winner, proven", f"{DUEL.format('', '')}; {WITHIN} 0.05, if some candidate is preferred over, or even with, every other"),
    Situation("duel proven in the model", "best-duel", "confident", ("proven", 0.05, ("bradley-terry",)), "winner, proven", f"{DUEL.format('', '')}; {WITHIN} 0.05, if the duels follow the Bradley-Terry model on the features of the candidates"),
    Situation("duel proven with two assumptions", "best-duel", "confident", ("proven", 0.05, ("bradley-terry", "missing-at-random")), "winner, proven", f"{DUEL.format('', '')}; {WITHIN} 0.05, if the duels follow the Bradley-Terry model on the features of the candidates and which comparisons have no outcome has nothing to do with what it would have been"),
    Situation("duel proven, one dropped", "best-duel", "confident", ("proven", 0.1, ()), "winner, proven", f"{DUEL.format(ONE_GONE, '')}; {WITHIN} 0.1 (0.05 was asked for; candidates that were dropped on the way raise it)", status=("dropped", "best", "eliminated")),
    Situation("duel proven within epsilon", "best-duel", "confident", PROVEN, "winner, proven", f"{DUEL.format('', ' by more than 0.1')}; {WITHIN} 0.05", epsilon=0.1),
    Situation("duel proven within epsilon if a winner exists", "best-duel", "confident", ("proven", 0.05, ("winner-exists",)), "winner, proven", f"the candidate that none is preferred over is not preferred over b by more than 0.1; {WITHIN} 0.05, if some candidate is preferred over, or even with, every other", epsilon=0.1),
    Situation("duel exact", "best-duel", "exhausted", EXACT, "winner, exact", f"exact: {DUEL.format('', '')}"),
    Situation("duel tied exactly", "best-duel", "exhausted", EXACT, "tied, exact", "exact: no candidate is preferred over these", status=TIED),
    Situation("duel exhausted with unscored duels", "best-duel", "exhausted", NONE, "undecided", UNSCORED, status=OPEN),
    Situation("duel exhausted in a circle", "best-duel", "exhausted", EXACT, "none", "exact: no candidate is preferred over, or even with, every other", status=("eliminated",) * 3, unread=()),
    Situation("duel budget, delta asked", "best-duel", "budget", NONE, "undecided", "undecided at error probability 0.05: the comparison budget is spent: 40 of 40; go on with winnow run SPEC --set stopping.budget=MORE", status=OPEN, spent=OWN),
    Situation("duel budget, no delta", "best-duel", "budget", HEURISTIC, "winner, heuristic", "heuristic: the comparison budget is spent: 40 of 40, and no error probability (stopping.delta) was asked for", status=OPEN, delta=None, spent=OWN),
    Situation("duel all dropped", "best-duel", "all-dropped", NONE, "failed", NOBODY, best=None, status=("dropped",) * 3),
    # certify
    Situation("certify running", "certify", "running", NONE, "interrupted", "nothing is claimed", best=None, status=OPEN, delta=0.1, ended=False),
    Situation("certify certified", "certify", "certified", ("proven", 0.1, ("random-labels",)), "winner, proven", CERTIFIED, status=("certified", "certified", "active"), delta=0.1),
    Situation("certify none", "certify", "none-certified", NONE, "none", "nothing is claimed", best=None, status=("refuted", "untested", "untested"), delta=0.1),
    Situation("certify none, one dropped", "certify", "none-certified", NONE, "none", "nothing is claimed", best=None, status=("dropped", "untested", "untested"), delta=0.1),
    Situation("certify by a plain mean", "certify", "certified", HEURISTIC, "winner, heuristic", "heuristic: eval trusts a plain mean and guarantees nothing", status=("certified", "certified", "active"), delta=0.1, selector="eval"),
    Situation("certify waits", "certify", "running", NONE, "waiting", "nothing is claimed", best=None, status=OPEN, delta=0.1, waits=("e1", "e2")),
    Situation("certify tokens spent", "certify", "running", NONE, "undecided", "nothing is claimed", best=None, status=OPEN, delta=0.1, spent=TOKENS),
    Situation("certify all dropped", "certify", "all-dropped", NONE, "failed", NOBODY, best=None, status=("dropped",) * 3, delta=0.1),
    Situation("certify certified so far, tokens spent", "certify", "running", ("proven", 0.1, ("random-labels",)), "winner, proven", CERTIFIED, status=("certified", "certified", "active"), delta=0.1, spent=TOKENS),
    # route
    Situation("route budget", "route", "budget", HEURISTIC, "policy, heuristic", POLICY, status=OPEN, delta=None, spent=OWN),
    Situation("route exhausted", "route", "exhausted", HEURISTIC, "policy, heuristic", POLICY, status=OPEN, delta=None),
    Situation("route tokens spent", "route", "running", NONE, "policy, heuristic", POLICY, status=OPEN, delta=None, spent=TOKENS),
    Situation("route all dropped", "route", "all-dropped", NONE, "failed", NOBODY, best=None, status=("dropped",) * 3, delta=None),
]  # fmt: skip


def decided(situation):
    """The stored decision of a situation."""
    kind, delta, assumptions = situation.claim
    count = len(situation.status)
    return DecisionRecord(
        round_number=3,
        best=None if situation.best is None else "abc"[situation.best],
        estimates=[0.2, 0.8, 0.1, 0.1][:count],
        lower=[0.1, 0.7, 0.0, 0.0][:count],
        upper=[0.3, 0.9, 0.2, 0.2][:count],
        status=situation.status,
        claim={"kind": kind, "delta": delta, "assumptions": list(assumptions)},
        stop=situation.reason != "running",
        reason=situation.reason,
        decided_at=dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
    )


def certificate(situation):
    return Certificate(
        risk=0.2,
        baseline=None,
        selector=situation.selector,
        costs={"a": 3.0, "b": 2.0, "c": 1.0},
        labels_used=40,
        waits_for=situation.waits,
        incomplete=0,
        plain="c",
        plain_mean=0.1,
    )


STANDING = Standing(
    mean=0.8,
    scored=40,
    late_mean=0.9,
    late_scored=10,
    single_scored=20,
    prompts=40,
    unfinished=False,
    advantage=None,
    single=None,
)


CHANGED = CanaryChange(
    model="m",
    server="http://127.0.0.1:1/v1",
    found_at=dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
    when="during",
    changed=9,
    prompts=16,
    texts_before=3,
)


def answered(database, situation, monkeypatch):
    if situation.mixed:
        monkeypatch.setattr(derive, "canary_changes", lambda session, campaign_id: [CHANGED])
    names = "abcd"[: len(situation.status)]
    campaign = store_campaign(database, delta=situation.delta, epsilon=situation.epsilon, names=names)
    arms = [2, *situation.unread]
    outcomes = [1.0] + [None] * len(situation.unread)
    campaign.finish(campaign.plan(0, arms, list(range(len(arms)))), outcomes)
    record = replace(campaign.record, objective=situation.objective)
    with database.reading() as session:
        return derive.answer_of(
            session,
            record,
            names=names,
            decision=decided(situation),
            has_ended=situation.ended and not situation.waits,
            waits=bool(situation.waits),
            stopped_by=situation.spent if situation.reason == "running" else None,
            budgets=[] if situation.spent is None else [situation.spent],
            n_examples=5,
            certificate=certificate(situation) if situation.objective == "certify" else None,
            standing=STANDING if situation.objective == "route" else None,
        )


def test_there_are_enough_situations():
    assert len({situation.name for situation in SITUATIONS}) == len(SITUATIONS) >= 45


@pytest.mark.parametrize("situation", SITUATIONS, ids=[situation.name for situation in SITUATIONS])
def test_what_is_said_follows_from_what_was_decided(database, situation, monkeypatch):
    answer = answered(database, situation, monkeypatch)
    state = "waiting" if situation.waits else "ended" if situation.ended else "interrupted"
    said = dict(answer_lines(answer))
    assert headline(answer, state) == situation.headline
    assert said["sure"] == situation.sure


@pytest.mark.parametrize("situation", SITUATIONS, ids=[situation.name for situation in SITUATIONS])
def test_no_word_claims_more_than_the_claim(database, situation, monkeypatch):
    answer = answered(database, situation, monkeypatch)
    told = " ".join(sentence for _, sentence in answer_lines(answer))
    words = {
        "exact:": answer.claim.kind == "exact",
        "the chance that": answer.claim.kind == "proven" or bool(answer.named("refuted")),
        "heuristic": answer.claim.kind == "heuristic" or answer.outcome == "policy",
    }
    for word, may in words.items():
        assert (word in told) <= may, (word, told)
    if answer.outcome not in ("winner", "tied"):
        assert "winner" not in dict(answer_lines(answer)) or "none: " in told
    for name in answer.named("dropped"):
        assert f"{name}: {LACKS[name]} comparisons have no outcome" in told
    if answer.claim.kind == "proven":
        assert f"at most {answer.claim.delta:g}" in told
    if answer.outcome == "undecided" and answer.objective != "certify":
        assert not answer.is_guaranteed
        assert answer.best is None or dict(answer_lines(answer))["leading"] == answer.best


@pytest.mark.parametrize(
    ("lower", "upper", "word"), [(0.02, 0.2, "yes: "), (-0.02, 0.2, "not shown: "), (-0.2, -0.02, "no: ")]
)
def test_routing_is_said_to_pay_only_where_the_interval_says_so(database, monkeypatch, lower, upper, word):
    found = Advantage(estimate=(lower + upper) / 2, lower=lower, upper=upper, delta=0.05, single=0)
    answer = answered(database, next(each for each in SITUATIONS if each.name == "route budget"), monkeypatch)
    answer = replace(answer, standing=replace(STANDING, advantage=found, single="a"))
    said = dict(answer_lines(answer))["pays"]
    assert said.startswith(word)
    assert said.endswith("against a alone, with probability 95%, at every round at once")
