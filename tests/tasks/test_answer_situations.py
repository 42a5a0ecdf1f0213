# ruff: noqa: E501 -- a situation is a line
"""Every way a campaign can end, and the sentence that says how sure its answer is, word by word.

A situation is what the selector decided and what the campaign was asked for. The sentence must follow from
these alone: a row that is added here with a claim that nobody proved should look wrong to who reads it.
"""

import datetime as dt
import re
from dataclasses import replace
from typing import NamedTuple

import pytest
from stored_campaigns import store_campaign

from winnow.algorithms.route.advantage import Advantage
from winnow.storage.records.record_types import DecisionRecord
from winnow.tasks.answer import derive
from winnow.tasks.answer.earlier_campaigns import Earlier
from winnow.tasks.answer.model import Addition, Unscored
from winnow.tasks.answer.opponents import closest_pair
from winnow.tasks.answer.sentences.answer_lines import answer_lines, headline
from winnow.tasks.answer.sentences.clauses import MIXED, NOBODY
from winnow.tasks.answer.sentences.winner import estimated_lead
from winnow.tasks.campaign.budget import BudgetUsage
from winnow.tasks.campaign.changed_models import CanaryChange
from winnow.tasks.campaign.look import Look
from winnow.tasks.objectives.certify.certificate import Certificate
from winnow.tasks.objectives.route.status import Standing
from winnow.tasks.text.phrases import risk_of, rounded

TOKENS = BudgetUsage(kind="tokens", spent=16, limit=15, key="stopping.budget.tokens")
OWN = BudgetUsage(kind="comparisons", spent=40, limit=40, key="stopping.budget")
LABELS = BudgetUsage(kind="human_labels", spent=40, limit=40, key="stopping.budget")

UNSCORED = (
    "undecided: no comparison is left, and comparisons without an outcome could still change which candidate is best "
    "(a lacks 2, b lacks 1); winnow query letters coverage says why; fix the cause, then run winnow run SPEC "
    "--fork NEW_NAME, which repeats these and reuses all stored outputs"
)
AGAIN = "; fix the cause, then run winnow run SPEC --fork NEW_NAME, which repeats these and reuses all stored outputs"
POLICY = (
    "heuristic: prompts are routed to the candidate expected to do best, so these means do not generalise "
    "to other prompts"
)
CERTIFIED = (
    "the probability that any certified candidate has a higher risk is at most 0.1, whether the autoevaluator "
    "is good or bad, if the labelled examples and those that the autoevaluator alone answers were drawn at "
    "random from the examples that you will see in production"
)
LACKS = {"a": "2 of its 2", "b": "1 of its 1", "c": "0 of its 1"}
WITHOUT_LOSS = {**LACKS, "c": "1 of its 1"}
"""What is stored has outcomes, and no loss."""
ONE_GONE = "except the 1 that was dropped, about which nothing is claimed, "
ADDED = "candidates that were added after scores had been seen"
PLANNED = "if how often candidates were added did not depend on the scores"
TWO_GONE = "except the 2 that were dropped, about which nothing is claimed, "


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
    spent: BudgetUsage | None = None
    """A limit that ended it."""
    ended: bool = True
    selector: str = "r-autoeval-plus"
    waits: tuple = ()
    costs: dict | None = None
    """Of each candidate, where the cheapest that is good enough is looked for."""
    top_m: int = 1
    """How many of the best are looked for."""
    groups: tuple | None = None
    """What is compared of groups of examples, and how these are weighted."""
    constraints: tuple = ()
    """What the means of metrics have to be."""
    baseline: str | None = None
    """Whom a gate holds the others against."""
    raised_by: tuple = ()
    """What raises the claim's probability of an error, as the selector says."""
    mixed: bool = False
    """Whether a served model changed during the campaign."""
    earlier: Earlier | None = None
    """A campaign before it that tested something else on what counts as fresh."""
    unread: tuple = (0, 0, 1)
    """The arms of the comparisons without an outcome; c's has one."""


SEEN = Earlier(campaign="first", examples=60, of=100)
NONE, EXACT, HEURISTIC = ("none", None, ()), ("exact", None, ()), ("heuristic", None, ())
PROVEN = ("proven", 0.05, ())
OPEN = ("active", "active", "active")
COSTS = {"a": 1.0, "b": 4.0, "c": 2.0}
TIED = ("tied", "tied", "eliminated")

MEAN = "on these 5 examples no candidate {}has a mean that is higher{}"
OTHERS = "on these 5 examples no other candidate {}has a mean that is higher than that of any of these{}"
MEETS = "b meets the constraints (known exactly), and of the candidates that meet them, no candidate has a mean that is higher"
OPEN_VALUES = "undecided: no comparison is left, and missing values of metrics (winnow query letters metrics)"
VALID = ({"metric": "valid", "at_least": 0.9, "at_most": None},)
DUEL = "on these 5 examples no candidate {}is preferred over b{}"

