"""The cost of comparisons: requests, tokens, price and hours."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.admin.schema import reading
from winnow.storage.errors import StorageError
from winnow.storage.queries.costs import ModelRate, rates
from winnow.tasks.campaign.budget import SECONDS_PER_HOUR, TOKENS_PER_PRICE, devices_by_model, unpriced
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.simulation.forecast.tokens import JudgeUse, prompt_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """The cost of a number of comparisons."""

    requests: float
    prompt_tokens: float
    answer_tokens: float
    judge_calls: float
    """Calls of judge models, if every first reply is readable.
    The next two fields are their tokens.
    """
    judge_prompt_tokens: float
    judge_reply_tokens: float
    price: float | None
    """Price in `currency`; None if a model has no price."""
    currency: str | None
    """Currency of the spec's prices; None if the file names no currency."""
    hours: float | None
    """Hours if engines run one after the other, or at the given rate; None without a rate."""


@dataclass(frozen=True, slots=True)
class Judgings:
    """Total outputs that judge models receive.

    Every kind of call receives each of them.
    """

    count: float
    """Number of judged outputs, or pairs of outputs."""
    answer_tokens: float
    """Tokens of the candidates' outputs; an output that is in several calls counts once for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Totals of one kind of judge model call."""

    model: str
    calls: float
    shown: float
    """Number of input tokens."""
    made: float


class Pricing:
    """Computes the cost of comparisons.

    Args:
        checked: The campaign.
        judging: Calls of judge models, for each output or for a comparison of several.
        rate: Requests per second; None for the models' measured rates in the database.
    """

    def __init__(self, checked: ResolvedCampaign, judging: Sequence[JudgeUse], rate: float | None) -> None:
        self._checked, self._rate, self.judging = checked, rate, judging
        self.models = [each.model.name for each in checked.candidates]
        self.tokens = prompt_tokens(
            checked.candidates, checked.dataset.examples, checked.spec.seed, weighing=checked.weighing
        )
        self.measured = _measured(checked, sorted({each.name for each in checked.models}))
        self.longest = np.array(
            [
                0.0 if checked.weighing is not None else float(each.sampling.max_tokens)
                for each in checked.candidates
            ]
        )

    def amounts(
        self,
        by_arm: FloatArray,
        *,
        at_length: bool = False,
        judged: Judgings | None = None,
        beside: Sequence[Judged] = (),
    ) -> Amounts:
        """The cost of given numbers of comparisons.

        Args:
            by_arm: Number of comparisons of each arm, shape (K,).
            at_length: Whether outputs have maximum length instead of expected length.
            judged: Outputs that judge models receive; None for every output once.
            beside: Totals of further calls to judge models, or to other models that are not candidates.
        """
        by_arm = by_arm * self._checked.spec.texts_each
        answers = self.longest if at_length else self._answer_tokens()
        shown, made = by_arm * self.tokens.by_arm, by_arm * answers
        total = float(by_arm.sum())
        judged = Judgings(total, float(made.sum())) if judged is None else judged
        uses = [
            Judged(
                model=use.model,
                calls=judged.count,
                shown=judged.count * use.prompt_tokens + judged.answer_tokens,
                made=judged.count * self._reply_tokens(use, at_length=at_length),
            )
            for use in self.judging
        ] + [*beside]
        seconds = self._device_seconds(by_arm, uses)
        return Amounts(
            requests=total,
            prompt_tokens=float(shown.sum()),
            answer_tokens=float(made.sum()),
            judge_calls=sum(use.calls for use in uses),
            judge_prompt_tokens=sum(use.shown for use in uses),
            judge_reply_tokens=sum(use.made for use in uses),
            price=self._price(shown, made, uses, seconds),
            currency=self._checked.spec.execution.currency,
            hours=None if seconds is None else sum(seconds.values()) / SECONDS_PER_HOUR,
        )

    def dearest(self, comparisons: int, of_each: int) -> FloatArray:
        """The most expensive allocation of comparisons to arms.

        Args:
            comparisons: Number of comparisons.
            of_each: Maximum number for each arm.
        """
        left, counts = comparisons, np.zeros(len(self.models))
        for arm in np.argsort(-self._unit_price(), kind="stable").tolist():
            counts[arm] = min(left, of_each)
            left -= int(counts[arm])
        return counts

    def _unit_price(self) -> FloatArray:
        """A number by arm that increases with a comparison's price, or else its tokens."""
        prices = self._checked.spec.execution.prices
        shown = made = np.ones(len(self.models))
        if all(model in prices for model in self.models):
            shown = np.array([prices[model].input for model in self.models])
            made = np.array([prices[model].output for model in self.models])
        dear: FloatArray = shown * self.tokens.by_arm + made * self.longest
        return dear

    def _answer_tokens(self) -> FloatArray:
        """Tokens of an output by arm: its model's measured mean, or its maximum if lower."""
        means = [
            self.measured[model].output_tokens if model in self.measured else np.inf for model in self.models
        ]
        expected: FloatArray = np.minimum(means, self.longest)
        return expected

    def _reply_tokens(self, use: JudgeUse, *, at_length: bool) -> float:
        known = self.measured.get(use.model)
        if use.is_weighed or at_length or known is None:
            return use.reply_tokens
        return min(known.output_tokens, use.reply_tokens)

    def _device_seconds(self, by_arm: FloatArray, uses: Sequence[Judged]) -> dict[str, float] | None:
        """Device seconds by model; None if the rate of a model is unknown."""
        calls = [*zip(self.models, by_arm.tolist(), strict=True), *((use.model, use.calls) for use in uses)]
        if self._rate is None and not all(model in self.measured for model, _ in calls):
            return None
        seconds: dict[str, float] = {}
        for model, count in calls:
            each = self.measured[model].seconds if self._rate is None else 1.0 / self._rate
            seconds[model] = seconds.get(model, 0.0) + count * each
        return seconds

    def _price(
        self, shown: FloatArray, made: FloatArray, uses: Sequence[Judged], seconds: Mapping[str, float] | None
    ) -> float | None:
        execution = self._checked.spec.execution
        paid = [
            *zip(self.models, shown.tolist(), made.tolist(), strict=True),
            *((use.model, use.shown, use.made) for use in uses),
        ]
        devices = devices_by_model(self._checked.spec.identity())
        if unpriced([model for model, _, _ in paid], execution.prices, execution.price_per_hour, devices):
            return None
        total = 0.0
        for model, its_shown, its_made in paid:
            if price := execution.prices.get(model):
                total += (price.input * its_shown + price.output * its_made) / TOKENS_PER_PRICE
        if execution.price_per_hour is None:
            return total
        if seconds is None:
            return None
        busy = sum(spent * devices.get(model, 1) for model, spent in seconds.items())
        return total + execution.price_per_hour * busy / SECONDS_PER_HOUR


def _measured(checked: ResolvedCampaign, models: Sequence[str]) -> dict[str, ModelRate]:
    """Rates of models, measured in the campaign's database.

    Empty if the database does not exist.
    """
    with suppress(StorageError), reading(checked.spec.storage) as session:
        return rates(session, models)
    return {}
