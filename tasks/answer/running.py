"""What asking a candidate takes: engine time and price of 1 000 examples, from the texts it was scored on."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from winnow.storage.queries.rates import CandidateTexts, texts_by_candidate
from winnow.storage.records.values import CampaignRecord
from winnow.tasks.campaign.budget import amount, price_weights

EXAMPLES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCost:
    """What a candidate takes for `EXAMPLES` examples like those that it was scored on."""

    name: str
    seconds: float
    """Of engine time, without loading; texts of one batch share its time."""
    tokens: float
    """Read and written."""
    price: float | None
    """In the currency of the campaign's prices; None where nothing has one."""


def running_costs(
    session: Session, campaign: CampaignRecord, names: Sequence[str]
) -> tuple[RunningCost, ...]:
    """Of the candidates of these names that have texts."""
    found = texts_by_candidate(session, campaign.id, names)
    return tuple(_running_cost(campaign, name, found[name]) for name in names if name in found)


def _running_cost(campaign: CampaignRecord, name: str, made: CandidateTexts) -> RunningCost:
    texts = EXAMPLES * (campaign.spec.get("samples") or {"n": 1})["n"]
    weights = price_weights(campaign, made.model)
    return RunningCost(
        name=name,
        seconds=texts * made.mean(0.0, 0.0, 1.0),
        tokens=texts * made.mean(1.0, 1.0),
        price=None if weights is None else texts * made.mean(*weights),
    )


def running_words(costs: Sequence[RunningCost]) -> str:
    """All of them in a sentence."""
    said = "; ".join(f"{each.name} {_said(each)}" for each in costs)
    return f"{amount(EXAMPLES)} examples: {said}; as these texts were made, loading apart"


def _said(cost: RunningCost) -> str:
    priced = "" if cost.price is None else f", price {_short(cost.price)}"
    return f"{_short(cost.seconds)} s of engine time, {amount(round(cost.tokens))} tokens{priced}"


def _short(value: float) -> str:
    """Three digits that count, and whole numbers from 100 on."""
    return amount(round(value)) if value >= 100.0 else f"{value:.3g}"
