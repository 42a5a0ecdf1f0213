"""Count the spent part of a campaign's budget; reused outputs are free.

Canary prompts for served models count for tokens and cost, although no total of outputs includes them.
"""

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy.orm import Session

from winnow.storage.json_types import JsonView
from winnow.storage.objectives import Kind, traits_of
from winnow.storage.queries import costs
from winnow.storage.records import canaries, rounds
from winnow.storage.records.campaigns import loads_by_model
from winnow.storage.records.record_types import CampaignRecord, DecisionRecord
from winnow.tasks.engines.known_providers import AGENTS, ELSEWHERE, WIDTH_ARGS
from winnow.tasks.spec.judge_tree import judging_models, model_name
from winnow.tasks.spec.stored_spec import limits_of, own_kind, retries_of
from winnow.tasks.text.phrases import amount


class Allowance:
    """Limit of pairs for a selector, raised so that only answered pairs are spent.

    A pair without an output, for example because a model cannot be loaded, is free, but the selector counts
    it. Therefore, whenever the selector has observed as many pairs as its limit allows, the limit is raised
    by the number of free pairs. The limit depends only on the budget and on the outcomes of the finished
    rounds in order, so a resumed campaign has the same limit. The budget is the maximum number of answered
    pairs; None for no limit.
    """

    def __init__(self, budget: int | None) -> None:
        self._budget = budget
        self._asked = 0
        self.answered = 0
        """Number of pairs of finished rounds with all their outputs."""
        self.limit = budget
        """Maximum number of pairs to observe, with and without outputs; None for no limit."""

    def add(self, asked: int, answered: int) -> bool:
        """Count a finished round; return whether this changed the limit.

        `asked` counts only pairs that no earlier round has: a retried pair was counted, and was free until
        it had an output.
        """
        self._asked += asked
        self.answered += answered
        if self._budget is None or self.limit is None or self._asked < self.limit:
            return False
        before, self.limit = self.limit, self._budget + self._asked - self.answered
        return self.limit != before


SECONDS_PER_HOUR = 3600.0
TOKENS_PER_PRICE = 1_000_000

WORDS: dict[Kind, str] = {
    "comparisons": "comparisons",
    "tokens": "tokens",
    "gpu_seconds": "GPU seconds",
    "cost": "cost",
    "human_labels": "human labels",
}

ALONE: dict[Kind, str] = WORDS | {
    "comparisons": "comparison",
    "tokens": "token",
    "gpu_seconds": "GPU-second",
    "human_labels": "label",
}
"""Words for the kinds of a budget, as used before the word "budget"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUsage:
    """One limit of a campaign's budget, and how much of it is spent."""

    kind: Kind
    spent: float
    limit: float
    key: str
    """Key of the limit in the file, such as "stopping.budget.tokens"."""

    @property
    def is_spent(self) -> bool:
        """Whether the limit is reached or exceeded."""
        return self.spent >= self.limit

    @property
    def share(self) -> float:
        """Spent share of the limit; 1 or more if the limit is reached."""
        return self.spent / self.limit

    @property
    def sentence(self) -> str:
        """Sentence on a spent limit.

        Example: "the token budget is spent: 10 240 of 10 000".
        """
        return f"the {ALONE[self.kind]} budget is spent: {amount(self.spent)} of {amount(self.limit)}"

    def __str__(self) -> str:
        return f"{WORDS[self.kind]} {amount(self.spent)} of {amount(self.limit)}"


def price_weights(campaign: CampaignRecord, model: str) -> tuple[float, float, float] | None:
    """Price of an input token, an output token and an engine second of a model.

    An hour is paid for each device of the engine; a model that runs elsewhere uses no device. None if the
    model has no price.
    """
    execution = campaign.execution.get("execution", {})
    price, hourly = execution.get("prices", {}).get(model), execution.get("price_per_hour")
    devices = devices_by_model(campaign.spec).get(model, 1)
    if price is None and (hourly is None or not devices):
        return None
    token = {"input": 0.0, "output": 0.0} if price is None else price
    return (
        token["input"] / TOKENS_PER_PRICE,
        token["output"] / TOKENS_PER_PRICE,
        (hourly or 0.0) * devices / SECONDS_PER_HOUR,
    )