SITUATIONS = [
    # best-mean
    Situation("mean running", "best-mean", "running", NONE, "interrupted", "not yet: the campaign has not ended", status=OPEN, ended=False),
    Situation("mean proven", "best-mean", "confident", PROVEN, "winner, proven", f"{MEAN.format('', '')} (at most 5% risk of error)"),
    Situation("mean proven at another delta", "best-mean", "confident", ("proven", 0.1, ()), "winner, proven", f"{MEAN.format('', '')} (at most 10% risk of error)", delta=0.1),
    Situation("mean proven within epsilon", "best-mean", "confident", PROVEN, "no candidate is better by more than 2 points (5% risk of error), proven", f"{MEAN.format('', ' by more than 0.02')} (at most 5% risk of error)", status=("not-better", "best", "eliminated"), epsilon=0.02),
    Situation("mean proven, one dropped", "best-mean", "confident", PROVEN, "winner, proven", f"{MEAN.format(ONE_GONE, '')} (at most 5% risk of error)", status=("dropped", "best", "eliminated")),
    Situation("mean proven, two of four dropped", "best-mean", "confident", PROVEN, "winner, proven", f"{MEAN.format(TWO_GONE, '')} (at most 5% risk of error)", status=("dropped", "best", "dropped", "eliminated")),
    Situation("mean proven with a larger bound, none dropped", "best-mean", "confident", ("proven", 0.1, ()), "winner, proven", f"{MEAN.format('', '')} (at most 10% risk of error; a 5% risk of error was requested)", status=("eliminated", "best", "eliminated")),
    Situation("mean proven with a larger bound after drops by a selector that names no reason", "best-mean", "confident", ("proven", 0.075, ()), "winner, proven", f"{MEAN.format(ONE_GONE, '')} (at most 7.5% risk of error; a 5% risk of error was requested; candidates that were dropped during the campaign increase it)", status=("dropped", "best", "eliminated")),
    Situation("mean proven with a larger bound after drops", "best-mean", "confident", ("proven", 0.1, ()), "winner, proven", f"{MEAN.format(ONE_GONE, '')} (at most 10% risk of error; a 5% risk of error was requested; candidates that were dropped during the campaign increase it)", status=("dropped", "best", "eliminated"), raised_by=("dropped",)),
    Situation("mean proven with a larger bound, one added", "best-mean", "confident", ("proven", 0.1, ("planned-additions",)), "winner, proven", f"{MEAN.format('', '')} (at most 10% risk of error; a 5% risk of error was requested; {ADDED} increase it), {PLANNED}", raised_by=("added",)),
    Situation("mean proven with a larger bound, one added and one dropped", "best-mean", "confident", ("proven", 0.15, ("planned-additions",)), "winner, proven", f"{MEAN.format(ONE_GONE, '')} (at most 15% risk of error; a 5% risk of error was requested; candidates that were dropped during the campaign and {ADDED} increase it), {PLANNED}", status=("dropped", "best", "eliminated"), raised_by=("dropped", "added")),
    Situation("mean proven, one added, and one dropped that was reserved for", "best-mean", "confident", ("proven", 0.1, ("planned-additions",)), "winner, proven", f"{MEAN.format(ONE_GONE, '')} (at most 10% risk of error; a 5% risk of error was requested; {ADDED} increase it), {PLANNED}", status=("dropped", "best", "eliminated"), raised_by=("added",)),
    Situation("mean exact", "best-mean", "exhausted", EXACT, "winner, exact", f"exact: {MEAN.format('', '')}"),
    Situation("mean exact without delta", "best-mean", "exhausted", EXACT, "winner, exact", f"exact: {MEAN.format('', '')}", delta=None),
    Situation("mean exact, one dropped", "best-mean", "exhausted", EXACT, "winner, exact", f"exact: {MEAN.format(ONE_GONE, '')}", status=("dropped", "best", "eliminated")),
    Situation("mean exact within epsilon", "best-mean", "exhausted", EXACT, "winner, exact", f"exact: {MEAN.format('', ' by more than 0.01')}", epsilon=0.01),
    Situation("mean tied exactly", "best-mean", "exhausted", EXACT, "tied, exact", "exact: on these 5 examples the tied candidates have the same mean, and no other candidate has one that is higher", status=TIED),
    Situation("mean tied, rest proven worse", "best-mean", "confident", PROVEN, "tied, proven", "on these 5 examples the tied candidates have the same mean, and no other candidate has one that is higher (at most 5% risk of error)", status=TIED),
    Situation("mean tied within epsilon", "best-mean", "exhausted", EXACT, "no candidate is better by more than 5 points, exact", "exact: on these 5 examples b, a have means within 0.05 of the highest, and no other candidate has one that is higher by more than 0.05", status=TIED, epsilon=0.05),
    Situation("mean tied, one dropped", "best-mean", "exhausted", EXACT, "tied, exact", f"exact: on these 5 examples the tied candidates have the same mean, and no other candidate {ONE_GONE}has one that is higher", status=("tied", "tied", "dropped")),
    Situation("mean exhausted with unscored cells", "best-mean", "exhausted", NONE, "undecided", UNSCORED, status=("active", "active", "eliminated")),
    Situation("mean exhausted with unscored cells, no delta", "best-mean", "exhausted", NONE, "undecided", UNSCORED, status=OPEN, delta=None),
    Situation("mean budget, delta asked", "best-mean", "budget", NONE, "undecided", "undecided at error probability 0.05: the comparison budget is spent: 40 of 40; continue with winnow resume letters --set stopping.budget=MORE", status=OPEN, spent=OWN),
    Situation("mean budget, no delta", "best-mean", "budget", HEURISTIC, "winner, heuristic", "heuristic: the comparison budget is spent: 40 of 40, and no error probability (stopping.delta) was requested", status=OPEN, delta=None, spent=OWN),
    Situation("mean tokens spent, delta asked", "best-mean", "running", NONE, "undecided", "undecided at error probability 0.05: the token budget is spent: 16 of 15; continue with winnow resume letters --set stopping.budget.tokens=MORE", status=OPEN, spent=TOKENS),
    Situation("mean tokens spent, no delta", "best-mean", "running", NONE, "winner, heuristic", "heuristic: the token budget is spent: 16 of 15, and no error probability (stopping.delta) was requested", status=OPEN, delta=None, spent=TOKENS),
    Situation("mean tokens spent, nothing known, no delta", "best-mean", "running", NONE, "undecided", "undecided: the token budget is spent: 16 of 15; continue with winnow resume letters --set stopping.budget.tokens=MORE", best=None, status=OPEN, delta=None, spent=TOKENS),
    Situation("mean all dropped", "best-mean", "all-dropped", NONE, "failed", NOBODY, best=None, status=("dropped",) * 3),
    Situation("mean all dropped, no delta", "best-mean", "all-dropped", NONE, "failed", NOBODY, best=None, status=("dropped",) * 3, delta=None),
    Situation("mean missing at random", "best-mean", "confident", ("proven", 0.05, ("missing-at-random",)), "winner, proven", (f"{MEAN.format('', '')} (at most 5% risk of error), "
                                                                                                                               "if "
                                                                                                                               "the "
                                                                                                                               "outcome "
                                                                                                                               "that "
                                                                                                                               "a "
                                                                                                                               "comparison "
                                                                                                                               "would "
                                                                                                                               "have "
                                                                                                                               "had "
                                                                                                                               "does "
                                                                                                                               "not "
                                                                                                                               "affect "
                                                                                                                               "whether "
                                                                                                                               "it "
                                                                                                                               "is "
                                                                                                                               "missing")),
    Situation("mean exact, all others dropped", "best-mean", "exhausted", EXACT, "winner, heuristic", "heuristic: every other candidate was dropped, so there is no candidate to compare it with", status=("dropped", "best", "dropped")),
    Situation("mean proven of a served model that changed", "best-mean", "confident", PROVEN, "winner, heuristic", "heuristic: a served model changed during the campaign, so one candidate stands for two models", mixed=True),
    Situation("mean, a cheaper one chosen", "best-mean", "confident", PROVEN, "no candidate is better by more than 10 points (5% risk of error), proven", "on these 5 examples no candidate has a mean that is higher than that of b or of a by more than 0.1 (at most 5% risk of error)", status=("chosen", "best", "not-better"), epsilon=0.1, costs=COSTS),
    Situation("mean, a cheaper one chosen, one dropped", "best-mean", "confident", ("proven", 0.075, ()), "no candidate that was not dropped is better by more than 10 points (7.5% risk of error), proven", f"on these 5 examples no candidate {ONE_GONE}has a mean that is higher than that of b or of a by more than 0.1 (at most 7.5% risk of error; a 5% risk of error was requested; candidates that were dropped during the campaign increase it)", status=("chosen", "best", "dropped"), epsilon=0.1, costs=COSTS, raised_by=("dropped",)),
    Situation("mean tied, a cheaper one chosen", "best-mean", "confident", PROVEN, "tied: no candidate is better by more than 10 points (5% risk of error), proven", "on these 5 examples the tied candidates and a have means within 0.1 of the highest, and no other candidate has one that is higher by more than 0.1 (at most 5% risk of error)", status=("chosen", "tied", "tied"), epsilon=0.1, costs=COSTS),
    Situation("mean, nobody cheaper chosen", "best-mean", "confident", ("proven", 0.025, ()), "no candidate is better by more than 10 points (2.5% risk of error), proven", f"{MEAN.format('', ' by more than 0.1')} (at most 2.5% risk of error)", status=("not-better", "best", "not-better"), epsilon=0.1, costs=COSTS),
    Situation("mean, budget before one was chosen", "best-mean", "budget", ("proven", 0.025, ()), "no candidate is better by more than 10 points (2.5% risk of error), proven", f"{MEAN.format('', ' by more than 0.1')} (at most 2.5% risk of error)", status=("not-better", "best", "not-better"), epsilon=0.1, costs=COSTS, spent=OWN),
    # groups of best-mean
    Situation("mean of groups, proven", "best-mean", "confident", PROVEN, "winner, proven", "on these 5 examples no candidate has a mean of group means that is higher (at most 5% risk of error)", groups=("mean", "equal")),
    Situation("mean of groups by weight, exact, one dropped", "best-mean", "exhausted", EXACT, "winner, exact", f"exact: on these 5 examples no candidate {ONE_GONE}has a weighted mean of group means that is higher", status=("dropped", "best", "eliminated"), groups=("mean", {"x": 2.0, "y": 1.0})),
    Situation("mean of groups by weight, tied within epsilon", "best-mean", "exhausted", EXACT, "no candidate is better by more than 5 points, exact", "exact: on these 5 examples b, a have weighted means of group means within 0.05 of the highest, and no other candidate has one that is higher by more than 0.05", status=TIED, epsilon=0.05, groups=("mean", "size")),
    Situation("worst group, proven within epsilon", "best-mean", "confident", PROVEN, "no candidate is better by more than 2 points (5% risk of error), proven", "on these 5 examples no candidate has a worst-group mean that is higher by more than 0.02 (at most 5% risk of error)", status=("not-better", "best", "eliminated"), epsilon=0.02, groups=("worst", "equal")),
    Situation("worst group, tied", "best-mean", "exhausted", EXACT, "tied, exact", "exact: on these 5 examples the tied candidates have the same worst-group mean, and no other candidate has one that is higher", status=TIED, groups=("worst", "equal")),
    Situation("worst group, budget, no delta", "best-mean", "budget", HEURISTIC, "winner, heuristic", "heuristic: the comparison budget is spent: 40 of 40, and no error probability (stopping.delta) was requested", status=OPEN, delta=None, spent=OWN, groups=("worst", "equal")),
    Situation("mean of groups, budget", "best-mean", "budget", NONE, "undecided", "undecided at error probability 0.05: the comparison budget is spent: 40 of 40; continue with winnow resume letters --set stopping.budget=MORE", status=OPEN, spent=OWN, groups=("mean", "equal")),
    Situation("mean of groups, tied, rest proven worse, one dropped", "best-mean", "confident", ("proven", 0.1, ()), "tied, proven", f"on these 5 examples the tied candidates have the same mean of group means, and no other candidate {ONE_GONE}has one that is higher (at most 10% risk of error; a 5% risk of error was requested; candidates that were dropped during the campaign increase it)", status=("tied", "tied", "dropped"), raised_by=("dropped",), groups=("mean", "equal")),
    Situation("worst group, proven, one added and one dropped", "best-mean", "confident", ("proven", 0.2, ("planned-additions",)), "winner, proven", f"on these 5 examples no candidate {ONE_GONE}has a worst-group mean that is higher (at most 20% risk of error; a 5% risk of error was requested; candidates that were dropped during the campaign and {ADDED} increase it), {PLANNED}", status=("dropped", "best", "eliminated"), raised_by=("dropped", "added"), groups=("worst", "equal")),
    Situation("worst group, exhausted with unscored cells", "best-mean", "exhausted", NONE, "undecided", UNSCORED, status=("active", "active", "eliminated"), groups=("worst", "equal")),
    Situation("worst group, all others dropped", "best-mean", "exhausted", EXACT, "winner, heuristic", "heuristic: every other candidate was dropped, so there is no candidate to compare it with", status=("dropped", "best", "dropped"), groups=("worst", "equal")),
    Situation("worst group of a served model that changed", "best-mean", "confident", PROVEN, "winner, heuristic", "heuristic: a served model changed during the campaign, so one candidate stands for two models", groups=("worst", "equal"), mixed=True),
    # constraints of best-mean
    Situation("mean under constraints, proven", "best-mean", "confident", PROVEN, "winner, proven", f"on these 5 examples {MEETS} (at most 5% risk of error)", status=("infeasible", "best", "eliminated"), constraints=VALID),
    Situation("mean under constraints, proven within epsilon, one dropped", "best-mean", "confident", ("proven", 0.1, ()), "no candidate that meets the constraints and was not dropped is better by more than 2 points (10% risk of error), proven", f"on these 5 examples b meets the constraints (known exactly), and of the candidates that meet them, no candidate {ONE_GONE}has a mean that is higher by more than 0.02 (at most 10% risk of error; a 5% risk of error was requested; candidates that were dropped during the campaign increase it)", status=("dropped", "best", "not-better"), epsilon=0.02, raised_by=("dropped",), constraints=VALID),
    Situation("mean under constraints, exact", "best-mean", "confident", EXACT, "winner, exact", "exact: on these 5 examples b meets the constraints, and of the candidates that meet them, no candidate has a mean that is higher", status=("infeasible", "best", "infeasible"), constraints=VALID),
    Situation("mean under constraints, all others dropped", "best-mean", "confident", ("proven", 0.15, ()), "winner, proven", "on these 5 examples b meets the constraints (known exactly); every other candidate was dropped, so there is no candidate to compare it with (at most 15% risk of error; a 5% risk of error was requested; candidates that were dropped during the campaign increase it)", status=("dropped", "best", "dropped"), raised_by=("dropped",), constraints=VALID),
    Situation("mean under constraints, tied", "best-mean", "confident", PROVEN, "tied, proven", "on these 5 examples the tied candidates meet the constraints (known exactly) and have the same mean, and no other candidate that meets them has one that is higher (at most 5% risk of error)", status=TIED, constraints=VALID),
    Situation("mean under constraints, tied within epsilon", "best-mean", "confident", EXACT, "tied: no candidate that meets the constraints is better by more than 5 points, exact", "exact: on these 5 examples the tied candidates meet the constraints and have means within 0.05 of the highest of all that meet them, and no other candidate that meets them has one that is higher by more than 0.05", status=TIED, epsilon=0.05, constraints=VALID),
    Situation("nobody meets the constraints, proven", "best-mean", "confident", PROVEN, "none", "on these 5 examples no candidate meets the constraints (at most 5% risk of error)", best=None, status=("unfit", "unfit", "infeasible"), constraints=VALID),
    Situation("nobody meets the constraints, one dropped", "best-mean", "confident", ("proven", 0.1, ()), "none", f"on these 5 examples no candidate {ONE_GONE}meets the constraints (at most 10% risk of error; a 5% risk of error was requested; candidates that were dropped during the campaign increase it)", best=None, status=("dropped", "unfit", "infeasible"), raised_by=("dropped",), constraints=VALID),
    Situation("nobody meets the constraints, exact", "best-mean", "confident", EXACT, "none", "exact: on these 5 examples no candidate meets the constraints", best=None, status=("infeasible",) * 3, constraints=VALID),
    Situation("nobody meets the constraints, of a served model that changed", "best-mean", "confident", PROVEN, "undecided", "undecided: the campaign ended without an answer", best=None, status=("eliminated",) * 3, constraints=VALID, mixed=True),
    Situation("mean under constraints of a served model that changed", "best-mean", "confident", PROVEN, "winner, heuristic", "heuristic: a served model changed during the campaign, so one candidate stands for two models", constraints=VALID, mixed=True),
    Situation("mean under constraints, budget", "best-mean", "budget", NONE, "undecided", "undecided at error probability 0.05: the comparison budget is spent: 40 of 40; continue with winnow resume letters --set stopping.budget=MORE", status=("infeasible", "active", "active"), spent=OWN, constraints=VALID),
    Situation("mean under constraints, budget, all out but one", "best-mean", "budget", NONE, "undecided", "undecided at error probability 0.05: the comparison budget is spent: 40 of 40; continue with winnow resume letters --set stopping.budget=MORE", status=("infeasible", "active", "unfit"), spent=OWN, constraints=VALID),
    Situation("mean under constraints, exhausted with unscored cells", "best-mean", "exhausted", NONE, "undecided", f"{OPEN_VALUES}, or scores (a lacks 2, b lacks 1; winnow query letters coverage) could still change which candidate is best under the constraints{AGAIN}", status=("active", "active", "eliminated"), constraints=VALID),
    Situation("mean under constraints, exhausted without values", "best-mean", "exhausted", NONE, "undecided", f"{OPEN_VALUES} could still change which candidate is best under the constraints{AGAIN}", status=OPEN, unread=(), constraints=VALID),
    # the m best of best-mean
    Situation("mean, the two best", "best-mean", "confident", PROVEN, "the 2 best, proven", f"{OTHERS.format('', '')} (at most 5% risk of error)", status=("top", "top", "eliminated"), top_m=2),
    Situation("mean, the two best within epsilon, one dropped", "best-mean", "confident", ("proven", 0.075, ()), "no other candidate that was not dropped is better than any of the 2 named by more than 2 points (7.5% risk of error), proven", f"{OTHERS.format(ONE_GONE, ' by more than 0.02')} (at most 7.5% risk of error; a 5% risk of error was requested; candidates that were dropped during the campaign increase it)", status=("top", "top", "dropped", "not-better"), epsilon=0.02, top_m=2, raised_by=("dropped",)),
    Situation("mean, two tied for the second place", "best-mean", "exhausted", EXACT, "the 2 best, exact", f"exact: {OTHERS.format('', '')}", status=("tied", "top", "tied", "eliminated"), top_m=2),
    Situation("mean, three tied for two places", "best-mean", "exhausted", EXACT, "tied, exact", f"exact: {OTHERS.format('', '')}", status=("tied", "tied", "tied", "eliminated"), top_m=2),
    Situation("mean, the two best of a served model that changed", "best-mean", "confident", PROVEN, "winner, heuristic", "heuristic: a served model changed during the campaign, so one candidate stands for two models", status=("top", "top", "eliminated"), top_m=2, mixed=True),
    Situation("mean, the two best, budget, no delta", "best-mean", "budget", HEURISTIC, "winner, heuristic", "heuristic: the comparison budget is spent: 40 of 40, and no error probability (stopping.delta) was requested", status=OPEN, delta=None, top_m=2, spent=OWN),
    Situation("mean, the two best, budget", "best-mean", "budget", NONE, "undecided", "undecided at error probability 0.05: the comparison budget is spent: 40 of 40; continue with winnow resume letters --set stopping.budget=MORE", status=OPEN, top_m=2, spent=OWN),
    # best-mean against a baseline
    Situation("gate running", "best-mean", "running", NONE, "interrupted", "not yet: the campaign has not ended", status=("active", "baseline", "active"), ended=False, baseline="b"),
    Situation("gate proven no worse", "best-mean", "confident", PROVEN, "no worse, proven", "on these 5 examples the means of a, c are at most 0.02 below that of b (at most 5% risk of error in any of this)", status=("no-worse", "baseline", "no-worse"), epsilon=0.02, baseline="b"),
    Situation("gate proven no worse without epsilon", "best-mean", "confident", PROVEN, "no worse, proven", "on these 5 examples the mean of a is not below that of b (at most 5% risk of error in any of this)", status=("no-worse", "baseline"), baseline="b"),
    Situation("gate proven better", "best-mean", "confident", PROVEN, "better, proven", "on these 5 examples the mean of a is above that of b (at most 5% risk of error in any of this)", status=("better", "baseline"), epsilon=0.02, baseline="b"),
    Situation("gate proven worse", "best-mean", "confident", PROVEN, "worse, proven", "on these 5 examples the mean of a is more than 0.02 below that of b (at most 5% risk of error in any of this)", status=("worse", "baseline"), epsilon=0.02, baseline="b"),
    Situation("gate proven worse without epsilon", "best-mean", "confident", PROVEN, "worse, proven", "on these 5 examples the mean of a is below that of b (at most 5% risk of error in any of this)", status=("worse", "baseline"), baseline="b"),
    Situation("gate proven, of each something", "best-mean", "confident", PROVEN, "decided, proven", "on these 5 examples the mean of d is at most 0.02 below that of b, and the mean of c is above that of b, and the mean of a is more than 0.02 below that of b (at most 5% risk of error in any of this)", status=("worse", "baseline", "better", "no-worse"), epsilon=0.02, baseline="b"),
    Situation("gate exact", "best-mean", "confident", EXACT, "decided, exact", "exact: on these 5 examples the mean of c is not below that of b, and the mean of a is below that of b", status=("worse", "baseline", "no-worse"), baseline="b"),
    Situation("gate, one dropped", "best-mean", "confident", PROVEN, "worse, except 1 dropped, proven", "on these 5 examples the mean of c is more than 0.02 below that of b (at most 5% risk of error in any of this)", status=("dropped", "baseline", "worse"), epsilon=0.02, baseline="b"),
    Situation("gate budget, nothing shown", "best-mean", "budget", NONE, "undecided", "undecided at error probability 0.05 for a, c: the comparison budget is spent: 40 of 40; continue with winnow resume letters --set stopping.budget=MORE", status=("active", "baseline", "active"), spent=OWN, baseline="b"),
    Situation("gate budget, one shown", "best-mean", "budget", PROVEN, "undecided", "on these 5 examples the mean of c is more than 0.02 below that of b (at most 5% risk of error in any of this); undecided at error probability 0.05 for a: the comparison budget is spent: 40 of 40; continue with winnow resume letters --set stopping.budget=MORE", status=("active", "baseline", "worse"), spent=OWN, epsilon=0.02, baseline="b"),
    Situation("gate exact, one dropped", "best-mean", "exhausted", EXACT, "no worse, except 1 dropped, exact", "exact: on these 5 examples the mean of c is not below that of b", status=("dropped", "baseline", "no-worse"), baseline="b"),
    Situation("gate tokens spent, one shown", "best-mean", "running", PROVEN, "undecided", "on these 5 examples the mean of c is above that of b (at most 5% risk of error in any of this); undecided at error probability 0.05 for a: the token budget is spent: 16 of 15; continue with winnow resume letters --set stopping.budget.tokens=MORE", status=("active", "baseline", "better"), spent=TOKENS, baseline="b"),
    Situation("gate tokens spent, all shown", "best-mean", "running", PROVEN, "better, proven", "on these 5 examples the mean of a is above that of b (at most 5% risk of error in any of this)", status=("better", "baseline"), spent=TOKENS, baseline="b"),
    Situation("gate exhausted with unscored cells", "best-mean", "exhausted", NONE, "undecided", "undecided for a, c: no comparison is left, and comparisons without an outcome could still change the answer (a lacks 2, b lacks 1); winnow query letters coverage says why; fix the cause, then run winnow gate SPEC --baseline b --fork NEW_NAME, which repeats these and reuses all stored outputs", status=("active", "baseline", "active"), baseline="b"),
    Situation("gate, baseline dropped", "best-mean", "exhausted", PROVEN, "undecided", "on these 5 examples the mean of c is above that of b (at most 5% risk of error in any of this); undecided for a: b was dropped, so nothing more can be learned", status=("active", "dropped", "better"), baseline="b"),
    Situation("gate all dropped", "best-mean", "all-dropped", NONE, "failed", "nothing is claimed: every candidate to compare with b was dropped", best=None, status=("dropped", "baseline", "dropped"), baseline="b"),
    Situation("gate, baseline dropped, nothing shown", "best-mean", "all-dropped", NONE, "failed", "nothing is claimed: b was dropped, so no candidate can be compared with it", best=None, status=("active", "dropped", "active"), baseline="b"),
    Situation("gate of a served model that changed", "best-mean", "confident", PROVEN, "no worse, heuristic", "heuristic: a served model changed during the campaign, so one candidate stands for two models", status=("no-worse", "baseline"), mixed=True, baseline="b"),
    # best-duel
    Situation("duel running", "best-duel", "running", NONE, "interrupted", "not yet: the campaign has not ended", status=OPEN, ended=False),
    Situation("duel proven by its own duels", "best-duel", "confident", PROVEN, "winner, proven", f"{DUEL.format('', '')} (at most 5% risk of error)"),
    Situation("duel proven if a winner exists", "best-duel", "confident", ("proven", 0.05, ("winner-exists",)), "winner, proven", f"{DUEL.format('', '')} (at most 5% risk of error), if some candidate is preferred over, or even with, every other"),
    Situation("duel proven in the model", "best-duel", "confident", ("proven", 0.05, ("bradley-terry",)), "winner, proven", f"{DUEL.format('', '')} (at most 5% risk of error), if the duels follow the Bradley-Terry model on the features of the candidates"),
    Situation("duel proven with two assumptions", "best-duel", "confident", ("proven", 0.05, ("bradley-terry", "missing-at-random")), "winner, proven", (f"{DUEL.format('', '')} (at most 5% risk of error), "
                                                                                                                                                         "if "
                                                                                                                                                         "the "
                                                                                                                                                         "duels "
                                                                                                                                                         "follow "
                                                                                                                                                         "the "
                                                                                                                                                         "Bradley-Terry "
                                                                                                                                                         "model "
                                                                                                                                                         "on "
                                                                                                                                                         "the "
                                                                                                                                                         "features "
                                                                                                                                                         "of "
                                                                                                                                                         "the "
                                                                                                                                                         "candidates "
                                                                                                                                                         "and "
                                                                                                                                                         "the "
                                                                                                                                                         "outcome "
                                                                                                                                                         "that "
                                                                                                                                                         "a "
                                                                                                                                                         "comparison "
                                                                                                                                                         "would "
                                                                                                                                                         "have "
                                                                                                                                                         "had "
                                                                                                                                                         "does "
                                                                                                                                                         "not "
                                                                                                                                                         "affect "
                                                                                                                                                         "whether "
                                                                                                                                                         "it "
                                                                                                                                                         "is "
                                                                                                                                                         "missing")),
    Situation("duel proven, one dropped", "best-duel", "confident", ("proven", 0.1, ()), "winner, proven", f"{DUEL.format(ONE_GONE, '')} (at most 10% risk of error; a 5% risk of error was requested; candidates that were dropped during the campaign increase it)", status=("dropped", "best", "eliminated"), raised_by=("dropped",)),
    Situation("duel proven within epsilon", "best-duel", "confident", PROVEN, "no candidate is preferred in more than 60% of duels (5% risk of error), proven", f"{DUEL.format('', ' by more than 0.1')} (at most 5% risk of error)", epsilon=0.1),
    Situation("duel proven within epsilon if a winner exists", "best-duel", "confident", ("proven", 0.05, ("winner-exists",)), "the candidate over which no other is preferred is not preferred in more than 60% of duels (5% risk of error), proven", "on these 5 examples the candidate over which no other is preferred is not preferred over b by more than 0.1 (at most 5% risk of error), if some candidate is preferred over, or even with, every other", epsilon=0.1),
    Situation("duel proven if a winner exists, one dropped", "best-duel", "confident", ("proven", 0.15, ("winner-exists",)), "winner, proven", f"{DUEL.format(ONE_GONE, '')} (at most 15% risk of error; a 5% risk of error was requested; candidates that were dropped during the campaign increase it), if some candidate that was not dropped is preferred over every other such one", status=("dropped", "best", "eliminated"), raised_by=("dropped",)),
    Situation("duel proven within epsilon if a winner exists, one dropped", "best-duel", "confident", ("proven", 0.15, ("winner-exists",)), "of all candidates that were not dropped, the one over which no other is preferred is not preferred in more than 60% of duels (15% risk of error), proven", f"on these 5 examples, of all {ONE_GONE}the candidate over which no other is preferred is not preferred over b by more than 0.1 (at most 15% risk of error; a 5% risk of error was requested; candidates that were dropped during the campaign increase it), if some candidate that was not dropped is preferred over every other such one", status=("dropped", "best", "eliminated"), epsilon=0.1, raised_by=("dropped",)),
    Situation("duel exact", "best-duel", "exhausted", EXACT, "winner, exact", f"exact: {DUEL.format('', '')}"),
    Situation("duel tied exactly", "best-duel", "exhausted", EXACT, "tied, exact", "exact: on these 5 examples no candidate is preferred over the tied ones", status=TIED),
    Situation("duel exhausted with unscored duels", "best-duel", "exhausted", NONE, "undecided", UNSCORED, status=OPEN),
    Situation("duel exhausted in a circle", "best-duel", "exhausted", EXACT, "none", "exact: on these 5 examples no candidate is preferred over, or even with, every other", status=("eliminated",) * 3, unread=()),
    Situation("duel budget, delta asked", "best-duel", "budget", NONE, "undecided", "undecided at error probability 0.05: the comparison budget is spent: 40 of 40; continue with winnow resume letters --set stopping.budget=MORE", status=OPEN, spent=OWN),
    Situation("duel budget, no delta", "best-duel", "budget", HEURISTIC, "winner, heuristic", "heuristic: the comparison budget is spent: 40 of 40, and no error probability (stopping.delta) was requested", status=OPEN, delta=None, spent=OWN),
    Situation("duel all dropped", "best-duel", "all-dropped", NONE, "failed", NOBODY, best=None, status=("dropped",) * 3),
    # certify
    Situation("certify running", "certify", "running", NONE, "interrupted", "nothing is claimed", best=None, status=OPEN, delta=0.1, ended=False),
    Situation("certify certified", "certify", "certified", ("proven", 0.1, ("random-labels",)), "winner, proven", CERTIFIED, status=("certified", "certified", "active"), delta=0.1),
    Situation("certify certified by labels that were seen", "certify", "certified", ("proven", 0.1, ("random-labels",)), "winner, proven", (f"{CERTIFIED} and nothing in this campaign was chosen after seeing an earlier campaign's results "
"on these labels"), status=("certified", "certified", "active"), delta=0.1, earlier=SEEN),
    Situation("certify none", "certify", "none-certified", NONE, "none", "nothing is claimed", best=None, status=("refuted", "untested", "untested"), delta=0.1),
    Situation("certify none, one dropped", "certify", "none-certified", NONE, "none", "nothing is claimed", best=None, status=("dropped", "untested", "untested"), delta=0.1),
    Situation("certify none, labels spent", "certify", "none-certified", NONE, "none", "nothing is claimed", best=None, status=("untested", "untested", "untested"), delta=0.1, spent=LABELS),
    Situation("certify by a plain mean", "certify", "passed", HEURISTIC, "winner, heuristic", "heuristic: eval uses a plain mean and guarantees nothing", status=("passed", "passed", "active"), delta=0.1, selector="eval"),
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


def decided(situation, changes):
    """The stored decision of a situation, but for some fields."""
    kind, delta, assumptions = situation.claim
    count = len(situation.status)
    found = DecisionRecord(
        round_number=3,
        best=None if situation.best is None else "abc"[situation.best],
        estimates=[0.2, 0.8, 0.1, 0.1][:count],
        lower=[0.1, 0.7, 0.0, 0.0][:count],
        upper=[0.3, 0.9, 0.2, 0.2][:count],
        status=situation.status,
        claim={
            "kind": kind,
            "delta": delta,
            "raised_by": list(situation.raised_by),
            "assumptions": list(assumptions),
            "refuted": [],
        },
        stop=situation.reason != "running",
        reason=situation.reason,
        decided_at=dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
    )
    return replace(found, **changes)


def certificate(situation):
    return Certificate(
        risk=0.2,
        baseline=None,
        selector=situation.selector,
        costs={"a": 3.0, "b": 2.0, "c": 1.0},
        cost="custom",
        labels_used=40,
        unanswerable=0,
        unreadable=0,
        unclear=0,
        waits_for=situation.waits,
        incomplete=0,
        plain="c",
        plain_mean=0.1,
        means={"a": 0.2, "b": 0.8, "c": 0.1},
        in_sequence=True,
    )


DROPPED = Unscored(name="c", told=9, unscored=9, reason="engine_failed")
STANDING = Standing(
    mean=0.8,
    scored=40,
    late_mean=0.9,
    late_scored=10,
    single_scored=20,
    prompts=40,
    unanswered=0,
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


def answered(database, situation, monkeypatch, selector=None, played=None, **changes):
    """The answer of a situation; of its decision, `changes` are other fields.

    `selector` is its selector and `played` its arms and examples, where these make a difference.
    """
    if situation.mixed:
        monkeypatch.setattr(derive, "server_changes", lambda session, campaign: [CHANGED])
    monkeypatch.setattr(derive, "earlier_of", lambda look: situation.earlier)
    names = "abcd"[: len(situation.status)]
    campaign = store_campaign(
        database,
        re.sub(r"[^\w ]", "", situation.name),  # a name that a file can give
        delta=situation.delta,
        epsilon=situation.epsilon,
        names=names,
    )
    arms = [min(2, len(names) - 1), *situation.unread]
    outcomes = [1.0] + [None] * len(situation.unread)
    campaign.finish(campaign.plan(0, arms, list(range(len(arms)))), outcomes)
    record = replace(campaign.record, name="letters", objective=situation.objective)
    if situation.costs is not None:
        selector = {"name": "champion", "params": {"prefer": "cost", "costs": situation.costs}}
    if situation.top_m > 1:
        selector = {"name": "champion", "params": {"top_m": situation.top_m}}
    if situation.baseline is not None:
        selector = {"name": "gate", "params": {"baseline": situation.baseline}}
    if situation.groups is not None:
        compared, weights = situation.groups
        groups = {"by": "level", "objective": compared, "weights": weights}
        record = replace(record, spec={**record.spec, "groups": groups})
    if situation.constraints:
        record = replace(record, spec={**record.spec, "constraints": list(situation.constraints)})
    if selector is not None:
        record = replace(record, spec={**record.spec, "selector": selector})
    if played is not None:
        played(campaign)
    with database.reading() as session:
        return derive.answer_of(
            Look(session, record),
            decision=decided(situation, changes),
            has_ended=situation.ended and not situation.waits,
            waits=bool(situation.waits),
            people=None,
            stopped_by=situation.spent if situation.reason == "running" else None,
            budgets=[] if situation.spent is None else [situation.spent],
            n_examples=5,
            without_text=0,
            certificate=certificate(situation) if situation.objective == "certify" else None,
            standing=STANDING if situation.objective == "route" else None,
        )


def test_there_are_enough_situations():
    assert len({situation.name for situation in SITUATIONS}) == len(SITUATIONS) >= 45


@pytest.fixture(scope="module")
def answers():
    """By the name of their situations."""
    return {}


@pytest.fixture
def answer(answers, situation, request):
    """Worked out for the first test that asks for it; an answer never changes."""
    if situation.name not in answers:
        database, monkeypatch = map(request.getfixturevalue, ("database", "monkeypatch"))
        answers[situation.name] = answered(database, situation, monkeypatch)
    return answers[situation.name]


@pytest.mark.parametrize("situation", SITUATIONS, ids=[situation.name for situation in SITUATIONS])
def test_what_is_said_follows_from_what_was_decided(answer, situation):
    state = "waiting" if situation.waits else "ended" if situation.ended else "interrupted"
    said = dict(answer_lines(answer))
    assert headline(answer, state) == situation.headline
    assert said["confidence"] == situation.sure


@pytest.mark.parametrize("situation", SITUATIONS, ids=[situation.name for situation in SITUATIONS])
def test_of_one_example_nothing_is_said_of_these(answer, situation):
    told = " ".join(sentence for _, sentence in answer_lines(replace(answer, n_examples=1)))
    assert "these 1 example" not in told
    assert not re.search(r"\b1 examples\b", told)


@pytest.mark.parametrize("situation", SITUATIONS, ids=[situation.name for situation in SITUATIONS])
def test_what_a_plug_in_claims_is_told_as_its_word(answer, situation):
    assert "selector" not in dict(answer_lines(answer))
    said = dict(answer_lines(replace(answer, plugin="mine"))).get("selector")
    claimed = f"mine is a third-party selector: Winnow has not verified that this is {answer.claim.kind}"
    assert said == (claimed if answer.is_guaranteed else None)


@pytest.mark.parametrize("situation", SITUATIONS, ids=[situation.name for situation in SITUATIONS])
def test_no_word_claims_more_than_the_claim(answer, situation):
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
        known = f"{LACKS[name]} comparisons have no outcome"
        losses = f"{WITHOUT_LOSS[name]} comparisons lack a loss"
        assert f"{name}: {known if answer.certificate is None else losses}" in told
    if answer.claim.kind == "proven":
        assert f"at most {risk_of(answer.claim.delta)}" in told or f"at most {answer.claim.delta:g}" in told
    if answer.outcome == "undecided" and answer.objective != "certify" and answer.baseline is None:
        assert not answer.is_guaranteed
        leading = ", ".join(answer.ranked[: answer.top_m])
        assert answer.best is None or dict(answer_lines(answer))["leading"] == leading


def test_a_comma_stands_between_thousands_of_examples(database, monkeypatch):
    """As it does between those of comparisons, whatever the sentence."""
    told = 0
    for objective in ("best-mean", "best-duel", "certify", "route"):
        for situation in [each for each in SITUATIONS if each.objective == objective][::20]:
            answer = replace(answered(database, situation, monkeypatch), n_examples=12_032)
            said = " ".join(sentence for _, sentence in answer_lines(answer))
            assert "12032" not in said, said
            told += "12,032" in said
    assert told > 2


@pytest.mark.parametrize(
    ("lower", "upper", "word"), [(0.02, 0.2, "yes: "), (-0.02, 0.2, "not shown: "), (-0.2, -0.02, "no: ")]
)
def test_routing_is_said_to_pay_only_where_the_interval_says_so(database, monkeypatch, lower, upper, word):
    found = Advantage(estimate=(lower + upper) / 2, lower=lower, upper=upper, delta=0.05, single=0)
    answer = answered(database, next(each for each in SITUATIONS if each.name == "route budget"), monkeypatch)
    answer = replace(answer, standing=replace(STANDING, advantage=found, single="a"))
    said = dict(answer_lines(answer))["pays"]
    assert said.startswith(word)
    # An estimate of few explored prompts says nothing where the interval does not.
    assert (f" is {(lower + upper) / 2:+.3f}, between" in said) == (word != "not shown: ")
    assert "between" in said
    assert said.endswith(
        " (95% confidence, simultaneously over all rounds). The interval is valid whichever candidate is the "
        "best; a is estimated to be the best"
    )
    late = replace(answer.standing, has_late=True)
    said = dict(answer_lines(replace(answer, standing=late, dropped=(DROPPED,))))["pays"]
    assert "best single candidate of those that were not dropped is" in said
    assert said.endswith("; a candidate that joined later is compared on the prompts since it joined")


def test_who_shares_the_best_mean_of_a_route_is_named_and_who_was_dropped_is_not_compared(
    database, monkeypatch
):
    def said(*estimates, **changes):
        situation = next(each for each in SITUATIONS if each.name == "route budget")
        found = answered(
            database, situation._replace(name=str(estimates)), monkeypatch, estimates=estimates, **changes
        )
        return dict(answer_lines(found))["single"]

    own = "b has the highest mean, 0.800 on the 20 prompts scored for it"
    assert said(0.2, 0.8, None) == own
    assert said(0.8, 0.8, None) == f"{own}, and so has a"
    assert said(0.8, 0.8, 0.8) == f"{own}, and so have a, c"
    dropped = said(0.8, 0.8, 0.9, status=("active", "active", "dropped"))
    assert dropped == f"of those that were not dropped, {own}, and so has a"


def test_of_the_baseline_of_a_certificate_nothing_is_said_to_be_unknown(database, monkeypatch):
    def said(word, *status, best=None):
        name = "certify none" if best is None else "certify certified"
        situation = next(each for each in SITUATIONS if each.name == name)
        situation = situation._replace(name=f"{word} {status}", status=status, best=best)
        found = answered(database, situation, monkeypatch)
        found = replace(found, certificate=replace(found.certificate, baseline="b"))
        return dict(answer_lines(found))[word]

    why = "because the tests go from the most expensive to the cheapest candidate and end at the first that is not certified: a"
    assert said("untested", "refuted", "untested", "untested") == (
        f"c: nothing is known about its risk, {why}; b was not tested either, although its drop below itself is 0"
    )
    assert said("untested", "refuted", "untested", "refuted") == (
        f"b: its drop below itself is 0, which was not tested, {why}"
    )
    shown = "a mean drop of at most 0.2 below b was neither shown nor ruled out with the labels so far"
    assert said("open", "refuted", "active", "active") == (
        f"c: {shown}; it was not shown for b either, although its drop below itself is 0"
    )
    assert said("open", "certified", "active", "refuted", best=0) == (
        "b: its drop below itself is 0, which its test did not show with the labels so far"
    )


def said_of(database, monkeypatch, situation):
    return answered(database, situation, monkeypatch)


@pytest.mark.parametrize("waits", [(), ("e1",)])
def test_a_certificate_before_the_end_takes_as_much_for_granted(database, monkeypatch, waits):
    running = next(each for each in SITUATIONS if each.name == "certify running")
    answer = said_of(
        database,
        monkeypatch,
        running._replace(best=1, status=("certified", "certified", "active"), waits=waits),
    )
    assert dict(answer_lines(answer))["confidence"] == CERTIFIED
    assert "that was shown to have a risk of at most" in dict(answer_lines(answer))["certified"]


def test_labels_that_another_test_showed_are_counted_and_every_bound_takes_them_for_unseen(
    database, monkeypatch
):
    said = lines_of(database, monkeypatch, "certify certified by labels that were seen")
    assert said["seen"].startswith(
        "campaign first, with other candidates or another test, has outcomes on 60 of the 100 examples that "
        "count here, labelled or not; if candidates were changed, or chosen among many, after seeing these results, "
        "nothing is"
    )
    assert said["risk"].endswith(", under the assumptions of the line confidence)")
    assert said["confidence"].endswith(" seeing an earlier campaign's results on these labels")
    refuted = {"status": ("refuted", "certified", "active")}
    told = lines_of(database, monkeypatch, "certify certified", refuted)
    assert told["refuted"] == (
        "a: a risk above 0.2 (error probability for all of them together: at most 0.1, under the "
        "assumptions of the line confidence)"
    )
    assert told["confidence"] == CERTIFIED
    said = lines_of(
        database, monkeypatch, "certify certified", {**refuted, "mixed": True, "name": "a mixed one"}
    )["refuted"]
    assert said == f"a: a risk above 0.2 (this guarantees nothing: {MIXED})"


def test_the_probability_of_intervals_is_not_rounded_up(database, monkeypatch):
    situation = next(each for each in SITUATIONS if each.name == "mean proven")
    told = dict(answer_lines(said_of(database, monkeypatch, situation._replace(delta=0.001))))
    assert told["mean"].endswith("(99.9% confidence for all intervals and rounds together)")


def test_intervals_of_a_model_say_that_they_take_it_for_granted(database, monkeypatch):
    situation = next(each for each in SITUATIONS if each.name == "duel budget, delta asked")
    answer = said_of(database, monkeypatch, situation)
    told = dict(answer_lines(replace(answer, intervals_if=("bradley-terry",))))
    assert (
        "95% confidence for all intervals and rounds together, if the duels follow the Bradley-Terry model"
        in told["wins"]
    )


def test_in_a_circle_only_candidates_that_are_left_are_said_to_be_beaten(database, monkeypatch):
    situation = next(each for each in SITUATIONS if each.name == "duel exhausted in a circle")
    answer = said_of(
        database,
        monkeypatch,
        situation._replace(status=("eliminated", "eliminated", "dropped", "eliminated"), unread=(2,)),
    )
    assert (
        dict(answer_lines(answer))["winner"]
        == "none: every candidate that was not dropped is beaten by another one"
    )


def lines_of(database, monkeypatch, name, changes=None, **answer):
    """The lines of a situation, with some of its fields changed, of its decision those that `answer` names."""
    situation = next(each for each in SITUATIONS if each.name == name)
    return dict(answer_lines(answered(database, situation._replace(**changes or {}), monkeypatch, **answer)))


def test_more_labels_need_another_campaign(database, monkeypatch):
    said = lines_of(database, monkeypatch, "certify none, labels spent")["ended"]
    assert said == (
        "the label budget is spent: 40 of 40; the tests depend on the number of labels, so more labels need "
        "a new campaign: winnow run SPEC --fork NEW_NAME --set stopping.budget=MORE (the error "
        "probabilities of the two campaigns add up if nothing else differs)"
    )
    other = lines_of(database, monkeypatch, "certify tokens spent")["ended"]
    assert other.endswith("continue with winnow resume letters --set stopping.budget.tokens=MORE")


FEATURES = {"name": "llm-po-bt", "params": {}}
ESTIMATE = "its strongest opponent, as the Bradley-Terry model estimates it, between"


def test_an_estimate_of_the_model_is_called_one_until_the_duels_refute_the_model(database, monkeypatch):
    said = lines_of(database, monkeypatch, "duel proven in the model", selector=FEATURES)
    assert ESTIMATE in said["wins"]
    assert said["wins"].endswith(
        "if the duels follow the Bradley-Terry model on the features of the candidates)"
    )
    assert "model" not in said
    counted = lines_of(database, monkeypatch, "duel proven by its own duels")["wins"]
    assert counted.startswith("0.800 of its duels with")
    assert "estimates" not in counted


@pytest.mark.parametrize("name", ["duel running", "duel proven by its own duels"])
def test_that_the_model_is_refuted_is_said_and_nothing_is_said_to_need_it(database, monkeypatch, name):
    claim = {
        "kind": "none",
        "delta": None,
        "raised_by": [],
        "assumptions": [],
        "refuted": ["bradley-terry"],
    }
    if name != "duel running":
        claim |= {"kind": "proven", "delta": 0.05}
    said = lines_of(database, monkeypatch, name, selector=FEATURES, claim=claim)
    assert said["model"] == (
        "refuted at error probability 0.05: the assumption that the duels follow the "
        "Bradley-Terry model on the features of the candidates; no result here assumes it"
    )
    assert "Bradley-Terry" not in said["wins"] + said["confidence"]


AT_ONCE = " (95% confidence for all intervals and rounds together)"


def test_intervals_of_dropped_candidates_and_of_risks_are_said_with_their_probability(database, monkeypatch):
    dropped = lines_of(database, monkeypatch, "mean proven, one dropped")["dropped"]
    assert dropped.endswith("; the interval of its mean is 0.100 to 0.300")
    unknown = {"lower": [0.1, None, 0.1], "upper": [0.3, None, 0.2]}
    larger = "mean proven with a larger bound after drops"
    dropped = lines_of(database, monkeypatch, larger, **unknown)["dropped"]
    assert dropped.endswith(f"; the interval of its mean is 0.100 to 0.300{AT_ONCE}")
    risk = lines_of(database, monkeypatch, "certify certified")["risk"]
    assert risk == (
        "0.800, between 0.700 and 0.900: its mean loss against human labels (90% confidence for all upper ends "
        "and rounds together, and 90% for all lower ends and rounds together, under the assumptions of the "
        "line confidence)"
    )
    without = lines_of(database, monkeypatch, "certify by a plain mean", lower=[None] * 3, upper=[None] * 3)
    assert without["risk"] == "0.800: its mean loss against human labels"
    assert without["passed"].startswith("b, the cheapest candidate that seems to have a risk of at most 0.2")


def test_a_risk_that_the_autoevaluator_alone_says_is_not_called_one_against_human_labels(
    database, monkeypatch
):
    changed = {"name": "by the autoevaluator", "selector": "autoeval"}
    said = lines_of(
        database, monkeypatch, "certify by a plain mean", changed, lower=[None] * 3, upper=[None] * 3
    )
    assert said["risk"] == "0.800: its mean loss against the autoevaluator's answers"


def certified(database, monkeypatch, changed=None, **of_certificate):
    """What is said where b is certified, and other things of its certificate hold."""
    situation = next(each for each in SITUATIONS if each.name == "certify certified")
    answer = answered(database, situation._replace(**(changed or {})), monkeypatch)
    answer = replace(answer, n_examples=240, certificate=replace(answer.certificate, **of_certificate))
    return dict(answer_lines(answer))


@pytest.mark.parametrize(
    ("selector", "become"),
    [
        ("r-eval", "assumed to be the worst for the claim"),
        ("eval", "left out of every mean"),
        ("autoeval", "left out of every mean"),
    ],
)
def test_texts_that_are_not_stored_are_left_out_of_plain_means(database, monkeypatch, selector, become):
    situation = next(each for each in SITUATIONS if each.name == "certify by a plain mean")
    answer = answered(database, situation._replace(name=selector, selector=selector), monkeypatch)
    said = dict(answer_lines(replace(answer, stored_texts=(30, 40))))["texts"]
    assert said.startswith(
        f"only stored outputs are used: 10 of 40 comparisons have no output. Their scores are {become}; "
    )


def test_labels_of_what_nobody_can_answer_are_counted(database, monkeypatch):
    assert "skipped" not in certified(database, monkeypatch)
    assert certified(database, monkeypatch, {"name": "one"}, unanswerable=1)["skipped"] == (
        "1 label of the 40 used marks its example as unanswerable: each counts as a loss of 1 in all "
        "risks shown here, whatever a candidate answers"
    )


def test_labels_that_the_judge_cannot_read_are_counted(database, monkeypatch):
    assert certified(database, monkeypatch, unreadable=3)["labels"] == (
        "3 labels are not readable by the judge: each counts as a loss of 1 in all risks shown here, "
        "whatever a candidate answers"
    )


def test_outputs_that_people_found_unclear_are_counted(database, monkeypatch):
    said = "annotators marked 2 outputs as unclear: each counts as a loss of 1 in all risks shown here"
    assert certified(database, monkeypatch, unclear=2)["unclear"] == said
    held = certified(database, monkeypatch, {"name": "held"}, unclear=2, baseline="a")
    assert (
        held["unclear"] == f"{said}, whatever the baseline scores, except for a, whose drop below itself is 0"
    )


def test_what_is_a_loss_of_1_for_all_others_is_none_for_the_baseline_itself(database, monkeypatch):
    said = certified(database, monkeypatch, unanswerable=1, unreadable=3, baseline="a")
    for word in ("skipped", "labels"):
        assert said[word].endswith("whatever a candidate answers, except for a, whose drop below itself is 0")


def test_without_an_autoevaluator_nothing_is_said_of_it_and_of_unlabelled_examples(database, monkeypatch):
    said = certified(database, monkeypatch, selector="r-eval")
    assert said["confidence"] == (
        "the probability that any certified candidate has a higher risk is at most 0.1, if the labelled examples "
        "were drawn at random from the examples that you will see in production"
    )
    assert "autoevaluator" not in " ".join(said.values())


def test_without_an_autoevaluator_only_labels_may_have_been_seen(database, monkeypatch):
    said = certified(database, monkeypatch, {"name": "seen", "earlier": SEEN}, selector="r-eval")
    assert "has outcomes on 60 of the 100 labelled examples that count here; if" in said["seen"]


def test_candidates_of_the_same_cost_are_not_called_dearer_than_the_one_that_is_named(database, monkeypatch):
    said = certified(database, monkeypatch, costs={"a": 0.00015, "b": 0.00015, "c": 0.0001}, cost="price")
    assert said["certified"] == (
        "b, tested last of the 2 cheapest candidates that were shown to have a risk of at most 0.2; its "
        "price is 0.00015 (certify.costs), the same as that of a"
    )
    alone = certified(database, monkeypatch, {"name": "alone"}, costs={"a": 2e-4, "b": 1.5e-4, "c": 1e-4})
    assert alone["certified"].startswith("b, the cheapest candidate that was shown to have")


def test_a_mean_is_moved_into_its_interval_only_where_it_lies_outside(database, monkeypatch):
    ends = {"estimates": [0.2, 0.7, None], "lower": [0.1, 0.7, None], "upper": [0.3, 0.9, None]}
    situation = next(each for each in SITUATIONS if each.name == "certify certified")
    for number, (mean, what) in enumerate([(0.7 + 1e-16, "its mean"), (0.6, "the value in its interval")]):
        named = situation._replace(name=f"moved {number}")
        answer = answered(database, named, monkeypatch, **ends)
        means = {"a": 0.2, "b": mean, "c": None}
        said = dict(answer_lines(replace(answer, certificate=replace(answer.certificate, means=means))))
        assert said["risk"].startswith(f"0.700, between 0.700 and 0.900: {what}")


def test_who_was_not_tested_is_named_and_no_mean_is_said_to_fail_them(database, monkeypatch):
    untested = {"means": {"a": 0.3, "b": None, "c": None}, "plain": None, "plain_mean": None}
    refuted = {"name": "refuted", "reason": "none-certified", "claim": NONE, "best": None}
    statuses = {"status": ("refuted", "untested", "untested")}
    said = certified(database, monkeypatch, {**refuted, **statuses}, **untested)
    assert (
        said["plain"]
        == "the plain mean of human losses would certify no candidate of those with human losses (a)"
    )
    assert said["untested"] == (
        "b, c: nothing is known about their risks, because the tests go from the most expensive to the cheapest candidate and end at "
        "the first that is not certified: a"
    )
    winner = {"name": "untested", "status": ("certified", "dropped", "untested"), "best": 0}
    said = certified(database, monkeypatch, winner, **untested | {"plain": "a", "plain_mean": 0.3})
    assert said["plain"] == (
        "of those with human losses (a), the plain mean of human losses would choose a (0.300), without any "
        "guarantee"
    )
    assert said["untested"].startswith("c: nothing is known about its risk, because the tests go")
    assert said["untested"].endswith("the first that is not certified: b")
    nobody = dict.fromkeys("abc")
    said = certified(database, monkeypatch, {"name": "nobody"}, **untested | {"means": nobody})
    assert said["plain"] == "no human loss is known yet, so there is no plain mean"


@pytest.mark.parametrize(
    ("spent", "ended"),
    [
        (LABELS, "the label budget is spent: 40 of 40; the tests depend on the number of labels"),
        (None, "all 40 examples that may be labelled are used; the tests depend on the number of labels"),
    ],
)
@pytest.mark.parametrize("best", [1, None])
def test_tests_that_end_for_want_of_labels_say_so_and_whom_they_leave_open(
    database, monkeypatch, spent, ended, best
):
    changed = {"spent": spent, "best": best}
    if best is None:
        changed |= {"reason": "none-certified", "claim": NONE, "status": ("active", "untested", "untested")}
    said = certified(database, monkeypatch, changed)
    left = "a" if best is None else "c"
    assert (
        said["open"]
        == f"{left}: a risk of at most 0.2 was neither shown nor ruled out with the labels so far"
    )
    assert said["ended"].startswith(ended)
    every = certified(database, monkeypatch, {**changed, "name": "every example"}, labels_used=240)
    assert every["ended"].startswith("all 240 examples that may be labelled are used; the tests depend on")
    settled = {**changed, "name": "settled", "status": ("certified", "certified", "refuted"), "best": 1}
    if best is not None:
        assert not {"open", "ended"} & set(certified(database, monkeypatch, settled))


def test_of_a_plain_mean_nothing_is_said_of_bets_and_nothing_is_called_certified(database, monkeypatch):
    spent = {"name": "none passed", "selector": "eval", "spent": LABELS, "best": None, "claim": NONE}
    ended = {"reason": "none-certified", "status": ("active", "untested", "untested")}
    said = certified(database, monkeypatch, {**spent, **ended})
    assert said["passed"] == "none: no candidate seems to have a risk of at most 0.2"
    assert "certified" not in said
    assert said["ended"] == (
        "the label budget is spent: 40 of 40; a mean is read only once, with all labels, so more labels "
        "need a new campaign: winnow run SPEC --fork NEW_NAME --set stopping.budget=MORE"
    )


def test_of_a_certified_baseline_nothing_is_claimed_in_comparison_with_itself(database, monkeypatch):
    def said(name, *status, best):
        situation = next(each for each in SITUATIONS if each.name == "certify certified")
        answer = answered(database, situation._replace(name=name, status=status, best=best), monkeypatch)
        answer = replace(answer, certificate=replace(answer.certificate, baseline="b"))
        return headline(answer, "ended"), dict(answer_lines(answer))

    top, lines = said("own", "refuted", "certified", "refuted", best=1)
    assert top == "the baseline itself"
    which = (
        "b, the baseline itself: no cheaper candidate was shown to have a mean drop of at most 0.2 below b"
    )
    assert lines["certified"].startswith(which)
    assert lines["risk"] == "not tested for b: its drop below itself is 0, whatever it answers"
    assert lines["confidence"] == "nothing is claimed: no candidate except b itself is certified"
    _, lines = said("dearer, too", "certified", "certified", "refuted", best=1)
    assert lines["certified"].startswith(which)
    assert lines["confidence"].startswith(
        "the probability that any certified candidate except b has a larger mean drop"
    )
    top, lines = said("cheaper, too", "certified", "certified", "certified", best=2)
    assert top == "winner, proven"
    assert lines["certified"].startswith("c, the cheapest candidate that was shown to have a mean drop")
    assert lines["confidence"].startswith(
        "the probability that any certified candidate except b has a larger mean drop"
    )


def test_where_a_drop_is_limited_it_is_drops_that_are_told(database, monkeypatch):
    changed = {"name": "a drop", "status": ("refuted", "certified", "active")}
    situation = next(each for each in SITUATIONS if each.name == "certify certified")._replace(**changed)
    answer = answered(database, situation, monkeypatch)
    said = dict(answer_lines(replace(answer, certificate=replace(answer.certificate, baseline="c"))))
    assert said["refuted"].startswith("a: a mean drop of more than 0.2 below c (")
    assert said["confidence"].startswith(
        "the probability that any certified candidate has a larger mean drop is at most"
    )
    assert ": its mean drop below c against human labels" in said["risk"]


def test_of_a_served_model_that_changed_no_risk_was_shown(database, monkeypatch):
    said = lines_of(database, monkeypatch, "certify certified", {"name": "a changed one", "mixed": True})
    assert "candidate that seems to have a risk of at most 0.2" in said["passed"]


ENDS = {"lower": [0.1, 0.8, 0.1], "upper": [0.3, 0.8, 0.2]}


def all_scored(campaign):
    """All five examples of b, scored."""
    campaign.finish(campaign.plan(1, [1] * 5, list(range(5))), [1.0, 1.0, 1.0, 1.0, 0.0])


def one_unscored(campaign):
    """All five examples of b, one of them without an outcome."""
    campaign.finish(campaign.plan(1, [1] * 5, list(range(5))), [1.0, 1.0, 1.0, 1.0, None])


def all_duels(campaign):
    """b's duels with c on all examples, and c is the only one left."""
    campaign.finish_duels(campaign.plan(1, [[2, 1]] * 5, list(range(5))), [(0.0, [])] * 5)


@pytest.mark.parametrize(
    ("name", "played", "status", "is_known"),
    [
        ("mean exact", all_scored, ("eliminated", "best", "eliminated"), True),
        ("mean exact", one_unscored, ("eliminated", "best", "eliminated"), False),
        ("duel exact", all_duels, ("dropped", "best", "eliminated"), True),
        ("duel exact", all_duels, ("eliminated", "best", "eliminated"), False),
    ],
)
def test_only_a_candidate_whose_every_example_is_scored_is_known_exactly(
    database, monkeypatch, name, played, status, is_known
):
    said = lines_of(database, monkeypatch, name, {"unread": (), "status": status}, played=played, **ENDS)
    line = said["mean" if name.startswith("mean") else "wins"]
    assert line.endswith("(known exactly)" if is_known else AT_ONCE.strip())


def test_nothing_is_known_exactly_of_two_models_with_one_name(database, monkeypatch):
    said = lines_of(
        database, monkeypatch, "mean exact", {"unread": (), "mixed": True}, played=all_scored, **ENDS
    )
    assert said["mean"].endswith("; it guarantees nothing: " + MIXED)


def test_how_a_candidate_compares_with_the_baseline_is_told_with_its_interval(database, monkeypatch):
    differences = {
        "against": 1,
        "delta": 0.05,
        "estimates": [-0.6, None, 0.1],
        "lower": [-0.7, None, 0.05],
        "upper": [0.01, None, 0.2],
    }
    told = lines_of(database, monkeypatch, "gate exact", differences=differences)
    assert told["baseline"] == "b: mean 0.800 on the scored examples"
    assert told["no worse"] == (
        "c: +0.100 against b on examples scored for both; on the 5 examples between +0.050 and +0.200 (95% confidence for "
        "all intervals and rounds together)"
    )
    assert told["worse"] == (
        "a: -0.600 against b on examples scored for both; on the 5 examples at least -0.700. Known only: below 0"
    )


def test_a_difference_to_the_baseline_is_known_exactly_where_both_have_all_their_scores(
    database, monkeypatch
):
    """Ends that meet may be those of an interval that missed the difference."""

    def played(campaign):
        both = [1] * 5 + [2] * 4  # c has been asked the first example before
        campaign.finish(campaign.plan(1, both, [*range(5), *range(1, 5)]), [1.0] * 9)

    ends = [-0.6, None, 0.1]
    differences = {"against": 1, "delta": 0.05, "estimates": ends, "lower": ends, "upper": ends}
    points = {"lower": [0.2, 0.8, 0.9], "upper": [0.2, 0.8, 0.9]}
    told = lines_of(
        database,
        monkeypatch,
        "gate exact",
        {"unread": ()},
        played=played,
        differences=differences,
        **points,
    )
    assert told["baseline"] == "b: mean 0.800 on the 5 examples (known exactly)"
    assert told["no worse"] == "c: +0.100 against b on the 5 examples (known exactly)"
    assert told["worse"].startswith(
        "a: -0.600 against b on examples scored for both; on the 5 examples between -0.600 and -0.600 (95% "
    )


def test_a_gate_that_was_told_nothing_claims_nothing(database, monkeypatch):
    told = lines_of(database, monkeypatch, "gate running")
    assert told["open"] == "c: nothing known yet"


def test_a_gate_that_failed_says_so_and_not_that_something_is_known_yet(database, monkeypatch):
    told = lines_of(database, monkeypatch, "gate, baseline dropped, nothing shown")
    assert told["open"] == "c: nothing is known"


def test_a_gate_tells_no_interval_of_a_mean_as_if_it_held_with_those_of_differences(database, monkeypatch):
    """Means and differences have an error probability each: both together hold less surely."""
    told = lines_of(database, monkeypatch, "gate, one dropped")
    assert told["dropped"].startswith("a: ")
    assert "interval" not in told["dropped"]
    assert "interval" in lines_of(database, monkeypatch, "mean proven, one dropped")["dropped"]


def test_the_runner_up_is_told_with_how_far_it_is_behind(database, monkeypatch):
    differences = {
        "against": 1,
        "delta": 0.05,
        "estimates": [-0.6, None, -0.1],
        "lower": [-0.7, None, -0.1],
        "upper": [0.01, None, -0.1],
    }
    told = lines_of(database, monkeypatch, "mean proven", differences=differences)
    assert told["runner-up"] == "c: b is ahead by 0.100 on the 5 examples, between 0.100 and 0.100"
    told = lines_of(database, monkeypatch, "mean proven, two of four dropped", differences=differences)
    assert "runner-up" not in told  # c was dropped, of d nothing is known, and a was dropped
    told = lines_of(database, monkeypatch, "mean tied exactly", differences=differences)
    assert told["runner-up"].startswith("c: b is ahead by 0.100")
    nearer = {**differences, "estimates": [-0.6, None, -0.8], "lower": [-0.7, None, -0.9]}
    told = lines_of(database, monkeypatch, "mean proven at another delta", differences=nearer)
    assert told["mean"].endswith("(90% confidence for all intervals and rounds together)")
    assert told["runner-up"] == (
        "a: b is ahead by 0.600 on the 5 examples, at most 0.700. Proven only: not behind"
    )
    ahead = {**differences, "estimates": [-0.6, None, 0.011], "upper": [0.01, None, 0.02]}
    told = lines_of(database, monkeypatch, "mean proven within epsilon", differences=ahead)
    assert told["runner-up"].startswith(
        "c: b is behind by 0.011 on the 5 examples; its lead is between -0.020 "
    )
    of_another = {**differences, "against": 2}
    assert "runner-up" not in lines_of(database, monkeypatch, "mean exact", differences=of_another)


AT_MOST = "at most 0.061 (95% confidence for all intervals and rounds together)"
"""An interval of a lead without its lower end."""
ONE_IS_WRONG = "One of the two is wrong; each has its own error probability"
BOTH = "between -0.009 and 0.061 (95% confidence for all intervals and rounds together)"


@pytest.mark.parametrize(
    ("value", "sign", "said"),
    [
        (0.75, "", "0.750"),
        (0.9996, "", "0.9996"),  # 4 998 of 5 000 examples are not all of them
        (0.99995, "", "0.99995"),
        (0.0002, "", "0.0002"),
        (0.0002, "+", "+0.0002"),
        (-0.0002, "+", "-0.0002"),
        (1.0, "", "1.000"),
        (1.0 - 1e-12, "", "1.000"),
        (0.0, "+", "+0.000"),
        (0.2504, "", "0.250"),
    ],
)
def test_no_number_reads_as_all_or_nothing_that_is_neither(value, sign, said):
    assert rounded(value, sign) == said


class Lead(NamedTuple):
    """A situation, the winner's lead with its ends, and what is to be said of it."""

    situation: str
    ends: tuple
    said: str
    changes: dict = {}  # noqa: RUF012 -- a tuple's defaults are never written to


LEADS = [
    Lead("mean running", (-0.009, 0.026, 0.061), f"b is ahead by 0.026 on the 5 examples, {BOTH}"),
    Lead("mean budget, delta asked", (-0.009, 0.026, 0.061), f"b is ahead by 0.026 on the 5 examples, {BOTH}"),
    Lead("mean proven", (0.0, 0.026, 0.061), f"b is ahead by 0.026 on the 5 examples, {BOTH.replace('-0.009', '0.000')}"),
    Lead("mean proven", (-0.009, 0.026, 0.061), f"b is ahead by 0.026 on the 5 examples, {AT_MOST}. Proven only: not behind"),
    Lead("mean proven within epsilon", (-0.009, 0.026, 0.061), f"b is ahead by 0.026 on the 5 examples, {BOTH}"),
    Lead("mean proven within epsilon", (-0.03, 0.026, 0.061), f"b is ahead by 0.026 on the 5 examples, {AT_MOST}. Proven only: at most 2 points behind"),
    Lead("mean exact", (-0.009, 0.026, 0.061), f"b is ahead by 0.026 on the 5 examples, {AT_MOST}. Known only: not behind"),
    Lead("mean proven", (-0.2, -0.1, 0.061), f"b is ahead by an amount that has no good estimate on the 5 examples, {AT_MOST}. Proven only: not behind"),
    Lead("mean proven", (-0.2, -0.1, -0.05), f"b is ahead by an amount that has no good estimate on the 5 examples, {BOTH.replace('-0.009', '-0.200').replace('0.061', '-0.050')}. Proven only: not behind. {ONE_IS_WRONG}"),
    Lead("mean proven", (-0.009, 0.026, 0.061), "b is ahead by 0.026 on the 5 examples, between -0.009 and 0.061; it guarantees nothing: " + MIXED, {"mixed": True}),
    Lead("mean proven missing", (-0.009, 0.026, 0.061), (f"b is ahead by 0.026 on the 5 examples, {AT_MOST}. Proven only: not behind, if "
"the outcome that a comparison would have had does not affect whether it is missing")),
    Lead("worst group, proven within epsilon", (-0.03, 0.026, 0.061), f"b is ahead by 0.026 in the worst-group mean on the 5 examples, {AT_MOST}. Proven only: at most 2 points behind"),
    Lead("gate proven better", (-0.009, 0.026, 0.061), f"+0.026 against b on examples scored for both; on the 5 examples {AT_MOST.replace('0.061', '+0.061')}. Proven only: above 0"),
    Lead("gate proven no worse", (-0.019, 0.026, 0.061), f"+0.026 against b on examples scored for both; on the 5 examples {BOTH.replace('-0.009', '-0.019').replace('0.061', '+0.061')}"),
    Lead("gate proven no worse", (-0.03, 0.026, 0.061), f"+0.026 against b on examples scored for both; on the 5 examples {AT_MOST.replace('0.061', '+0.061')}. Proven only: at least -0.02"),
    Lead("gate proven worse", (-0.061, -0.04, 0.01), f"-0.040 against b on examples scored for both; on the 5 examples {AT_MOST.replace('most 0', 'least -0')}. Proven only: below -0.02"),
    Lead("gate budget, nothing shown", (-0.009, 0.026, 0.061), f"+0.026 against b on examples scored for both; on the 5 examples {BOTH.replace('0.061', '+0.061')}"),
]  # fmt: skip


@pytest.mark.parametrize("lead", LEADS, ids=[f"{each.situation} {each.ends}" for each in LEADS])
def test_no_interval_stands_against_what_is_proven(database, monkeypatch, lead):
    """Of an interval that reaches beyond the claim, the end that the claim decides about is not said."""
    least, estimate, most = lead.ends
    name = {"mean proven missing": "mean missing at random"}.get(lead.situation, lead.situation)
    is_gate = name.startswith("gate")
    ends = (estimate, least, most) if is_gate else (-estimate, -most, -least)
    fields = zip(("estimates", "lower", "upper"), ends, strict=True)
    situation = next(each for each in SITUATIONS if each.name == name)._replace(**lead.changes)
    others = [None] * (len(situation.status) - 1)
    differences = {field: [number, *others] for field, number in fields} | {"against": 1, "delta": 0.05}
    # The phrase on how surely intervals hold stands with the first of them: here there is no other.
    unknown = {"lower": [None, *others], "upper": [None, *others]}
    answer = answered(database, situation, monkeypatch, differences=differences, **unknown)
    assert [said for _, said in answer_lines(answer) if said.startswith("a: ")] == [f"a: {lead.said}"]
    if not is_gate:  # trackers are told the same number, or none
        assert estimated_lead(answer) == (None if "no good estimate" in lead.said else estimate)


@pytest.mark.parametrize(
    ("name", "lower", "said"),
    [
        ("duel proven by its own duels", 0.45, "at most 0.900. Proven only: at least 0.5"),
        ("duel proven by its own duels", 0.5, "between 0.500 and 0.900"),
        ("duel proven within epsilon", 0.45, "between 0.450 and 0.900"),
        ("duel proven within epsilon", 0.35, "at most 0.900. Proven only: at least 0.4"),
        (
            "duel proven if a winner exists",
            0.45,
            "Proven only: at least 0.5, if some candidate is preferred over, or even with,",
        ),
        ("duel proven within epsilon if a winner exists", 0.35, "between 0.350 and 0.900"),
        ("duel budget, delta asked", 0.45, "between 0.450 and 0.900"),
    ],
)
def test_no_share_of_duels_stands_against_what_is_proven(database, monkeypatch, name, lower, said):
    ends = {"lower": [0.1, lower, 0.0], "upper": [0.3, 0.9, 0.2]}
    told = lines_of(database, monkeypatch, name, **ends)["wins"]
    told = told.replace(" (95% confidence for all intervals and rounds together)", "")
    assert told.startswith("0.800 of its duels with its strongest opponent, ")
    assert said in told


def test_a_lead_is_known_exactly_where_both_have_all_their_scores(database, monkeypatch):
    def played(campaign):
        both = [1] * 5 + [2] * 4  # c has been asked the first example before
        campaign.finish(campaign.plan(1, both, [*range(5), *range(1, 5)]), [1.0] * 9)

    points = {"lower": [0.2, 0.9, 0.8], "upper": [0.2, 0.9, 0.8]}
    lead = {"against": 1, "delta": 0.05, "estimates": [-0.6, None, -0.1]}
    differences = {**lead, "lower": lead["estimates"], "upper": lead["estimates"]}
    changes = {"unread": ()}
    told = lines_of(
        database, monkeypatch, "mean proven", changes, played=played, differences=differences, **points
    )
    assert told["runner-up"] == "c: b is ahead by 0.100 on the 5 examples (known exactly)"


def test_the_best_are_named_with_their_means_and_who_shares_the_last_places(database, monkeypatch):
    ends = {"lower": [0.2, 0.7, 0.0], "upper": [0.2, 0.9, 0.2]}
    situation = next(each for each in SITUATIONS if each.name == "mean, the two best")
    told = answer_lines(answered(database, situation, monkeypatch, **ends))
    assert told[:2] == [
        (
            "best",
            "b: mean 0.800 on the 5 examples, between 0.700 and 0.900 (95% confidence for "
            "all intervals and rounds together)",
        ),
        ("best", "a: mean 0.200 on the 5 examples"),
    ]
    assert "mean" not in dict(told)
    tied = lines_of(database, monkeypatch, "mean, two tied for the second place")["tied"]
    assert tied == "a, c, for the last place"
    tied = lines_of(database, monkeypatch, "mean, three tied for two places")["tied"]
    assert tied == "a, b, c, for the last 2 places"
    assert lines_of(database, monkeypatch, "mean, the two best, budget")["leading"] == "b, a"
    assert lines_of(database, monkeypatch, "mean, the two best, budget, no delta")["winner"] == "b, a"


def test_the_runner_up_of_the_best_comes_next_to_the_last_of_them(database, monkeypatch):
    differences = {
        "against": 0,
        "delta": 0.05,
        "estimates": [None, 0.6, -0.1],
        "lower": [None, 0.6, -0.2],
        "upper": [None, 0.6, 0.0],
    }
    told = lines_of(database, monkeypatch, "mean, the two best", differences=differences)
    assert told["runner-up"].startswith("c: a is ahead by 0.100 on the 5 examples, between 0.000 and 0.200")


def test_a_cheaper_candidate_is_named_with_what_it_saves(database, monkeypatch):
    def chosen(name):
        told = lines_of(database, monkeypatch, name)
        assert told["winner"] == "b"
        return told["chosen"]

    assert chosen("mean, a cheaper one chosen") == "a: costs 1 instead of 4 (b), 75% less"
    nobody = chosen("mean, nobody cheaper chosen")
    assert nobody == (
        "b: no candidate that costs less than 4 was shown to be at most 0.05 below it, which is half of epsilon"
    )
    situation = next(each for each in SITUATIONS if each.name == "mean, a cheaper one chosen")
    nearly = situation._replace(name="nearly", costs={"a": 1000000.6, "b": 1000001.0, "c": 2000000.0})
    told = dict(answer_lines(answered(database, nearly, monkeypatch)))
    assert told["chosen"] == "a: costs 1,000,000.6 instead of 1,000,001 (b), 0.00004% less"


def test_a_cheaper_candidate_that_was_chosen_won_also_where_dearer_ones_are_tied(database, monkeypatch):
    situation = next(each for each in SITUATIONS if each.name == "mean tied, a cheaper one chosen")
    answer = answered(database, situation, monkeypatch)
    told = dict(answer_lines(answer))
    assert told["tied"] == "b, c"
    assert told["chosen"] == "a: costs 1 instead of 4 (b), 75% less"
    assert answer.winners == {"a"}
    assert answer.listed == ("a",)


def test_of_a_route_only_what_was_scored_is_told(database, monkeypatch):
    situation = next(each for each in SITUATIONS if each.objective == "route" and each.ended)
    answer = answered(database, situation, monkeypatch)

    def routes(**changes):
        return dict(answer_lines(replace(answer, standing=replace(STANDING, **changes))))["routes"]

    assert routes(mean=0.8634, scored=1, late_mean=None, late_scored=0) == (
        "mean score 0.863 on the 1 prompt scored so far"
    )
    late = routes(mean=0.8634, scored=30, late_mean=0.5, late_scored=2)
    assert late == "mean score 0.863 on the 30 prompts scored so far; 0.500 on the last 2 of them"
    assert routes(late_mean=0.5, late_scored=1).endswith("; 0.500 on the last of them")


def test_who_was_dropped_over_a_few_outcomes_is_not_said_to_have_been_judged_on_none(database, monkeypatch):
    for name in ("mean all dropped", "certify all dropped", "route all dropped"):
        situation = next(each for each in SITUATIONS if each.name == name)
        answer = answered(database, situation, monkeypatch)
        few = replace(DROPPED, unscored=1)
        told = " ".join(sentence for _, sentence in answer_lines(replace(answer, dropped=(few,))))
        assert "nothing is claimed: every candidate was dropped" in told
        assert "judged" not in told


CIRCLE = ("eliminated",) * 3


@pytest.mark.parametrize(
    ("selector", "status", "changes", "is_told"),
    [
        ("llm-po", CIRCLE, {}, True),
        ("acme", CIRCLE, {}, False),  # what another one's statuses say is not known
        ("llm-po-bt", CIRCLE, {}, False),  # a model says of each what duels of others showed
        ("llm-po", ("eliminated", "eliminated", "active"), {}, False),
        ("llm-po", ("eliminated", "eliminated", "dropped"), {}, False),
        ("llm-po", CIRCLE, {"delta": None}, False),
        ("llm-po", CIRCLE, {"mixed": True}, False),
    ],
)
def test_that_every_candidate_was_shown_to_be_beaten_is_an_answer(
    database, monkeypatch, selector, status, changes, is_told
):
    """The selector would go on, as it is not known who does best; a larger budget would name nobody."""
    situation = next(each for each in SITUATIONS if each.name == "duel budget, delta asked")
    situation = situation._replace(status=status, unread=(), **changes)
    found = answered(database, situation, monkeypatch, selector={"name": selector, "params": {}})
    told = dict(answer_lines(found))
    assert (found.outcome == "none") == is_told
    assert (
        "winner" in told and told["winner"] == "none: every candidate is beaten by another one"
    ) == is_told
    if is_told:
        assert told["confidence"] == (
            "on these 5 examples no candidate is preferred over, or even with, every other (at most 5% risk of "
            "error)"
        )


def test_a_budget_that_ends_the_search_for_a_cheaper_candidate_is_named(database, monkeypatch):
    told = lines_of(database, monkeypatch, "mean, budget before one was chosen")
    assert told["chosen"] == (
        "b so far; some cheaper candidates are not tested yet: the comparison budget is spent: 40 of 40; continue "
        "with winnow resume letters --set stopping.budget=MORE"
    )


@pytest.mark.parametrize("name", ["mean, budget before one was chosen", "mean, nobody cheaper chosen"])
def test_of_the_cheapest_it_is_not_said_that_cheaper_ones_were_tested(database, monkeypatch, name):
    situation = next(each for each in SITUATIONS if each.name == name)
    cheapest = situation._replace(name="cheapest", costs={"a": 4.0, "b": 1.0, "c": 1.0})
    told = dict(answer_lines(answered(database, cheapest, monkeypatch)))
    assert told["chosen"] == "b: no other candidate costs less than 1"
    status = ("dropped", "best", "not-better")
    gone = situation._replace(name="gone", costs={"a": 0.5, "b": 1.0, "c": 1.5}, status=status)
    told = dict(answer_lines(answered(database, gone, monkeypatch)))
    assert told["chosen"] == "b: no other candidate that was not dropped costs less than 1"


def test_a_limit_that_ends_what_is_held_out_is_not_told_to_have_left_the_question_open(database, monkeypatch):
    """Selection had asked all there is, so that no larger limit would settle it."""
    situation = next(each for each in SITUATIONS if each.name == "mean exhausted with unscored cells")
    limited = situation._replace(reason="running", spent=TOKENS)
    answer = answered(database, limited, monkeypatch, reason="exhausted")
    assert (answer.outcome, answer.reason, answer.limit) == ("undecided", "budget", TOKENS)
    assert dict(answer_lines(answer))["confidence"] == UNSCORED


def test_nothing_is_said_of_costs_where_nothing_is_claimed(database, monkeypatch):
    told = lines_of(database, monkeypatch, "mean running", changes={"costs": COSTS})
    assert "chosen" not in told


def test_intervals_of_lists_that_were_added_hold_less_surely_unless_they_were_expected(database, monkeypatch):
    situation = next(each for each in SITUATIONS if each.name == "mean proven")
    answer = answered(database, situation, monkeypatch)
    added = Addition(names=("c",), rounds=4)

    def said(count, **changes):
        return dict(answer_lines(replace(answer, additions=(added,) * count, **changes)))["mean"]

    assert "95% confidence for" in said(0)
    assert f"85% confidence for all intervals and rounds together, {PLANNED}" in said(2)
    assert "95% confidence for" in said(2, expects_additions=True)
    assert "it guarantees nothing: candidates were added too often" in said(19)
    told = answer_lines(replace(answer, additions=(added,)))
    assert ("added", "c joined after 4 rounds") in told


def test_who_is_out_by_a_constraint_is_named_and_how_surely(database, monkeypatch):
    told = lines_of(database, monkeypatch, "nobody meets the constraints, proven")
    assert told["winner"] == "none: no candidate meets the constraints"
    missed = "1 of 3 candidates cannot meet the constraints, whatever their missing values are: c"
    unfit = "2 of 3 candidates are eliminated by bets that they violate a constraint, which is not certain for each one"
    assert (told["missed"], told["unfit"]) == (missed, f"{unfit}: a, b")


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        ([None, None, 1], "2 of 3 candidates, 1 of them by bets, the last of these (c) after 2 rounds and 9"),
        ([0, None, 1], "2 of 3 candidates, the last (c) after 2 rounds and 9"),
    ],
)
def test_who_is_out_as_both_means_are_known_is_counted_beside_those_that_bets_showed(
    database, monkeypatch, rounds, said
):
    bets = {"wealths": [1.0] * 3, "levels": [20.0] * 3, "out_in_round": rounds, "out_at": [6, None, 9]}
    status = {"status": ("eliminated", "best", "eliminated")}
    situation = next(each for each in SITUATIONS if each.name == "mean proven")
    answer = answered(database, situation._replace(**status), monkeypatch, bets=bets)
    assert dict(answer_lines(answer))["eliminated"] == f"{said} comparisons"
    told = dict(answer_lines(replace(answer, without_text=2)))
    assert told["eliminated"] == f"{said} comparisons, including those without an output"


