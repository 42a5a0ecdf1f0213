"""What texts of a model, or of a candidate, came to so far, whichever campaign paid for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from sqlalchemy import CompoundSelect, Float, cast, func, select, union
from sqlalchemy.orm import Session

from winnow.storage.models import Candidate, Comparison, Generation, Output


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateTexts:
    """Sums over the texts of one candidate that its campaign compared."""

    model: str
    texts: int
    sums: tuple[float, float, float]
    """Of input tokens, output tokens and seconds."""
    squares: tuple[float, float, float, float, float, float]
    """Sums of products of two of these: of each with itself, then 1st and 2nd, 1st and 3rd, 2nd and 3rd."""

    def mean(self, *weights: float) -> float:
        """The mean of a weighted sum of input tokens, output tokens and seconds; weights left out are 0."""
        return sum(weight * total for weight, total in zip(weights, self.sums, strict=False)) / self.texts

    def deviation(self, *weights: float) -> float:
        """The standard deviation of the same among these texts."""
        a, b, c = (*weights, 0.0, 0.0, 0.0)[:3]
        products = (a * a, b * b, c * c, 2 * a * b, 2 * a * c, 2 * b * c)
        square = sum(weight * total for weight, total in zip(products, self.squares, strict=True))
        return sqrt(max(0.0, square / self.texts - self.mean(*weights) ** 2))


def texts_by_candidate(
    session: Session, campaign_id: int, names: Sequence[str] | None = None
) -> dict[str, CandidateTexts]:
    """By candidate, of those that have texts; a text that candidates share counts for each.

    Args:
        session: Of the database.
        campaign_id: Whose.
        names: Of the candidates that are asked for; all where it is None.
    """
    own = select(Candidate.id).where(Candidate.campaign_id == campaign_id)
    if names is not None:
        own = own.where(Candidate.name.in_(names))
    first, second = Comparison.candidate_a_id, Comparison.candidate_b_id
    shown: CompoundSelect[tuple[int, int]] = union(
        select(first.label("candidate_id"), Comparison.generation_a_id.label("generation_id")).where(
            first.in_(own)
        ),
        select(second, Comparison.generation_b_id).where(second.in_(own)),
        select(first, Output.generation_id)
        .join(Comparison, Comparison.id == Output.comparison_id)
        .where(first.in_(own)),
    )
    pairs = shown.subquery()
    parts = (
        cast(Generation.input_tokens, Float),
        cast(Generation.output_tokens, Float),
        Generation.seconds,
    )
    summed = (*parts, *(parts[i] * parts[j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))))
    rows = session.execute(
        select(
            Candidate.name,
            func.max(Generation.model),
            func.count(),
            *(func.sum(each) for each in summed),
        )
        .select_from(pairs)
        .join(Candidate, Candidate.id == pairs.c.candidate_id)
        .join(Generation, Generation.id == pairs.c.generation_id)
        .group_by(Candidate.id, Candidate.name)
    )
    return {
        name: CandidateTexts(
            model=model,
            texts=texts,
            sums=(float(sums[0]), float(sums[1]), float(sums[2])),
            squares=tuple(map(float, sums[3:])),  # type: ignore[arg-type] # six of them
        )
        for name, model, texts, *sums in rows
    }