def reporting_models(spec: JsonView) -> list[str]:
    """Names of a stored spec's agents, which report the cost of each of their runs."""
    return [model_name(each) for each in spec.get("models", []) if each.get("provider") in AGENTS]


def unpriced(
    models: Iterable[str],
    prices: Container[str],
    hourly: float | None,
    devices: Mapping[str, int],
    reporting: Container[str] = (),
) -> list[str]:
    """Names of the models without a price.

    An hourly price applies only to this machine's devices.

    Args:
        models: Names of models.
        prices: Models with a token price.
        hourly: Price of a device for one hour; None if not given.
        devices: Number of this machine's devices that a model uses, by its name; 0 if it runs elsewhere.
        reporting: Names of agents, which report their prices themselves.
    """
    is_paid_by_hour = hourly is not None
    return [
        each
        for each in models
        if each not in prices and each not in reporting and not (is_paid_by_hour and devices.get(each, 1))
    ]


def lowered_limits(before: CampaignRecord, after: CampaignRecord) -> list[str]:
    """Limits of a campaign that were lowered or added.

    Each is a text such as "tokens 800 (before: 1,000)".
    """
    limits = [limits_of(each.execution["budget"], each.objective) for each in (before, after)]
    return [
        f"{WORDS[kind]} {amount(limit)} (before: {amount(had) if had < math.inf else 'no limit'})"
        for kind, limit in limits[1].items()
        if limit < (had := limits[0].get(kind, math.inf))
    ]


class BudgetTracker:
    """Tracks the spending of one campaign.

    Each call of `usage` adds only the rounds finished since the last call. The settings of engines come from
    the stored spec. Without `limits`, the campaign's own limits apply.
    """

    def __init__(self, campaign: CampaignRecord, limits: Mapping[Kind, float] | None = None) -> None:
        self._campaign_id = campaign.id
        self._primary = own_kind(campaign.objective)
        budget = campaign.execution["budget"]
        self._is_number = isinstance(budget, int)
        self._limits = limits_of(budget, campaign.objective) if limits is None else limits
        execution = campaign.execution.get("execution", {})
        self._prices = execution.get("prices", {})
        self._hourly = execution.get("price_per_hour") or 0.0
        self._devices = devices_by_model(campaign.spec)
        self._reporting = [each for each in reporting_models(campaign.spec) if each not in self._prices]
        self.are_costs_known = True
        """Whether each run so far of an agent without a price reported its cost."""
        self._last = -1
        self._comparisons = self._tokens = 0
        self._token_cost = 0.0
        self._seconds: dict[str, float] = {}  # of engines, by model

    @property
    def primary(self) -> Kind:
        """The kind of budget that the selector itself enforces."""
        return self._primary

    @property
    def is_idle(self) -> bool:
        """Whether the campaign has no limit except the one that the selector enforces."""
        return not self._limits.keys() - {self._primary}

    def usage(self, session: Session) -> tuple[BudgetUsage, ...]:
        """Each limit and the amount spent, after the last finished round."""
        self._add_rounds(session)
        return tuple(
            BudgetUsage(
                kind=kind,
                spent=self._spent(session, kind),
                limit=limit,
                key="stopping.budget" if self._is_number else f"stopping.budget.{kind}",
            )
            for kind, limit in self._limits.items()
        )

    def _add_rounds(self, session: Session) -> None:
        finished = costs.of_rounds(session, self._campaign_id, after=self._last)
        self._comparisons += finished.comparisons
        self._tokens += finished.tokens
        if self._limits.keys() & {"gpu_seconds", "cost"}:
            for each in costs.of_models(session, self._campaign_id, after=self._last):
                self._seconds[each.model] = self._seconds.get(each.model, 0.0) + each.seconds
                self._token_cost += self._cost(each.model, each.input_tokens, each.output_tokens)
            if self._reporting:
                told = costs.reported_costs(session, self._campaign_id, self._reporting, after=self._last)
                self._token_cost += told.cost
                self.are_costs_known &= told.are_all
        self._last = finished.last

    def _cost(self, model: str, input_tokens: int, output_tokens: int) -> float:
        """Price of a model's tokens; 0 if its tokens have no price."""
        price = self._prices.get(model)
        if not price:
            return 0.0
        return float(price["input"] * input_tokens + price["output"] * output_tokens) / TOKENS_PER_PRICE

    def _spent(self, session: Session, kind: Kind) -> float:
        match kind:
            case "comparisons":
                return self._comparisons
            case "tokens":
                asked = canaries.tokens_by_model(session, self._campaign_id)
                return self._tokens + sum(map(sum, asked.values()))
            case "human_labels":
                return costs.labels_used(session, self._campaign_id)
            case "gpu_seconds":
                return self._device_seconds(session)
            case "cost":
                asked = canaries.tokens_by_model(session, self._campaign_id)
                of_canaries = sum(self._cost(model, *tokens) for model, tokens in asked.items())
                return (
                    self._token_cost
                    + of_canaries
                    + self._hourly * self._device_seconds(session) / SECONDS_PER_HOUR
                )

    def _device_seconds(self, session: Session) -> float:
        loading = loads_by_model(session, self._campaign_id)
        waited = {model: row["load_seconds"] for model, row in loading.items()}
        busy = [*self._seconds.items(), *waited.items()]
        return float(sum(seconds * self._devices.get(model, 1) for model, seconds in busy))