def test_a_cheaper_candidate_that_was_chosen_is_not_told_to_be_out(database, monkeypatch):
    """Bets have shown that it is not the best one, and it is the answer."""
    situation = next(each for each in SITUATIONS if each.name == "mean, a cheaper one chosen")
    bets = {"wealths": [1.0] * 3, "levels": [20.0] * 3}
    bets |= {"out_in_round": [3, None, 1], "out_at": [12, None, 6]}
    told = dict(answer_lines(answered(database, situation, monkeypatch, bets=bets)))
    assert told["chosen"].startswith("a: ")
    assert told["eliminated"] == "1 of 3 candidates, the last (c) after 2 rounds and 6 comparisons"


def test_who_is_out_but_for_epsilon_is_said_to_be_active_and_settles_nothing(database, monkeypatch):
    """Out of the question, which allows for epsilon, and not shown not to be the best."""
    situation = next(each for each in SITUATIONS if each.name == "mean exhausted with unscored cells")
    situation = situation._replace(status=OPEN, epsilon=0.1)
    bets = {"wealths": [1.0] * 3, "levels": [20.0] * 3}
    bets |= {"out_in_round": [4, None, None], "out_at": [13, None, None]}
    answer = answered(database, situation, monkeypatch, bets=bets)
    told = dict(answer_lines(answer))
    assert told["eliminated"] == (
        "1 of 3 candidates, the last (a) after 5 rounds and 13 comparisons; a can still be the best, by "
        "at most 0.1, and is active in tables"
    )
    assert answer.contenders == ("b", "c")
    assert "(b lacks 1);" in told["confidence"]


