"""The spending of campaigns, round by round, what others spared them, and the texts of each model so far.

Rows as in `storage.queries.campaign_views`. A model's texts count whichever campaign paid for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from sqlalchemy import and_, case, func, select
from sqlalchemy.orm import Session

from winnow.storage.columns import ByCodePoints
from winnow.storage.engine.database import once_a_look
from winnow.storage.json_types import Row
from winnow.storage.models import (
    Campaign,
    CampaignStats,
    Candidate,
    CandidateStats,
    CostStats,
    Decision,
    Generation,
    ReuseStats,
    Round,
)
from winnow.storage.records.candidates.stats import PRODUCTS
from winnow.storage.records.loads import loads_by_model
from winnow.storage.records.rounds import is_untold, last_told

ROUNDED = 1e-12
"""The share of a mean of squares that a sum of floating-point numbers may be off by."""

NO_TEXTS = {
    "generations": 0,
    "input_tokens": 0,
    "output_tokens": 0,
    "seconds": 0.0,
    "cached_tokens": 0,
    "cacheable_tokens": 0,
}
NO_LOADS = {"loads": 0, "load_seconds": 0.0}
NO_HITS = {"cached_tokens": None, "cache_hit_rate": None}


@once_a_look
def costs(session: Session, campaign_id: int) -> list[Row]:
    """Texts that were made for this campaign, their tokens and the engines' seconds: candidates in order.

    A text that an earlier campaign had made cost nothing and is not counted; one that several candidates
    share is counted for the first of them in the round that paid for it, and the loads of a model stand in
    its first row. `cached_tokens` are those of the input that engines had in their prefix caches, and
    `cache_hit_rate` is their share of the input of the texts of which engines tell that; both are None where
    they tell it of none. Rows without a candidate come last, one per model: replies of judges, answers of the
    autoevaluator and to unlabelled examples, texts that are no answer, and those of rounds not yet finished.
    All rows add up to the totals of the campaign.
    """
    counted = session.execute(
        select(
            Candidate.name.label("candidate"),
            CostStats.model,
            *(func.sum(getattr(CostStats, name)).label(name) for name in NO_TEXTS),
        )
        .outerjoin(
            Candidate,
            (Candidate.campaign_id == CostStats.campaign_id)
            & (Candidate.name == CostStats.name)
            & (CostStats.role == "candidate"),
        )
        .where(CostStats.campaign_id == campaign_id)
        .group_by(Candidate.id, CostStats.model)
        .order_by(Candidate.position.is_(None), Candidate.position, ByCodePoints(CostStats.model))
    )
    rows = [_whole(dict(row)) for row in counted.mappings()]
    owned = [row for row in rows if row["candidate"] is not None]
    nobodys = {row["model"]: row for row in rows if row["candidate"] is None}
    for row in _unfinished(session, campaign_id):
        before = nobodys.get(row["model"], NO_TEXTS)
        nobodys[row["model"]] = row | {name: before[name] + row[name] for name in NO_TEXTS}
    rows = [*owned, *(nobodys[model] for model in sorted(nobodys))]
    return [_with_hit_rate(row) for row in _with_loads(rows, loads_by_model(session, campaign_id))]


def _unfinished(session: Session, campaign_id: int) -> list[Row]:
    """The texts that rounds not yet told paid for, by model."""
    rounds = select(Round.id).where(is_untold(campaign_id))
    found = session.execute(
        select(
            Generation.model,
            func.count(Generation.id).label("generations"),
            func.sum(Generation.input_tokens).label("input_tokens"),
            func.sum(Generation.output_tokens).label("output_tokens"),
            func.sum(Generation.seconds).label("seconds"),
            func.coalesce(func.sum(Generation.cached_tokens), 0).label("cached_tokens"),
            func.coalesce(
                func.sum(case((Generation.cached_tokens.is_not(None), Generation.input_tokens))), 0
            ).label("cacheable_tokens"),
        )
        .where(Generation.round_id.in_(rounds))
        .group_by(Generation.model)
    )
    return [_whole({"candidate": None, **row}) for row in found.mappings()]


def _whole(row: Row) -> Row:
    """The row, with whole numbers where PostgreSQL's sums are of type Decimal."""
    return row | {name: int(row[name]) for name in NO_TEXTS if name != "seconds"}


