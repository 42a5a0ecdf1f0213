"""Spending of campaigns, by round and in total.

The module also counts reused outputs, and summarises models and candidates. Rows are as in
`storage.queries.campaign_views`. Statistics of a model include the outputs of all campaigns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from sqlalchemy import Select, and_, case, func, select
from sqlalchemy.orm import Session

from winnow.storage.columns import ByCodePoints
from winnow.storage.engine.database import once_a_look
from winnow.storage.json_types import Row
from winnow.storage.models import (
    Campaign,
    CampaignStats,
    Candidate,
    CandidateStats,
    Comparison,
    CostStats,
    Decision,
    Generation,
    ReuseStats,
    Round,
)
from winnow.storage.records.campaigns import loads_by_model
from winnow.storage.records.candidate_states import PRODUCTS
from winnow.storage.records.rounds import is_untold, last_told

ROUNDED = 1e-12
"""Relative rounding error of a mean of squares of floating-point numbers."""

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
    """Cost of the outputs generated for this campaign, candidates in order.

    Each row has tokens and engine seconds. An output of an earlier campaign cost nothing and is not counted.
    An output that several candidates share is counted for the first of them in the round that paid for it.
    The loads of a model are in its first row. `cached_tokens` are the input tokens found in engines' prefix
    caches. `cache_hit_rate` is their share of the input tokens of those outputs for which engines report
    cached tokens; both are None if no engine does. Rows without a candidate come last, one per model: replies
    of judges, outputs of the autoevaluator and on unlabelled examples, outputs that are not an answer, and
    outputs of unfinished rounds. All rows sum to the totals of the campaign.
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
    unowned = {row["model"]: row for row in rows if row["candidate"] is None}
    for row in _unfinished(session, campaign_id):
        before = unowned.get(row["model"], NO_TEXTS)
        unowned[row["model"]] = row | {name: before[name] + row[name] for name in NO_TEXTS}
    rows = [*owned, *(unowned[model] for model in sorted(unowned))]
    return [_with_hit_rate(row) for row in _with_loads(rows, loads_by_model(session, campaign_id))]


def _unfinished(session: Session, campaign_id: int) -> list[Row]:
    """Outputs that unfinished rounds paid for, by model."""
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
    """Convert PostgreSQL's Decimal sums of a row to integers."""
    return row | {name: int(row[name]) for name in NO_TEXTS if name != "seconds"}


def _with_loads(rows: list[Row], loads: dict[str, Row]) -> list[Row]:
    """Add the loads of each model to its first row.

    A model without outputs gets a row of its own.
    """
    asked = {row["model"] for row in rows}
    idle = [{"candidate": None, "model": model, **NO_TEXTS} for model in loads if model not in asked]
    left = dict(loads)
    return [{**row, **left.pop(row["model"], NO_LOADS)} for row in [*rows, *idle]]


def _with_hit_rate(row: Row) -> Row:
    """Add the cached tokens and their share to a row.

    Both are None if no engine reports them.
    """
    cached, cacheable = row.pop("cached_tokens"), row.pop("cacheable_tokens")
    known = {"cached_tokens": cached, "cache_hit_rate": cached / cacheable} if cacheable else NO_HITS
    return {**row, **known}


def cache_hit_rate(session: Session, campaign_id: int) -> float | None:
    """Share of finished rounds' input tokens found in engines' prefix caches.

    None if not reported.
    """
    cached, cacheable = session.execute(
        select(func.sum(CostStats.cached_tokens), func.sum(CostStats.cacheable_tokens)).where(
            CostStats.campaign_id == campaign_id
        )
    ).one()
    return float(cached / cacheable) if cacheable else None


SUMS = ("generations", "input_tokens", "output_tokens", "seconds")


def reuse(session: Session, campaign_id: int) -> list[Row]:
    """Reused outputs of other campaigns.

    One row per candidate or judge and source campaign. `taken_from` is None if that campaign was deleted.
    `generations`, tokens and `seconds` are the cost of generating the outputs again. An output that several
    candidates share is counted for the first of them in the first round that used it. Candidates come in
    order, then judges by name. Only outputs of stored comparisons and judgments are counted; those of an
    autoevaluator are not.
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
    # PostgreSQL's sums of integers are Decimals.
    return [row | {name: int(row[name]) for name in SUMS[:3]} for row in map(dict, rows.mappings())]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsSpent:
    """Sums over some finished rounds."""

    last: int
    """Number of the last round counted; -1 if no round is counted."""
    comparisons: int
    """Number of comparisons with all their outputs."""
    tokens: int
    """Number of input and output tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpent:
    """Sums over the outputs of one model that some finished rounds paid for."""

    model: str
    input_tokens: int
    output_tokens: int
    seconds: float
    """Engine time in seconds."""