def total_price(session: Session, campaign: CampaignRecord) -> float | None:
    """Price of the outputs of finished rounds, counted as for `stopping.budget.cost`.

    None if a model of the campaign has no price.
    """
    execution, devices = campaign.execution.get("execution", {}), devices_by_model(campaign.spec)
    prices, hourly = execution.get("prices", {}), execution.get("price_per_hour")
    if not devices or unpriced(devices, prices, hourly, devices, reporting_models(campaign.spec)):
        return None
    tracker = BudgetTracker(campaign, {"cost": math.inf})
    (usage,) = tracker.usage(session)
    return usage.spent if tracker.are_costs_known else None


def has_ended(session: Session, campaign: CampaignRecord, decision: DecisionRecord | None) -> bool:
    """Whether a campaign's selector or a spent limit ended it."""
    if decision is None or decision.stop:
        return decision is not None
    return ending_limit(session, campaign, decision, BudgetTracker(campaign).usage(session)) is not None


def ending_limit(
    session: Session,
    campaign: CampaignRecord,
    decision: DecisionRecord | None,
    budgets: tuple[BudgetUsage, ...],
) -> BudgetUsage | None:
    """The spent limit that prevents a further round.

    None if there is no such limit, or if the selector itself enforces it.
    """
    planned = rounds.unfinished_round(session, campaign.id)
    is_retry = planned is not None and planned.number in retries_of(campaign.execution)
    if decision is None or not (planned is None or is_retry):
        return None
    own = None if _is_unaware(campaign, decision) else own_kind(campaign.objective)
    return next((each for each in budgets if each.is_spent and each.kind != own), None)


def _is_unaware(campaign: CampaignRecord, decision: DecisionRecord) -> bool:
    """Whether a selector may not have noticed yet that its own budget is spent.

    This happens after candidates joined, or if the budget was lowered after the selector had decided to
    continue. It would then be asked for rounds repeatedly, and propose empty ones.
    """
    if not traits_of(campaign.objective).looks_for_best:
        return False
    return bool(decision.n_joined) or not decision.stop


def devices_by_model(spec: JsonView) -> dict[str, int]:
    """Number of devices of each model's engine, judge models included, by name.

    A model that runs elsewhere uses no device of this machine, because it is paid by tokens.
    """
    certify = spec.get("certify") or {}
    autoevaluator = certify.get("autoevaluator")
    models = [
        *spec.get("models", ()),
        *(model for _, model in judging_models(spec)),
        *([autoevaluator["model"]] if autoevaluator else ()),
    ]
    return {model_name(each): _devices(each) for each in models}


def _devices(model: JsonView) -> int:
    """Number of this machine's devices of a model.

    It is the product of vLLM's parallelism arguments.
    """
    if model.get("provider") in ELSEWHERE:
        return 0
    args = model.get("model_args", {})
    return math.prod(args.get(name) or 1 for name in WIDTH_ARGS)
