"""Counts and outputs of single candidates, for warnings about them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from winnow.storage.engine.raw_sql import PARAMETERS_AT_ONCE, in_portions
from winnow.storage.json_types import JsonObject
from winnow.storage.models import Candidate, CandidateStats, Comparison, Example, Generation, Output, Round
from winnow.storage.queries.unscored import HIGHEST

LONGEST_LOOKED_AT = 20_000
"""Number of characters of an output that are inspected."""

DUELS_LOOKED_AT = 2_000
"""Number of a campaign's newest duels that are searched for a candidate.
No index has the second sides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateCounts:
    """Counts over one candidate's comparisons, read from `CandidateStats`."""

    id: int
    position: int
    name: str
    scored: int
    unscored: int
    highest: float | None
    """Highest outcome; None without outcomes."""
    texts: int
    truncated: int
    refused: int
    """Number of comparisons without an outcome because a server refused the request."""
    refusal: str | None
    """A server's message for one of the refused outputs."""

    @property
    def has_no_point(self) -> bool:
        """Whether all scores of the candidate are 0, or it has comparisons but no score."""
        return self.highest == 0.0 if self.scored else self.unscored > 0


def counts_by_candidate(session: Session, campaign_id: int, *, most: int) -> list[CandidateCounts]:
    """Counts of at most `most` compared candidates.

    Those without a score above 0 come first.
    """
    is_scored, is_refused = CandidateStats.reason == "", CandidateStats.reason == "refused"
    highest = func.max(HIGHEST)

    def total(column: InstrumentedAttribute[int]) -> ColumnElement[int]:
        return func.coalesce(func.sum(column), 0)

    rows = session.execute(
        select(
            Candidate.id,
            Candidate.position,
            Candidate.name,
            func.coalesce(func.sum(CandidateStats.comparisons).filter(is_scored), 0).label("scored"),
            func.coalesce(func.sum(CandidateStats.comparisons).filter(~is_scored), 0).label("unscored"),
            highest.label("highest"),
            total(CandidateStats.texts).label("texts"),
            total(CandidateStats.truncated).label("truncated"),
            func.coalesce(func.sum(CandidateStats.comparisons).filter(is_refused), 0).label("refused"),
            func.min(CandidateStats.detail).filter(is_refused).label("refusal"),
        )
        .join(CandidateStats, CandidateStats.candidate_id == Candidate.id)
        .where(Candidate.campaign_id == campaign_id)
        .group_by(Candidate.id, Candidate.position, Candidate.name)
        .order_by(func.coalesce(highest, 0.0) > 0.0, Candidate.position)
        .limit(most)
    ).mappings()
    sums = ("scored", "unscored", "texts", "truncated", "refused")  # PostgreSQL returns decimals
    found = (CandidateCounts(**{**row, **{name: int(row[name]) for name in sums}}) for row in rows)
    return sorted(found, key=attrgetter("position"))


def settings_of(session: Session, ids: Sequence[int]) -> dict[int, tuple[JsonObject, JsonObject]]:
    """Model and sampling settings of candidates, by id."""
    query = select(Candidate.id, Candidate.model, Candidate.sampling)
    return {
        id_: (model, sampling)
        for some in in_portions(ids, PARAMETERS_AT_ONCE)
        for id_, model, sampling in session.execute(query.where(Candidate.id.in_(some)))
    }


def targets_of(session: Session, dataset_id: int, *, most: int) -> Iterator[list[str]]:
    """Yield the targets of the first `most` examples of a dataset."""
    query = select(Example.targets).where(Example.dataset_id == dataset_id)
    for targets in session.scalars(query.order_by(Example.position).limit(most)):
        yield [str(each) for each in targets or ()]


def ids_without_point(session: Session, campaign_id: int, *, fewest: int) -> set[int]:
    """Ids of the candidates with at least `fewest` comparisons and no score above 0."""
    query = (
        select(Candidate.id)
        .join(CandidateStats, CandidateStats.candidate_id == Candidate.id)
        .where(Candidate.campaign_id == campaign_id)
        .group_by(Candidate.id)
        .having(
            func.coalesce(func.max(HIGHEST), 0.0) == 0.0,
            func.sum(CandidateStats.comparisons) >= fewest,
        )
    )
    return set(session.scalars(query))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedOutput:
    """An output of a candidate with its judgment."""

    example: str
    """Key of the example."""
    example_number: int
    """Position of the example in the dataset, from 0."""
    targets: Sequence[str]
    text: str
    """First `LONGEST_LOOKED_AT` characters of the output."""
    reasoning: str | None
    finish_reason: str
    output_tokens: int
    no_answer: bool
    answer: str | None
    """Answer that the judge extracted from the output."""
    reason: str | None
    """Reason why the comparison has no outcome; None if it has one."""


def some_outputs(
    session: Session, candidate_id: int, *, most: int, duels_of: int | None, several: bool
) -> list[JudgedOutput]:
    """Some outputs of a candidate: the first by example.

    For duels, they are from the newest of its campaign.

    Args:
        session: Reads the results.
        candidate_id: The candidate.
        most: Maximum number of outputs.
        duels_of: The campaign if its comparisons are duels; otherwise None.
        several: Whether comparisons have several outputs.
    """
    sides: list[tuple[InstrumentedAttribute[Any], InstrumentedAttribute[int | None]]] = [
        (Comparison.candidate_a_id, Comparison.generation_a_id)
    ]
    if duels_of is not None:
        sides.append((Comparison.candidate_b_id, Comparison.generation_b_id))
    judged = Output if several else Comparison
    found: list[tuple[Any, ...]] = []
    for candidate, generation in sides:
        query = (
            select(
                Example.key,
                Example.position,
                Example.targets,
                func.substr(Generation.text, 1, LONGEST_LOOKED_AT),
                func.substr(Generation.reasoning, 1, LONGEST_LOOKED_AT),
                Generation.finish_reason,
                Generation.output_tokens,
                judged.no_answer,
                judged.answer,
                Comparison.reason,
            )
            .select_from(Comparison)
            .join(Example, Example.id == Comparison.example_id)
        )
        if several:
            query = query.join(Output, Output.comparison_id == Comparison.id)
            query = query.join(Generation, Generation.id == Output.generation_id)
        else:
            query = query.join(Generation, Generation.id == generation)
        query = query.where(candidate == candidate_id)
        if duels_of is None:
            query = query.where(Comparison.candidate_b_id.is_(None))  # matches the index of scores
        else:
            newest = (
                select(Comparison.id)
                .join(Round, Round.id == Comparison.round_id)
                .where(Round.campaign_id == duels_of)
                .order_by(Round.number.desc(), Comparison.position.desc())
                .limit(DUELS_LOOKED_AT)
            )
            query = query.where(Comparison.id.in_(newest.subquery().select()))
        found += session.execute(query.order_by(Comparison.example_id).limit(most)).tuples()
    return [
        JudgedOutput(
            example=key,
            example_number=number,
            targets=[str(each) for each in targets or ()],
            text=text,
            reasoning=reasoning,
            finish_reason=ended,
            output_tokens=tokens,
            no_answer=no_answer,
            answer=answer,
            reason=reason,
        )
        for key, number, targets, text, reasoning, ended, tokens, no_answer, answer, reason in found[:most]
    ]