@pytest.mark.parametrize(
    ("means", "said"),
    [
        ([0.62, 0.6, 0.1], "0.600 to 0.620 on"),
        ([0.02, 0.0, 0.0], "0.000 to 0.020 on"),
        ([0.62, 0.62, 0.1], "0.620, between"),
    ],
)
def test_those_that_tied_within_epsilon_are_not_given_the_mean_of_one_of_them(
    database, monkeypatch, means, said
):
    known = {"estimates": means, "lower": means, "upper": means, "best": "a"}
    told = lines_of(database, monkeypatch, "mean tied within epsilon", {"status": TIED}, **known)
    assert told["mean"].startswith(f"{said} "), told
    if means[0] == means[1]:
        assert told["tied"] == "a, b"
    else:
        assert (
            told["winner"] == f"a ({rounded(means[0])}), b ({rounded(means[1])}), within 5 points of the best"
        )
        assert "tied" not in told


def test_while_the_m_best_are_open_none_of_them_is_the_runner_up_and_a_mean_names_whose_it_is(
    database, monkeypatch
):
    """Who comes next to the first of those that lead leads as well."""
    situation = next(each for each in SITUATIONS if each.name == "mean, the two best, budget")
    differences = {"against": 1, "delta": 0.05, "estimates": [-0.1, None, -0.2]}
    differences |= {"lower": [-0.3, None, -0.4], "upper": [0.1, None, 0.0]}
    known = {"estimates": [0.7, 0.8, 0.6], "lower": [0.5] * 3, "upper": [0.9] * 3}
    answer = answered(database, situation, monkeypatch, differences=differences, **known)
    told = dict(answer_lines(answer))
    assert told["leading"] == "b, a"
    assert told["mean"].startswith("b: 0.800, between 0.500 and 0.900")
    assert "runner-up" not in told
    assert answer.runner_up is None
    assert closest_pair(answer) == ("a", "c")