def _with_loads(rows: list[Row], loads: dict[str, Row]) -> list[Row]:
    """The rows with the loads of each model in its first one, and a row for each model that has none."""
    asked = {row["model"] for row in rows}
    idle = [{"candidate": None, "model": model, **NO_TEXTS} for model in loads if model not in asked]
    left = dict(loads)
    return [{**row, **left.pop(row["model"], NO_LOADS)} for row in [*rows, *idle]]


def _with_hit_rate(row: Row) -> Row:
    """The row, with the tokens found in prefix caches and their share; both None where no engine tells."""
    cached, cacheable = row.pop("cached_tokens"), row.pop("cacheable_tokens")
    known = {"cached_tokens": cached, "cache_hit_rate": cached / cacheable} if cacheable else NO_HITS
    return {**row, **known}


def cache_hit_rate(session: Session, campaign_id: int) -> float | None:
    """The share of finished rounds' input that engines had in their prefix caches, as far as they tell."""
    cached, cacheable = session.execute(
        select(func.sum(CostStats.cached_tokens), func.sum(CostStats.cacheable_tokens)).where(
            CostStats.campaign_id == campaign_id
        )
    ).one()
    return float(cached / cacheable) if cacheable else None


SUMS = ("generations", "input_tokens", "output_tokens", "seconds")


