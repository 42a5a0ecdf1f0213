"""What texts of a model came to so far, whichever campaign paid for them."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from winnow.storage.models import Generation


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRate:
    """Means over the stored texts of one model."""

    texts: int
    output_tokens: float
    seconds: float
    """Of engine time; texts of one batch share its time."""


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
