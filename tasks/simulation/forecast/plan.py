"""A campaign's requests, tokens, price and hours, and the gaps it can tell, before anything is spent."""

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

import numpy as np

from winnow.algorithms.bounds.sign_test import difference_for_new_examples
from winnow.algorithms.state.arrays import FloatArray
from winnow.algorithms.state.assumed_scores import assumed_scores, disagreement
from winnow.storage.admin.schema import require_schema
from winnow.storage.engine.database import open_database
from winnow.storage.errors import StorageError
from winnow.storage.queries.rates import ModelRate, rates
from winnow.tasks.campaign.budget import SECONDS_PER_HOUR, TOKENS_PER_PRICE, devices_by_model
from winnow.tasks.data.score_tables import ScoreTable
from winnow.tasks.errors import SpecError
from winnow.tasks.objectives.best_mean.objective import BestMean
from winnow.tasks.objectives.resolved import ResolvedCampaign
from winnow.tasks.simulation.forecast.assumed import Assumption, StandIn, stand_in
from winnow.tasks.simulation.forecast.gaps import LEVEL, POWER, smallest_separated
from winnow.tasks.simulation.forecast.judging import JudgeUse, judge_uses
from winnow.tasks.simulation.forecast.requests import Played, Player
from winnow.tasks.simulation.forecast.tokens import prompt_tokens

Assumed = Assumption | ScoreTable
"""What stands in for the scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """What a number of comparisons takes."""

    requests: float
    prompt_tokens: float
    answer_tokens: float
    judge_calls: float
    """Of models that judge, if every first reply can be read; with their tokens below."""
    judge_prompt_tokens: float
    judge_reply_tokens: float
    price: float | None
    """In the currency of the spec's prices; None where a model has none."""
    hours: float | None
    """Of engines one after the other, or at the rate that was given; None where no rate is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a campaign would take."""

    name: str
    assumed: str
    candidates: int
    examples: int
    """Of selection."""
    held_out: int
    batch_size: int
    selector: str
    delta: float | None
    epsilon: float
    grid: int
    """Comparisons of selection on all of its examples."""
    limit: int
    """Comparisons at most, those on held-out examples included."""
    runs: int
    fewest: int
    """Of nine in ten runs, the fewest comparisons."""
    most: int
    """Of these, the most."""
    decided: int
    """Runs that were decided within the budget."""
    right: int
    """Runs that named the right winner."""
    expected: Amounts
    """On average over the runs."""
    dearest: Amounts
    """Of the whole limit, spent on the dearest candidates with every answer as long as it may be."""
    sampled_examples: int
    guessed_tokens: tuple[str, ...]
    """Models whose prompt tokens are characters / 4."""
    measured: Mapping[str, ModelRate]
    """What texts in the database came to, by model."""
    rate: float | None
    """Requests a second, where the user says so."""
    gap: float | None
    """The smallest gap that is separated within the budget in nine of ten runs; None where none is."""
    gap_of_grid: float
    """The same where all comparisons are made."""
    gap_on_new_examples: float | None
    """The smallest difference of the best two on all examples that says something of new ones; None where no
    difference does, or scores are not 0 and 1."""
    level: float
    """Of that."""


