"""What asking a candidate takes: engine time and price of 1 000 examples, from the texts it was scored on."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from winnow.storage.queries.rates import of_candidate
from winnow.storage.records.values import CampaignRecord
from winnow.tasks.campaign.budget import SECONDS_PER_HOUR, TOKENS_PER_PRICE, amount, devices_by_model

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
    return tuple(found for name in names if (found := _running_cost(session, campaign, name)) is not None)


def _running_cost(session: Session, campaign: CampaignRecord, name: str) -> RunningCost | None:
    rate = of_candidate(session, campaign.id, name)
    if rate is None:
        return None
    texts = EXAMPLES * (campaign.spec.get("samples") or {"n": 1})["n"]
    execution = campaign.execution.get("execution", {})
    price = execution.get("prices", {}).get(rate.model)
    hourly = execution.get("price_per_hour")
    devices = devices_by_model(campaign.spec).get(rate.model, 1)
    of_tokens = (
        None
        if price is None
        else (price["input"] * rate.input_tokens + price["output"] * rate.output_tokens) / TOKENS_PER_PRICE
    )
    of_devices = None if hourly is None or not devices else hourly * devices * rate.seconds / SECONDS_PER_HOUR
    known = [each for each in (of_tokens, of_devices) if each is not None]
    return RunningCost(
        name=name,
        seconds=texts * rate.seconds,
        tokens=texts * (rate.input_tokens + rate.output_tokens),
        price=texts * sum(known) if known else None,
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
