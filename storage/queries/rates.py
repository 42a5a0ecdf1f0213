"""What texts of a model, or of a candidate, came to so far, whichever campaign paid for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from sqlalchemy import CompoundSelect, func, select, text, union
from sqlalchemy.orm import Session

from winnow.storage.models import Candidate, Comparison, Generation, Output


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
    shown: CompoundSelect[tuple[int | None]] = union(
        select(Comparison.generation_a_id).where(Comparison.candidate_a_id.in_(own)),
        select(Comparison.generation_b_id).where(Comparison.candidate_b_id.in_(own)),
        select(Output.generation_id).join(Comparison).where(Comparison.candidate_a_id.in_(own)),
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


def texts_by_candidate(session: Session, campaign_id: int) -> dict[str, CandidateTexts]:
    """By candidate, of those that have texts; a text that candidates share counts for each."""
    rows = session.execute(_TEXTS, {"campaign": campaign_id})
    return {
        name: CandidateTexts(
            model=model,
            texts=texts,
            sums=(float(sums[0]), float(sums[1]), float(sums[2])),
            squares=tuple(map(float, sums[3:])),  # type: ignore[arg-type] # six of them
        )
        for name, model, texts, *sums in rows
    }


_TEXTS = text("""
    SELECT k.name, max(g.model), count(*), sum(g.i), sum(g.o), sum(g.s),
        sum(g.i * g.i), sum(g.o * g.o), sum(g.s * g.s), sum(g.i * g.o), sum(g.i * g.s), sum(g.o * g.s)
    FROM (
        SELECT x.candidate_a_id AS candidate_id, x.generation_a_id AS generation_id
        FROM comparisons x JOIN rounds r ON r.id = x.round_id WHERE r.campaign_id = :campaign
        UNION
        SELECT x.candidate_b_id, x.generation_b_id
        FROM comparisons x JOIN rounds r ON r.id = x.round_id WHERE r.campaign_id = :campaign
        UNION
        SELECT x.candidate_a_id, o.generation_id
        FROM outputs o JOIN comparisons x ON x.id = o.comparison_id JOIN rounds r ON r.id = x.round_id
        WHERE r.campaign_id = :campaign
    ) u
    JOIN candidates k ON k.id = u.candidate_id
    JOIN (
        SELECT id, model, CAST(input_tokens AS FLOAT) AS i, CAST(output_tokens AS FLOAT) AS o, seconds AS s
        FROM generations
    ) g ON g.id = u.generation_id
    GROUP BY k.id, k.name
""")