def plan_campaign(
    checked: ResolvedCampaign,
    assumed: Assumed,
    *,
    seeds: int,
    workers: int | None = None,
    rate: float | None = None,
) -> Plan:
    """Play the campaign's selector on a table, and count what that takes; nothing is asked of any model.

    Args:
        checked: The campaign.
        assumed: What stands in for its scores.
        seeds: Runs; for each gap that is tried as many again.
        workers: Processes; one per core if None.
        rate: Requests a second; None for what the database says of the models.

    Raises:
        SpecError: If the objective is not best-mean, no winner is looked for, or the table does not fit.
    """
    if not isinstance(checked, BestMean):
        raise SpecError(
            f"plan knows what a best-mean campaign takes, and this one asks for {checked.spec.objective}; "
            "winnow validate says how large it is"
        )
    if checked.baseline is not None:
        raise SpecError(
            "plan counts how often the right winner is named, and gate names none; winnow validate says how "
            "large the campaign is"
        )
    player = Player(checked, seeds=range(seeds), workers=workers)
    rng = np.random.default_rng(checked.spec.seed)
    scores, is_of_candidates = _scores(assumed, checked, player, rng)
    played = player.play(scores)
    # Who will be the best is not known: on average over that, every candidate has the same share of the work.
    by_arm = played.by_arm if is_of_candidates else np.full(player.n_arms, played.by_arm.mean())
    limit = player.limit + player.held_out_comparisons
    pricing = _Pricing(checked, rate)
    low, high = np.quantile(played.comparisons, [0.05, 0.95], method="inverted_cdf").tolist()
    spec = checked.spec
    level = LEVEL if spec.stopping.delta is None else spec.stopping.delta
    return Plan(
        name=spec.name,
        assumed=str(assumed) if isinstance(assumed, Assumption) else _said_of(assumed, is_of_candidates),
        candidates=player.n_arms,
        examples=player.n_examples,
        held_out=player.n_held_out,
        batch_size=spec.batch_size,
        selector=spec.selector.name,
        delta=spec.stopping.delta,
        epsilon=spec.stopping.epsilon,
        grid=player.grid,
        limit=limit,
        runs=played.runs,
        fewest=int(low),
        most=int(high),
        decided=played.decided,
        right=played.right,
        expected=pricing.amounts(by_arm),
        dearest=pricing.amounts(_dearest(pricing, limit, player), at_length=True),
        sampled_examples=pricing.tokens.examples,
        guessed_tokens=pricing.tokens.guessed,
        measured=pricing.measured,
        rate=rate,
        gap=_gap(player, assumed, scores, rng, wants_decision=spec.stopping.delta is not None),
        gap_of_grid=1.0 / player.n_examples,
        gap_on_new_examples=_on_new_examples(assumed, scores, level),
        level=level,
    )


class _Pricing:
    """What comparisons of each candidate take."""

    def __init__(self, checked: BestMean, rate: float | None) -> None:
        self._checked, self._rate = checked, rate
        self.models = [each.model.name for each in checked.candidates]
        self.judging = judge_uses(checked.judge, checked.dataset.examples, checked.spec.seed)
        self.tokens = prompt_tokens(
            checked.candidates, checked.dataset.examples, checked.spec.seed, weighing=checked.weighing
        )
        self.measured = _measured(checked, sorted({*self.models, *(use.model for use in self.judging)}))
        self.longest = np.array(
            [
                0.0 if checked.weighing is not None else float(each.sampling.max_tokens)
                for each in checked.candidates
            ]
        )

    def amounts(self, by_arm: FloatArray, *, at_length: bool = False) -> Amounts:
        """Of so many comparisons of each arm, shape (K,); answers as long as they may be, or as expected."""
        by_arm = by_arm * (1 if self._checked.spec.samples is None else self._checked.spec.samples.n)
        answers = self.longest if at_length else self._answer_tokens()
        shown, made = by_arm * self.tokens.by_arm, by_arm * answers
        total = float(by_arm.sum())
        uses = [
            _Judged(
                model=use.model,
                calls=total,
                shown=total * use.prompt_tokens + float(made.sum()),
                made=total * self._reply_tokens(use, at_length=at_length),
            )
            for use in self.judging
        ]
        seconds = self._device_seconds(by_arm, uses)
        return Amounts(
            requests=total,
            prompt_tokens=float(shown.sum()),
            answer_tokens=float(made.sum()),
            judge_calls=sum(use.calls for use in uses),
            judge_prompt_tokens=sum(use.shown for use in uses),
            judge_reply_tokens=sum(use.made for use in uses),
            price=self._price(shown, made, uses, seconds),
            hours=None if seconds is None else sum(seconds.values()) / SECONDS_PER_HOUR,
        )

    def unit_price(self) -> FloatArray:
        """By arm, what orders candidates by how dear a comparison is: its price, or else its tokens."""
        prices = self._checked.spec.execution.prices
        shown = made = np.ones(len(self.models))
        if all(model in prices for model in self.models):
            shown = np.array([prices[model].input for model in self.models])
            made = np.array([prices[model].output for model in self.models])
        dear: FloatArray = shown * self.tokens.by_arm + made * self.longest
        return dear

    def _answer_tokens(self) -> FloatArray:
        """By arm: the measured mean of its model, no more than it may have, or all that it may have."""
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

    def _device_seconds(self, by_arm: FloatArray, uses: Sequence["_Judged"]) -> dict[str, float] | None:
        """By model; None where nothing is known of some model."""
        calls = [*zip(self.models, by_arm.tolist(), strict=True), *((use.model, use.calls) for use in uses)]
        if self._rate is None and not all(model in self.measured for model, _ in calls):
            return None
        seconds: dict[str, float] = {}
        for model, count in calls:
            each = self.measured[model].seconds if self._rate is None else 1.0 / self._rate
            seconds[model] = seconds.get(model, 0.0) + count * each
        return seconds

    def _price(
        self,
        shown: FloatArray,
        made: FloatArray,
        uses: Sequence["_Judged"],
        seconds: Mapping[str, float] | None,
    ) -> float | None:
        execution = self._checked.spec.execution
        paid = [
            *zip(self.models, shown.tolist(), made.tolist(), strict=True),
            *((use.model, use.shown, use.made) for use in uses),
        ]
        if not (
            all(model in execution.prices for model, _, _ in paid) or execution.price_per_hour is not None
        ):
            return None
        total = 0.0
        for model, its_shown, its_made in paid:
            if price := execution.prices.get(model):
                total += (price.input * its_shown + price.output * its_made) / TOKENS_PER_PRICE
        if execution.price_per_hour is None:
            return total
        if seconds is None:
            return None
        devices = devices_by_model(self._checked.spec.identity())
        busy = sum(spent * devices.get(model, 1) for model, spent in seconds.items())
        return total + execution.price_per_hour * busy / SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """What the calls of one kind to a model that judges add up to."""

    model: str
    calls: float
    shown: float
    """Tokens."""
    made: float