def of_rounds(session: Session, campaign_id: int, *, after: int = -1) -> RoundsSpent:
    """Sums over all finished rounds with a number above `after`.

    Sums over all rounds are read from a row that each observed round updates.
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
    """Sums over all finished rounds with a number above `after`, by model."""
    texts: type[CostStats | Generation] = CostStats if after < 0 else Generation
    spent = select(
        texts.model, func.sum(texts.input_tokens), func.sum(texts.output_tokens), func.sum(texts.seconds)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedCosts:
    """Costs that agents reported for their runs."""

    cost: float
    """Sum of the reported costs."""
    are_all: bool
    """Whether each run with an output reported a cost.
    A run that failed may report no cost, and counts as 0."""


REPORTED_COST = Generation.choice_logprobs["cost"].as_float()
"""Price that an agent reported for a run.
NULL if it reported no price, and for models."""


def reported_costs(
    session: Session, campaign_id: int, models: Sequence[str], *, after: int = -1
) -> ReportedCosts:
    """Sum of the costs that these agents reported.

    The costs are those of finished rounds with a number above `after`.
    """
    cost, silent = session.execute(
        select(
            func.coalesce(func.sum(REPORTED_COST), 0.0),
            func.count(case((REPORTED_COST.is_(None) & (Generation.text != ""), 1))),
        )
        .select_from(Generation)
        .join(Round, Round.id == Generation.round_id)
        .join(Decision, Decision.round_id == Round.id)
        .where(Round.campaign_id == campaign_id, Round.number > after, Generation.model.in_(models))
    ).one()
    return ReportedCosts(cost=float(cost), are_all=not silent)


@once_a_look
def reported_by_candidate(session: Session, campaign_id: int) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of the reported costs of candidates.

    See `ReportedCosts.are_all`.
    """
    rows = session.execute(
        select(
            Candidate.name,
            func.sum(REPORTED_COST),
            func.sum(REPORTED_COST * REPORTED_COST),
            func.count(case((REPORTED_COST.is_(None) & (Generation.text != ""), 1))),
            func.count(),
        )
        .select_from(Comparison)
        .join(Candidate, Candidate.id == Comparison.candidate_a_id)
        .join(Generation, Generation.id == Comparison.generation_a_id)
        .where(Candidate.campaign_id == campaign_id, Comparison.candidate_b_id.is_(None))
        .group_by(Candidate.id, Candidate.name)
    )
    return {
        name: (float(total) / runs, sqrt(max(0.0, float(squares) / runs - (float(total) / runs) ** 2)))
        for name, total, squares, silent, runs in rows
        if total is not None and not silent
    }


SUMS_OF_TEXTS = ("input_tokens", "output_tokens", "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRate:
    """Means over the stored outputs of one model."""

    texts: int
    output_tokens: float
    seconds: float
    """Engine time in seconds; outputs of one batch share its time."""


def rates(session: Session, models: Sequence[str]) -> dict[str, ModelRate]:
    """Rates of those models that have outputs, by name."""
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
    """Sums over the compared outputs of one candidate.

    An output counts once per comparison.
    """

    model: str
    texts: int
    sums: tuple[float, float, float]
    """Sums of input tokens, output tokens and seconds."""
    squares: tuple[float, float, float, float, float, float]
    """Sums of products of two of these.
    In order: each with itself, then 1st and 2nd, 1st and 3rd, 2nd and 3rd."""
    timed: int
    """Number of outputs with a latency."""
    latencies: tuple[float, float]
    """Sum of the latencies, and of their squares."""

    def mean(self, *weights: float) -> float:
        """Mean of a weighted sum of input tokens, output tokens and seconds.

        Omitted weights are 0.
        """
        return sum(weight * total for weight, total in zip(weights, self.sums, strict=False)) / self.texts

    def deviation(self, *weights: float) -> float:
        """Standard deviation of the weighted sum."""
        a, b, c = (*weights, 0.0, 0.0, 0.0)[:3]
        products = (a * a, b * b, c * c, 2 * a * b, 2 * a * c, 2 * b * c)
        square = sum(weight * total for weight, total in zip(products, self.squares, strict=True))
        return _deviation(square / self.texts, self.mean(*weights))

    @property
    def latency(self) -> tuple[float, float] | None:
        """Mean and standard deviation of the known latencies; None if no latency is known."""
        if not self.timed:
            return None
        mean, square = (total / self.timed for total in self.latencies)
        return mean, _deviation(square, mean)


def _deviation(square: float, mean: float) -> float:
    """Standard deviation from the mean of squares and the mean.

    0 if it is no more than rounding.
    """
    variance = square - mean**2
    return sqrt(variance) if variance > ROUNDED * square else 0.0


def texts_by_candidate(
    session: Session, campaign_id: int, names: Sequence[str] | None = None
) -> dict[str, CandidateTexts]:
    """Output statistics of each candidate with outputs, by name.

    An output counts once per comparison. `names` selects candidates; None selects all.
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


def labels_used(session: Session, campaign_id: int) -> int:
    """Number of examples whose labels a campaign has used."""
    used = used_examples(campaign_id).distinct().subquery()
    return session.scalars(select(func.count()).select_from(used)).one()


def used_examples(campaign_id: int) -> Select[tuple[int]]:
    """Query for the example of each of a campaign's comparisons of one output."""
    return (
        select(Comparison.example_id)
        .join(Candidate, Candidate.id == Comparison.candidate_a_id)
        .where(Candidate.campaign_id == campaign_id, Comparison.candidate_b_id.is_(None))
    )
