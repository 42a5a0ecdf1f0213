"""What texts of a model, or of a candidate, came to so far, whichever campaign paid for them."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select, union
from sqlalchemy.orm import Session

from winnow.storage.models import Candidate, Comparison, Generation


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRate:
    """Means over the stored texts of one model."""

    texts: int
    output_tokens: float
    seconds: float
    """Of engine time; texts of one batch share its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRate:
    """Means over the texts that a candidate was scored on."""

    model: str
    input_tokens: float
    output_tokens: float
    seconds: float
    """Of engine time; texts of one batch share its time."""


def of_candidate(session: Session, campaign_id: int, name: str) -> CandidateRate | None:
    """Of one candidate of a campaign; None where it has no text."""
    own = select(Candidate.id).where(Candidate.campaign_id == campaign_id, Candidate.name == name)
    shown = union(
        select(Comparison.generation_a_id).where(Comparison.candidate_a_id.in_(own)),
        select(Comparison.generation_b_id).where(Comparison.candidate_b_id.in_(own)),
    )
    model, *means = session.execute(
        select(
            func.max(Generation.model),
            func.avg(Generation.input_tokens),
            func.avg(Generation.output_tokens),
            func.avg(Generation.seconds),
        ).where(Generation.id.in_(shown))
    ).one()
    if model is None:
        return None
    shown_tokens, made_tokens, seconds = map(float, means)
    return CandidateRate(model=model, input_tokens=shown_tokens, output_tokens=made_tokens, seconds=seconds)


def rates(session: Session, models: Sequence[str]) -> dict[str, ModelRate]:
    """By name, of those of the models that have texts."""
    rows = session.execute(
        select(
            Generation.model,
            func.count(Generation.id),
            func.sum(Generation.output_tokens),
            func.sum(Generation.seconds),
        )
        .where(Generation.model.in_(models))
        .group_by(Generation.model)
    )
    return {
        model: ModelRate(texts=texts, output_tokens=int(tokens) / texts, seconds=float(seconds) / texts)
        for model, texts, tokens, seconds in rows
    }