def _dearest(pricing: _Pricing, limit: int, player: Player) -> FloatArray:
    """The dearest way to spend the limit, by arm: each candidate on all examples, the dearest first."""
    left, each = limit, player.n_examples + player.n_held_out
    counts = np.zeros(player.n_arms)
    for arm in np.argsort(-pricing.unit_price(), kind="stable").tolist():
        counts[arm] = min(left, each)
        left -= int(counts[arm])
    return counts


def _measured(checked: BestMean, models: Sequence[str]) -> dict[str, ModelRate]:
    """What the campaign's database knows of its models, if there is one."""
    with suppress(StorageError), closing(open_database(checked.spec.storage, read_only=True)) as database:
        require_schema(database)
        with database.reading() as session:
            return rates(session, models)
    return {}


def _scores(assumed: Assumed, checked: BestMean, player: Player, rng: np.random.Generator) -> StandIn:
    if isinstance(assumed, Assumption):
        means = assumed.means(player.n_arms)
        return StandIn(assumed_scores(means, player.n_examples, alike=assumed.alike, rng=rng), False)
    keys = [each.key for each in checked.dataset.examples]
    if checked.split is not None:
        keys = [keys[position] for position in checked.split.selection.tolist()]
    return stand_in(assumed, [each.name for each in checked.candidates], keys, rng)


def _gap(
    player: Player, assumed: Assumed, scores: FloatArray, rng: np.random.Generator, *, wants_decision: bool
) -> float | None:
    """By simulation: one candidate is ahead of all others, which have one mean, by as much as is tried."""
    if player.limit == player.grid:
        return 1.0 / player.n_examples
    best = float(np.nanmax(np.nanmean(scores, axis=1)))
    alike = assumed.alike if isinstance(assumed, Assumption) else 0.0

    def separates(gap: float) -> bool:
        means = Assumption(best=best, rest=max(best - gap, 0.0), alike=alike).means(player.n_arms)
        played: Played = player.play(assumed_scores(means, player.n_examples, alike=alike, rng=rng))
        return (played.decided_right if wants_decision else played.right) >= POWER * played.runs

    return smallest_separated(separates, player.n_examples, best)


def _on_new_examples(assumed: Assumed, scores: FloatArray, level: float) -> float | None:
    first, second = np.argsort(-np.nanmean(scores, axis=1), kind="stable")[:2]
    if isinstance(assumed, Assumption):
        means = assumed.means(len(scores))
        share = disagreement(float(means[0]), float(means[1]), assumed.alike)
    elif np.isin(scores[[first, second]], [0.0, 1.0]).all():
        share = float((scores[first] != scores[second]).mean())
    else:
        return None
    return difference_for_new_examples(scores.shape[1], level, share)


def _said_of(table: ScoreTable, is_of_candidates: bool) -> str:
    whose = "of these candidates" if is_of_candidates else "in the place of these candidates"
    said = f"{table.source}, {len(table.candidates)} candidates x {table.scores.shape[1]} examples, {whose}"
    if not table.is_partial:
        return said
    return (
        f"{said}; {table.filled:.0%} of its scores are known, the others are drawn from the candidate's own"
    )