def test_of_a_changed_model_nothing_is_said_to_miss_a_constraint(database, monkeypatch):
    told = lines_of(database, monkeypatch, "nobody meets the constraints, proven", changes={"mixed": True})
    assert not told.keys() & {"missed", "unfit"}


def test_under_constraints_nothing_is_said_of_a_runner_up_or_of_new_examples(database, monkeypatch):
    differences = {"against": 1, "delta": 0.05, "estimates": [0.1, None, -0.2]}
    differences |= {"lower": [0.0, None, -0.3], "upper": [0.2, None, -0.1]}
    for name, has_one in (("mean proven", True), ("mean under constraints, proven", False)):
        told = lines_of(database, monkeypatch, name, differences=differences)
        assert ("runner-up" in told) == has_one
        assert told.get("new examples", "").startswith("nothing is computed for them") != has_one


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        ("size", "its checkpoint has 2 bytes of weights"),
        ("prompt-length", "its prompts have 2 characters on average"),
        ("price", "its price is 2 (certify.costs)"),
        ("custom", "its cost is 2 (certify.costs)"),
    ],
)
def test_the_cost_of_who_is_certified_has_a_unit(database, monkeypatch, cost, said):
    situation = next(each for each in SITUATIONS if each.name == "certify certified")
    answer = answered(database, situation, monkeypatch)
    answer = replace(answer, certificate=replace(answer.certificate, cost=cost))
    assert dict(answer_lines(answer))["certified"].endswith(f"; {said}")


