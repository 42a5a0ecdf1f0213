"""What texts of a model, or of a candidate, came to so far, whichever campaign paid for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from winnow.storage.models import Candidate, CandidateStats, Generation
from winnow.storage.records.candidates.stats import PRODUCTS

SUMS = ("input_tokens", "output_tokens", "seconds")


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
    """Sums over the texts of one candidate that its campaign compared, each as often as it was compared."""

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
    """By candidate, of those that have texts; a text counts as often as it was compared.

    Args:
        session: Of the database.
        campaign_id: Whose.
        names: Of the candidates that are asked for; all where it is None.
    """
    rows = session.execute(
        select(
            Candidate.name,
            Candidate.model,
            func.sum(CandidateStats.texts),
            *(func.sum(getattr(CandidateStats, name)) for name in (*SUMS, *PRODUCTS)),
        )
        .join(CandidateStats, CandidateStats.candidate_id == Candidate.id)
        .where(Candidate.campaign_id == campaign_id, Candidate.name.in_(names or ()) | (names is None))
        .group_by(Candidate.id)
        .having(func.sum(CandidateStats.texts) > 0)
    )
    return {
        name: CandidateTexts(
            model=model.get("name", ""),
            texts=int(texts),
            sums=tuple(map(float, sums[: len(SUMS)])),  # type: ignore[arg-type] # three of them
            squares=tuple(map(float, sums[len(SUMS) :])),  # type: ignore[arg-type] # six of them
        )
        for name, model, texts, *sums in rows
    }
