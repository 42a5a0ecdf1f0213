"""Views of a routed campaign: candidates chosen for its prompts.

Rows are as in `campaign_views`.
"""

from collections import defaultdict
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Integer, String, cast, func, literal, select
from sqlalchemy.orm import Session

from winnow.storage.columns import ByCodePoints
from winnow.storage.json_types import Row
from winnow.storage.models import Candidate, Comparison, Example, Round

WINDOWS = 10
"""Number of windows into which the rounds so far are divided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Number of scored prompts, and their mean score.

    The mean is None without scored prompts.
    """

    count: int
    mean: float | None


def picks(session: Session, campaign_id: int, prompt_type: str | None) -> list[Row]:
    """Picks of candidates over time.

    One row per window of rounds, prompt type and candidate. `until` is the number of prompts answered by the
    end of the window. `share` is the candidate's share of the prompts of that type in the window, and `mean`
    its mean score on them.
    """
    n_rounds = session.scalars(
        select(func.coalesce(func.max(Round.number) + 1, 0))
        .join(Comparison, Comparison.round_id == Round.id)
        .where(Round.campaign_id == campaign_id)
    ).one()
    if not n_rounds:
        return []
    # Python's // agrees with integer division in every database here.
    width = -(-n_rounds // WINDOWS)
    window = cast(Round.number - Round.number % width, Integer).label("window")
    kind = literal(None, String) if prompt_type is None else _field(prompt_type)
    found = session.execute(
        select(
            window,
            kind.label("prompt_type"),
            Candidate.name,
            func.count(Comparison.id),
            func.avg(Comparison.outcome),
        )
        .join(Round, Round.id == Comparison.round_id)
        .join(Candidate, Candidate.id == Comparison.candidate_a_id)
        .join(Example, Example.id == Comparison.example_id)
        .where(Round.campaign_id == campaign_id)
        .group_by(window, "prompt_type", Candidate.id, Candidate.name)
        .order_by(window, ByCodePoints(kind).nulls_last(), Candidate.position)
    ).all()
    totals: dict[tuple[int, str | None], int] = defaultdict(int)
    by_window: dict[int, int] = defaultdict(int)
    for start, of_type, _, count, _ in found:
        totals[start, of_type] += count
        by_window[start] += count
    until, answered = {}, 0
    for start in sorted(by_window):
        answered += by_window[start]
        until[start] = answered
    return [
        {
            "until": until[start],
            "prompt_type": of_type,
            "candidate": name,
            "picks": count,
            "share": count / totals[start, of_type],
            "mean": mean,
        }
        for start, of_type, name, count, mean in found
    ]


def _field(name: str) -> ColumnElement[str]:
    """A field of the examples.

    If the name has a dot and is not a column, a part of an object.
    """
    whole = Example.fields[name].as_string()
    return func.coalesce(whole, Example.fields[tuple(name.split("."))].as_string()) if "." in name else whole


def answered(session: Session, campaign_id: int, *, from_round: int = 0) -> Answered:
    """Number of prompts scored since a round, with their mean score."""
    count, mean = session.execute(
        select(func.count(Comparison.outcome), func.avg(Comparison.outcome))
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id, Round.number >= from_round)
    ).one()
    return Answered(count=count, mean=mean)
