"""Results of a route campaign, derived only from its stored rows."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from winnow.algorithms.claims import Claim
from winnow.algorithms.route.advantage import Advantage, AdvantageRecord
from winnow.algorithms.route.config import DEFAULT_DELTA
from winnow.storage.json_types import Row
from winnow.storage.queries import campaign_views
from winnow.storage.queries.objective import route as route_views
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import rounds as round_records
from winnow.storage.records import stream_batches
from winnow.storage.records.record_types import DecisionRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.objectives.route.selector import in_unit_scores

LATE = 0.25
"""Share of the last rounds, whose results are shown separately.
Before these rounds, the policy has learned most of what it learns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Results of a route campaign so far."""

    mean: float | None
    """Mean of all scores so far; None before the first score."""
    scored: int
    late_mean: float | None
    """Mean score in the last rounds; None without scores in them."""
    late_scored: int
    single_scored: int
    """Number of scores of the candidate with the highest mean of its own scores."""
    prompts: int
    """Number of prompts to answer, including those that arrived."""
    unanswered: int
    """Number of prompts that arrived and have no answer."""
    unfinished: bool
    """Whether a planned round is unfinished."""
    advantage: Advantage | None
    """Advantage of routing over the best single candidate, as a difference between scores in [0, 1]. None if
    no share of the prompts was explored, or before any finished round.
    """
    single: str | None
    """The estimated best single candidate for these prompts; None without an `advantage`. Its own mean need
    not be the highest, because means are on different prompts. The interval of `advantage` is against the
    truly best candidate, and need not hold against this one.
    """
    has_late: bool = False
    """Whether candidates joined after prompts had been answered."""
    uncompared: tuple[str, ...] = ()
    """Candidates that joined, can be chosen, and are not yet compared with routing on any prompt."""


def standing_of(look: Look) -> Standing:
    """The current results of a route campaign."""
    best = None if look.decision is None else look.decision.best
    n_rounds = round_records.next_round_number(look.session, look.record.id)
    advantage, uncompared = advantage_of(look)
    names = campaign_records.candidate_names(look.session, look.record.id)
    overall = route_views.answered(look.session, look.record.id)
    late = route_views.answered(look.session, look.record.id, from_round=int(n_rounds * (1.0 - LATE)))
    scored = {
        row["candidate"]: row["scored"] for row in campaign_views.leaderboard(look.session, look.record.id)
    }
    return Standing(
        mean=overall.mean,
        scored=overall.count,
        late_mean=late.mean,
        late_scored=late.count,
        single_scored=scored.get(best, 0),
        prompts=stream_batches.count_examples(look.session, look.record.id),
        unanswered=len(stream_batches.unanswered(look.session, look.record.id)),
        unfinished=round_records.unfinished_round(look.session, look.record.id) is not None,
        advantage=advantage,
        single=None if advantage is None else names[advantage.single],
        has_late=any(campaign_records.first_rounds(look.session, look.record.id)),
        uncompared=tuple(names[arm] for arm in uncompared),
    )


def advantage_of(look: Look) -> tuple[Advantage | None, list[int]]:
    """The advantage that a campaign's selector would report, and arms not compared.

    It is computed only from stored rounds, without prompts' vectors or the selector's state, so it can be
    shown at any time.
    """
    explore = look.record.spec["selector"]["params"].get("explore", 0.0)
    if not explore:
        return None, []
    joined = campaign_records.first_rounds(look.session, look.record.id)
    delta = look.record.spec["stopping"]["delta"]
    record = AdvantageRecord(
        joined.count(0),
        explore=explore,
        delta=DEFAULT_DELTA if delta is None else delta,
        max_unscored=look.record.spec["fail_on_error"],
    )
    n_arms = joined.count(0)
    for told in round_records.told_rounds(look.session, look.record.id):
        while n_arms < sum(first <= told.number for first in joined):
            record.add_arm()
            n_arms += 1
        if told.propensities is not None:
            scores = 2.0 * np.array(told.outcomes, dtype=np.float64) - 1.0  # None becomes NaN
            record.tell(np.array(told.arms), scores, np.array(told.propensities))
    found = record.advantage()
    new = [*np.flatnonzero(record.uncompared).tolist(), *range(n_arms, len(joined))]
    return (None, []) if found is None else (in_unit_scores(found), new)


def picks(look: Look) -> list[Row]:
    """Number of prompts routed to each candidate, over time and by type.

    See `route_views.picks`.
    """
    return route_views.picks(look.session, look.record.id, look.record.spec["prompt_type"])


def shares(look: Look) -> list[Row]:
    """One row per candidate for a terminal: its share of each type's prompts lately.

    Only the last rounds count; see `LATE`.
    """
    rows = picks(look)
    late = [row for row in rows if row["until"] > (1.0 - LATE) * max(row["until"] for row in rows)]
    untyped = "all prompts" if look.record.spec["prompt_type"] is None else "no type"
    totals: dict[str, int] = {}
    counts: dict[tuple[str, str], int] = {}
    for row in late:
        kind = row["prompt_type"] or untyped
        totals[kind] = totals.get(kind, 0) + row["picks"]
        counts[row["candidate"], kind] = counts.get((row["candidate"], kind), 0) + row["picks"]
    return [
        {"candidate": name, **{kind: counts.get((name, kind), 0) / totals[kind] for kind in sorted(totals)}}
        for name in campaign_records.candidate_names(look.session, look.record.id)
        if any(row["candidate"] == name for row in late)
    ]


def outcome_of(decision: DecisionRecord, reason: str, claim: Claim) -> Literal["policy"]:
    """The outcome of an ended route campaign: always "policy"."""
    return "policy"