def met(*duels):
    """Plays duels: each pair of arms, and the outcomes for its first one."""

    def play(campaign):
        arms = [list(pair) for pair, outcomes in duels for _ in outcomes]
        outcomes = [outcome for _, each in duels for outcome in each]
        planned = campaign.plan(1, arms, [place % 5 for place in range(len(arms))])
        campaign.finish_duels(planned, [(outcome, []) for outcome in outcomes])

    return play


@pytest.mark.parametrize(
    ("name", "duels", "said"),
    [
        (
            "duel proven by its own duels",
            [((0, 1), [0.0, 0.0]), ((1, 2), [1.0, 0.5, None]), ((2, 1), [1.0])],
            "c is the strongest opponent of b, which won 0.500 of their 3 scored duels",
        ),
        ("duel proven by its own duels", [((0, 1), [0.0, 0.5, 0.0])], None),  # c never met b: nobody knows
        (
            "duel proven in the model",
            [((0, 1), [0.0])],
            "c is the strongest opponent of b, as the Bradley-Terry model estimates it",
        ),
        (
            "duel tied exactly",
            [((0, 1), [0.5]), ((1, 2), [1.0])],
            "apart from the tied candidates, c is the strongest opponent of b, which won 1.000 of their 1 scored duel",
        ),
        ("duel exhausted in a circle", [((0, 1), [0.0]), ((1, 2), [1.0])], None),
    ],
)
def test_a_duel_names_who_does_best_against_the_best(database, monkeypatch, name, duels, said):
    situation = next(each for each in SITUATIONS if each.name == name)
    estimates = {"estimates": [0.1, 0.8, 0.3]}
    model = {"name": "llm-po-bt", "params": {}} if "model" in name else None
    found = answered(database, situation, monkeypatch, selector=model, played=met(*duels), **estimates)
    assert dict(answer_lines(found)).get("runner-up") == said
