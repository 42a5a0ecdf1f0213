"""Scores of candidates example by example.

A page of examples, filtered by the candidates' scores. Both queries read only the comparisons of the given
candidates. Callers limit the time by `statements.give_up_after`, because a user waits for the answers.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from sqlalchemy import ColumnElement, ScalarSelect, Text, and_, cast, func, or_, select
from sqlalchemy.orm import Session, aliased

from winnow.storage.columns import holds
from winnow.storage.json_types import JsonView
from winnow.storage.models import Candidate, Comparison, Example, Round
from winnow.storage.queries.comparison_joins import is_last
from winnow.storage.text import storable

Pattern = Literal["all", "disagreements", "all wrong", "all right", "unscored"]
"""Which examples to select:

* disagreements: the lowest and the highest score of the candidates differ.
* all wrong: every candidate with a score has one below 1/2.
* all right: every candidate with a score has one of at least 1/2.
* unscored: a candidate was compared on the example and has no score.
"""


READ_AT_ONCE = 500
"""Number of examples read together."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A candidate's comparison on an example."""

    comparison_id: int
    outcome: float | None
    reason: str | None
    """Reason for a missing outcome."""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """An example with a cell for each candidate that was compared on it."""

    example_id: int
    example: str
    """Key of the example."""
    example_number: int
    """Position of the example in the dataset, from 0."""
    targets: Sequence[str]
    cells: Mapping[str, Cell]
    """Cells by candidate name."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two candidates, compared on the examples on which both have a score."""

    both: int
    """Number of examples on which both candidates have a score."""
    first_higher: int
    second_higher: int
    mean_difference: float | None
    """Mean of the first score minus the second; None without examples."""


def matrix_rows(
    session: Session,
    campaign_id: int,
    candidates: Sequence[str],
    *,
    pattern: Pattern = "all",
    words: str = "",
    reason: str | None = None,
    fits: Callable[[str, JsonView], bool] | None = None,
    begin: int = 0,
    most: int,
) -> list[MatrixRow]:
    """Examples on which a candidate was compared, in dataset order.

    At least one of the given candidates was compared on each.

    Args:
        session: Reads the results.
        campaign_id: A campaign of scores; duels have no scores.
        candidates: Names; only the scores of these candidates are considered.
        pattern: Pattern of the candidates' scores.
        words: Words in the key or the fields of the example; A to Z match in either case.
        reason: Reason for a missing score of one of the candidates; None for no condition.
        fits: A further condition on the key and the fields of the example.
        begin: Smallest example id.
        most: Maximum number of rows.
    """
    scored = func.count(Comparison.outcome)
    lowest, highest = func.min(Comparison.outcome), func.max(Comparison.outcome)
    likes: dict[Pattern, ColumnElement[bool]] = {
        "disagreements": lowest < highest,
        "all wrong": and_(scored > 0, highest < 0.5),
        "all right": and_(scored > 0, lowest >= 0.5),
        "unscored": func.count() > scored,
    }
    examples = (
        select(Example.id, Example.key, Example.position, Example.targets, Example.fields)
        .join(Comparison, Comparison.example_id == Example.id)
        .where(*_of(campaign_id, candidates), Example.id >= begin)
        .group_by(Example.id)
        .order_by(Example.id)
    )
    if pattern in likes:
        examples = examples.having(likes[pattern])
    if reason is not None:
        examples = examples.having(func.count().filter(Comparison.reason == reason) > 0)
    if words:
        # Fields are stored as ASCII JSON, which escapes é, quotes and line ends.
        texts = ((Example.key, storable(words)), (cast(Example.fields, Text), json.dumps(words)[1:-1]))
        examples = examples.where(or_(*(holds(session, text, each) for text, each in texts)))
    if fits is None:
        examples = examples.limit(most)
    with session.execute(examples.execution_options(yield_per=READ_AT_ONCE)) as rows:
        like_this = (row[:-1] for row in rows if fits is None or fits(row.key, row.fields))
        found = list(islice(like_this, most))
    cells = _cells(session, campaign_id, candidates, [id_ for id_, *_ in found])
    return [MatrixRow(id_, key, number, targets, cells.get(id_, {})) for id_, key, number, targets in found]


def example_id(session: Session, campaign_id: int, key: str) -> int | None:
    """Id of the example with this key if the campaign has a comparison on it.

    Otherwise None.
    """
    return session.scalar(
        select(Example.id)
        .join(Comparison, Comparison.example_id == Example.id)
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id, Example.key == key)
        .limit(1)
    )


def pair(session: Session, campaign_id: int, first: str, second: str) -> Pair:
    """Numbers and mean of two candidates' score differences.

    They cover the examples on which both have a score.
    """
    a, b = aliased(Comparison), aliased(Comparison)
    difference = a.outcome - b.outcome
    counts = (
        select(
            func.count(),
            func.count().filter(difference > 0),
            func.count().filter(difference < 0),
            func.avg(difference),
        )
        .select_from(a)
        .join(b, b.example_id == a.example_id)
        .where(
            a.candidate_a_id == _id_of(campaign_id, first),
            b.candidate_a_id == _id_of(campaign_id, second),
            a.candidate_b_id.is_(None),
            b.candidate_b_id.is_(None),
            difference.is_not(None),
        )
    )
    both, higher, lower, mean = session.execute(counts).one()
    return Pair(both, higher, lower, None if mean is None else float(mean))


def _id_of(campaign_id: int, name: str) -> ScalarSelect[int]:
    return (
        select(Candidate.id)
        .where(Candidate.campaign_id == campaign_id, Candidate.name == name)
        .scalar_subquery()
    )


def _of(campaign_id: int, candidates: Sequence[str]) -> Iterable[ColumnElement[bool]]:
    """Conditions that a comparison scores one of these candidates."""
    ids = select(Candidate.id).where(Candidate.campaign_id == campaign_id, Candidate.name.in_(candidates))
    return Comparison.candidate_a_id.in_(ids), Comparison.candidate_b_id.is_(None), is_last()


def _cells(
    session: Session, campaign_id: int, candidates: Sequence[str], examples: Sequence[int]
) -> dict[int, dict[str, Cell]]:
    rows = session.execute(
        select(Comparison.example_id, Candidate.name, Comparison.id, Comparison.outcome, Comparison.reason)
        .join(Candidate, Candidate.id == Comparison.candidate_a_id)
        .where(*_of(campaign_id, candidates), Comparison.example_id.in_(examples))
    )
    found: dict[int, dict[str, Cell]] = {}
    for example, name, comparison_id, outcome, reason in rows:
        found.setdefault(example, {})[name] = Cell(comparison_id, outcome, reason)
    return found