def reuse(session: Session, campaign_id: int) -> list[Row]:
    """Texts that other campaigns had made: one row per candidate or judge and campaign they were taken from.

    `taken_from` is None where that campaign was deleted. `generations`, tokens and `seconds` are what making
    them again would have cost. A text that several candidates share is counted for the first of them in the
    first round that used it. Candidates come in order, then judges by name. Only texts behind stored
    comparisons and judgments are known; answers of an autoevaluator are not among them.
    """
    is_owner = and_(
        Candidate.campaign_id == ReuseStats.campaign_id,
        Candidate.name == ReuseStats.name,
        ReuseStats.role == "candidate",
    )
    rows = session.execute(
        select(
            ReuseStats.role,
            ReuseStats.name,
            Campaign.name.label("taken_from"),
            *(func.sum(getattr(ReuseStats, name)).label(name) for name in SUMS),
        )
        .outerjoin(Candidate, is_owner)
        .outerjoin(Campaign, Campaign.id == ReuseStats.taken_from_id)
        .where(ReuseStats.campaign_id == campaign_id)
        .group_by(ReuseStats.role, ReuseStats.name, Candidate.position, Campaign.id, Campaign.name)
        .order_by(Candidate.position.nulls_last(), ByCodePoints(ReuseStats.name), Campaign.id.nulls_last())
    )
    # PostgreSQL's sums of whole numbers are of type Decimal.
    return [row | {name: int(row[name]) for name in SUMS[:3]} for row in map(dict, rows.mappings())]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsSpent:
    """Sums over some finished rounds."""

    last: int
    """Number of the last of them; -1 where there is none."""
    comparisons: int
    """Comparisons whose texts could be made."""
    tokens: int
    """Input and output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpent:
    """Sums over the texts of one model that some finished rounds paid for."""

    model: str
    input_tokens: int
    output_tokens: int
    seconds: float
    """Of its engine."""


def of_rounds(session: Session, campaign_id: int, *, after: int = -1) -> RoundsSpent:
    """The sums over all finished rounds with a number above `after`.

    Those over all rounds are read from the sums that were added to as each round was told.
    """
    if after < 0:
        return _of_all_rounds(session, campaign_id)
    last, comparisons, tokens = session.execute(
        select(
            func.coalesce(func.max(Round.number), -1),
            func.coalesce(func.sum(Decision.answered), 0),
            func.coalesce(func.sum(Decision.input_tokens + Decision.output_tokens), 0),
        )
        .join(Decision, Decision.round_id == Round.id)
        .where(Round.campaign_id == campaign_id, Round.number > after)
    ).one()
    return RoundsSpent(last=max(last, after), comparisons=int(comparisons), tokens=int(tokens))


def _of_all_rounds(session: Session, campaign_id: int) -> RoundsSpent:
    told = session.execute(
        select(
            last_told(campaign_id),
            CampaignStats.answered,
            CampaignStats.input_tokens + CampaignStats.output_tokens,
        ).where(CampaignStats.campaign_id == campaign_id)
    ).one_or_none()
    last, comparisons, tokens = told or (-1, 0, 0)
    return RoundsSpent(last=last, comparisons=comparisons, tokens=tokens)


def of_models(session: Session, campaign_id: int, *, after: int = -1) -> Sequence[ModelSpent]:
    """The sums over all finished rounds with a number above `after`, by model."""
    texts: type[CostStats | Generation] = CostStats if after < 0 else Generation
    spent = select(
        texts.model,
        func.sum(texts.input_tokens),
        func.sum(texts.output_tokens),
        func.sum(texts.seconds),
    )
    if after < 0:
        spent = spent.where(CostStats.campaign_id == campaign_id)
    else:
        spent = (
            spent.join(Round, Round.id == Generation.round_id)
            .join(Decision, Decision.round_id == Round.id)
            .where(Round.campaign_id == campaign_id, Round.number > after)
        )
    rows = session.execute(spent.group_by(texts.model).order_by(ByCodePoints(texts.model)))
    return [
        ModelSpent(model=model, input_tokens=int(shown), output_tokens=int(made), seconds=seconds)
        for model, shown, made, seconds in rows
    ]


SUMS_OF_TEXTS = ("input_tokens", "output_tokens", "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRate:
    """Means over the stored texts of one model."""

    texts: int
    output_tokens: float
    seconds: float
    """Of engine time; texts of one batch share its time."""


def rates(session: Session, models: Sequence[str]) -> dict[str, ModelRate]:
    """The rates of those models that have texts, by name."""
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
    timed: int
    """Number of the texts that have a latency."""
    latencies: tuple[float, float]
    """The sum of these, and that of their squares."""

    def mean(self, *weights: float) -> float:
        """The mean of a weighted sum of input tokens, output tokens and seconds; weights left out are 0."""
        return sum(weight * total for weight, total in zip(weights, self.sums, strict=False)) / self.texts

    def deviation(self, *weights: float) -> float:
        """The standard deviation of the same among these texts."""
        a, b, c = (*weights, 0.0, 0.0, 0.0)[:3]
        products = (a * a, b * b, c * c, 2 * a * b, 2 * a * c, 2 * b * c)
        square = sum(weight * total for weight, total in zip(products, self.squares, strict=True))
        return _deviation(square / self.texts, self.mean(*weights))

    @property
    def latency(self) -> tuple[float, float] | None:
        """The mean of the latencies that are known, and their standard deviation; None where none is."""
        if not self.timed:
            return None
        mean, square = (total / self.timed for total in self.latencies)
        return mean, _deviation(square, mean)


def _deviation(square: float, mean: float) -> float:
    """The standard deviation, by the mean of squares and the mean; 0 where rounding alone makes one."""
    variance = square - mean**2
    return sqrt(variance) if variance > ROUNDED * square else 0.0


def texts_by_candidate(
    session: Session, campaign_id: int, names: Sequence[str] | None = None
) -> dict[str, CandidateTexts]:
    """The texts of each candidate that has some, by its name; a text counts as often as it was compared.

    Args:
        session: Reads the results.
        campaign_id: The campaign.
        names: Names of the candidates that are asked for; None for all.
    """
    rows = session.execute(
        select(
            Candidate.name,
            Candidate.model,
            func.sum(CandidateStats.texts),
            func.sum(CandidateStats.timed),
            func.sum(CandidateStats.latency),
            func.sum(CandidateStats.latency_squares),
            *(func.sum(getattr(CandidateStats, name)) for name in (*SUMS_OF_TEXTS, *PRODUCTS)),
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
            sums=tuple(map(float, sums[: len(SUMS_OF_TEXTS)])),  # type: ignore[arg-type] # three of them
            squares=tuple(map(float, sums[len(SUMS_OF_TEXTS) :])),  # type: ignore[arg-type] # six of them
            timed=int(timed),
            latencies=(float(latency), float(squares)),
        )
        for name, model, texts, timed, latency, squares, *sums in rows
    }
