"""Comparisons joined with the rows of their two sides.

A score has only the first side.
"""

from typing import Any

from sqlalchemy import ColumnElement, Select, Text, case, cast, exists, func, or_
from sqlalchemy.orm import QueryableAttribute, aliased

from winnow.storage.models import Candidate, Comparison, Example, Generation, Prompt, Round

A, B = aliased(Candidate), aliased(Candidate)
TEXT_A, TEXT_B = aliased(Generation), aliased(Generation)
PROMPT_A, PROMPT_B = aliased(Prompt), aliased(Prompt)

PLACE = (
    Round.number.label("round"),
    Comparison.position,
    A.name.label("candidate"),
    B.name.label("candidate_b"),
)
"""Place of a comparison, and names of its candidates."""

EXAMPLE = (Example.key.label("example"), Example.position.label("example_number"))
"""Key of the example, and its position in the dataset."""

_IMAGES = func.coalesce("\n" + Example.fields["image_details"].as_string(), "")
INPUT = func.coalesce(Example.fields["input"].as_string() + _IMAGES, cast(Example.fields, Text))
"""Input of an example, then the details of its images as JSON.
All its fields if it has no field `input`."""

_N_TARGETS = func.json_array_length(Example.targets)

EXAMPLE_TEXTS = (
    INPUT.label("input"),
    case(
        (_N_TARGETS == 1, Example.targets[0].as_string()), (_N_TARGETS > 1, cast(Example.targets, Text))
    ).label("target"),
)
"""Columns with the input and the target; several targets are one JSON list."""


def joined(rows: Select[Any]) -> Select[Any]:
    """Join the round, candidates, example, outputs and prompts of each comparison."""
    return (
        rows.select_from(Comparison)
        .join(Round, Round.id == Comparison.round_id)
        .join(A, A.id == Comparison.candidate_a_id)
        .outerjoin(B, B.id == Comparison.candidate_b_id)
        .join(Example, Example.id == Comparison.example_id)
        .outerjoin(TEXT_A, TEXT_A.id == Comparison.generation_a_id)
        .outerjoin(TEXT_B, TEXT_B.id == Comparison.generation_b_id)
        .outerjoin(PROMPT_A, PROMPT_A.id == TEXT_A.prompt_id)
        .outerjoin(PROMPT_B, PROMPT_B.id == TEXT_B.prompt_id)
    )


def is_last() -> ColumnElement[bool]:
    """Whether a score is the last comparison of its pair: one without an outcome can have a later one."""
    later = aliased(Comparison)
    was_asked_again = exists().where(
        later.candidate_a_id == Comparison.candidate_a_id,
        later.example_id == Comparison.example_id,
        later.candidate_b_id.is_(None),
        later.id > Comparison.id,
    )
    return or_(Comparison.outcome.is_not(None), Comparison.candidate_b_id.is_not(None), ~was_asked_again)


def side(verdict: ColumnElement[float | None] | QueryableAttribute[float | None]) -> ColumnElement[int]:
    """Side that a verdict prefers: 1 above 1/2, -1 below 1/2, otherwise 0."""
    return case((verdict > 0.5, 1), (verdict < 0.5, -1), else_=0)
