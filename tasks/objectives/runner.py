"""Run a campaign's rounds in order: plan, generate, judge, decide and record."""

import math
import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, ParamSpec, Protocol, Self, TypeVar

from opentelemetry import trace
from opentelemetry.trace import Span

from winnow.algorithms.decision import Decision
from winnow.storage.records.record_types import CampaignRecord, NewComparison, RoundRecord
from winnow.tasks.campaign.planned_outputs import GenerationBatch, TextOrFailure
from winnow.tasks.campaign.scored import ScoredCampaign
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.candidates.candidates import Candidate
from winnow.tasks.engines.errors import EngineDied, EngineError, EngineTimeout
from winnow.tasks.engines.pool.request_scheduler import Parts
from winnow.tasks.engines.protocol import Answer
from winnow.tasks.judges.asking.calls import JudgeCall
from winnow.tasks.judges.asking.exchange import Exchange
from winnow.tasks.judges.protocol import Judge, Sample
from winnow.tasks.objectives.round_functions import (
    annotators_of,
    awaits_humans,
    generate_round,
    judge_round,
)
from winnow.tasks.rounds.generate import WantedTexts, have_outputs, plan_generations
from winnow.tasks.rounds.judge_calls import plan_judge_calls, read
from winnow.tasks.rounds.plan import plan_rounds
from winnow.tasks.rounds.record import decide_round, record_round
from winnow.tasks.rounds.score import places_of, shown_of
from winnow.tasks.spec.stored_spec import ONLY


class JudgeAhead:
    """Prefetch judge calls while the outputs of one round arrive.

    Requests and cache keys are those of calls made after the round, because they depend only on the outputs.
    At least one judge, of the outcome or of a metric, uses models.
    """

    def __init__(
        self, campaign: CampaignSession, judges: Sequence[Judge[Sample]], round_: RoundRecord
    ) -> None:
        self._campaign, self._judges, self._round = campaign, judges, round_
        self._unread = list(range(len(round_.examples)))  # pairs that lack some outputs
        self._exchange = Exchange[Sample]({})
        self._asked: list[tuple[Sequence[JudgeCall], WantedTexts]] = []
        self.answers: dict[JudgeCall, TextOrFailure] = {}
        """Answers to the calls so far."""

    @property
    def is_done(self) -> bool:
        """Whether all calls that the judges need for the round are answered."""
        return not self._unread and self._exchange.is_done

    def next_calls(self, texts: GenerationBatch) -> WantedTexts | None:
        """Judge calls that become possible with the outputs so far; None if none is new.

        Args:
            texts: The outputs of the round so far.
        """
        for calls, asked in self._asked:  # together, once all of them are answered
            if asked.are_there:
                answers = dict(zip(calls, asked.batch(), strict=True))
                self.answers |= answers
                self._exchange.take({call: read(answer) for call, answer in answers.items()})
        self._asked = [each for each in self._asked if not each[1].are_there]
        self._exchange.begin(self._judges, self._arrived(texts))
        if not (new := list(dict.fromkeys(self._exchange.next_calls()))):
            return None
        wanted = WantedTexts(self._campaign, self._round, plan_judge_calls(self._campaign, new))
        self._asked.append((new, wanted))
        return wanted

    def _arrived(self, texts: GenerationBatch) -> list[Sample]:
        """Samples of pairs that became complete since the last call."""
        places = {pair: places_of(self._campaign, pair) for pair in self._unread}
        come = [pair for pair in self._unread if all(map(texts.has, places[pair]))]
        self._unread = sorted(set(self._unread) - set(come))
        arms, examples = self._round.arms, self._round.examples
        return [
            sample
            for pair in come
            for sample in shown_of(self._campaign, arms[pair], examples[pair], texts, places[pair])
        ]


class _Begun(NamedTuple):
    """A round that engines are working on."""

    texts: WantedTexts
    judge: JudgeAhead | None
    """Prefetch of judge calls; None without a judge model, or if it is called after the whole round."""

    @property
    def is_there(self) -> bool:
        return self.texts.are_there and (self.judge is None or self.judge.is_done)


class RoundsInFlight:
    """Planned and unrecorded rounds of a best-mean campaign that engines work on.

    Outputs of any of these rounds are committed when they arrive. Judge models run on a group of outputs when
    it is complete. Always close an instance: this ends all working engines.
    """

    def __init__(self, campaign: CampaignSession) -> None:
        self._campaign = campaign
        self._stream = campaign.engines.stream(
            later=campaign.checked.judge_models, take_parts=self._store_parts
        )
        self._rounds: dict[int, _Begun] = {}  # by number
        self._asked: dict[int, tuple[int, WantedTexts, int]] = {}  # round, and which group of whom, by number

    def texts_of_first(self, rounds: Sequence[RoundRecord]) -> GenerationBatch:
        """All outputs of the first round in flight, while later ones are generated.

        The call can be repeated after an error, and then generates only outputs that are not stored.

        Raises:
            EngineDied, EngineTimeout: Transient; committed outputs stay, and so do those that engines
                generated in the meantime.
            ServedModelDiffers: A server that replaced another one serves a different model.
            LeaseLost: Another process took the campaign over.
        """
        if self._campaign.checked.spec.reuse == ONLY:  # no requests are sent, so nothing arrives later
            return have_outputs(self._campaign, rounds[0], plan_generations(self._campaign, rounds[0]))
        try:
            for round_ in rounds:
                if round_.number not in self._rounds:
                    self._begin(round_)
            first = self._rounds[rounds[0].number]
            self._stream.begin()
            for number, answers in self._stream.answered():
                self._store(number, answers)
            while not first.is_there:
                self._store(*self._stream.next_answers())
        except EngineError:
            self.finish_begun()
            raise
        del self._rounds[rounds[0].number]
        made = first.texts.batch()
        return made if first.judge is None else replace(made, calls=first.judge.answers)

    def finish_begun(self) -> None:
        """Wait for the running work of engines, and commit it.

        Other outputs are requested later, if they are needed.
        """
        self._rounds.clear()  # so that arriving outputs cause no further judge calls

        for number, answers in self._stream.finish_begun():
            self._store(number, answers)
        self._asked.clear()

    def close(self) -> None:
        """End the engines that are working."""
        self._stream.close()

    def _begin(self, round_: RoundRecord) -> None:
        planned = plan_generations(self._campaign, round_)
        wanted = WantedTexts(self._campaign, round_, planned, begun_after=round_.planned_after)
        self._rounds[round_.number] = _Begun(wanted, self._judge_of(round_))
        self._ask(round_.number, wanted)
        self._ask_judge(round_.number)

    def _judge_of(self, round_: RoundRecord) -> JudgeAhead | None:
        checked = self._campaign.checked
        if not (checked.judges_ahead and isinstance(checked, ScoredCampaign)):
            return None
        return JudgeAhead(self._campaign, checked.judges, round_)

    def _ask(self, number: int, wanted: WantedTexts) -> None:
        for place, group in enumerate(self._stream.add(wanted.groups)):
            self._asked[group] = number, wanted, place

    def _ask_judge(self, number: int) -> None:
        """Run judge models on outputs that arrived.

        If replies lead to further calls, these are made as well.
        """
        begun = self._rounds.get(number)
        while begun and begun.judge and (wanted := begun.judge.next_calls(begun.texts.batch())):
            self._ask(number, wanted)
            if not wanted.are_there:
                return

    def _store(self, group: int, answers: Sequence[Answer]) -> None:
        number, wanted, place = self._asked.pop(group)
        wanted.store(place, answers)
        self._ask_judge(number)

    def _store_parts(self, parts: Parts) -> None:
        for group, answers in parts.items():
            _, wanted, place = self._asked[group]
            wanted.store_parts({place: answers})


CAMPAIGNS = trace.get_tracer("winnow.campaign")


@contextmanager
def campaign_span(campaign: CampaignRecord) -> Generator[None, None, None]:
    """The tracing span of one run of a campaign, from the time when its lease is held."""
    attributes = {"winnow.campaign": campaign.name, "winnow.objective": campaign.objective}
    with CAMPAIGNS.start_as_current_span("campaign", attributes=attributes):
        yield


@contextmanager
def round_span(campaign: CampaignRecord, round_: RoundRecord) -> Generator[Span, None, None]:
    """The tracing span of a planned round; calls of engines are spans inside it."""
    attributes: dict[str, str | int] = {
        "winnow.campaign": campaign.name,
        "winnow.round": round_.number,
        "winnow.comparisons": len(round_.examples),
    }
    with CAMPAIGNS.start_as_current_span("round", attributes=attributes) as span:
        yield span


def tell_decision(span: Span, candidates: Sequence[Candidate], decision: Decision) -> None:
    """Set a round's decision as attributes of its tracing span."""
    if not span.is_recording():
        return
    span.set_attribute("winnow.stop", decision.stop)
    span.set_attribute("winnow.reason", decision.reason)
    if decision.best is not None:
        span.set_attribute("winnow.best", candidates[decision.best].name)


P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JudgedRound:
    """A round whose outputs are stored and judged, before its decision."""

    round_: RoundRecord
    texts: GenerationBatch
    comparisons: Sequence[NewComparison]


class Observer(Protocol):
    """Receives each round; it can only stop the rounds and exclude candidates."""

    @property
    def wants_to_stop(self) -> bool:
        """Whether to end before the next round."""
        return False

    def round_judged(self, campaign: CampaignSession, judged: JudgedRound) -> Collection[int]:
        """Receive a judged round before its decision; return the arms to exclude."""
        return ()

    def round_done(self, campaign: CampaignSession, round_: RoundRecord, decision: Decision) -> None:
        """Receive a round after it was recorded."""
        return


class StepCall(Protocol):
    """Interface of a function that runs one step of a round, and returns its result."""

    def __call__(self, step: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the step."""
        ...


ASKS_ENGINES = frozenset({generate_round, judge_round})
"""Steps that are repeated after an engine died.
They generate only outputs that are not stored.
"""


def plainly(step: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a step once; see `StepCall`."""
    return step(*args, **kwargs)


def restarting(times: int) -> StepCall:
    """Create a `StepCall` that repeats steps of `ASKS_ENGINES` after an engine died.

    Args:
        times: Maximum number of repetitions of each step.
    """

    def call(step: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(times if step in ASKS_ENGINES else 0):
            try:
                return step(*args, **kwargs)
            except (EngineDied, EngineTimeout):
                continue
        return step(*args, **kwargs)

    return call


@dataclass(frozen=True, slots=True)
class FinishedRound:
    """Results of a recorded round."""

    texts: GenerationBatch
    comparisons: Sequence[NewComparison]
    decision: Decision


def finish_round(
    campaign: CampaignSession,
    round_: RoundRecord,
    call: StepCall = plainly,
    *,
    texts: Callable[[], GenerationBatch] | None = None,
    judged: Callable[[JudgedRound], None] | None = None,
) -> FinishedRound | None:
    """Generate, judge, decide and record a planned round.

    Args:
        campaign: The running campaign.
        round_: The first round that is planned and not recorded.
        call: Calls each step.
        texts: Generates the outputs of the round; None for `generate_round`.
        judged: Called when the round is judged, before its decision.

    Returns:
        None if the round waits for annotators; their tasks are stored.

    Raises: The errors of `generate_round`, `judge_round`, `decide_round` and `record_round`.
    """
    with round_span(campaign.record, round_) as span:
        made = call(generate_round, campaign, round_) if texts is None else texts()
        if (annotators := annotators_of(campaign)) is not None and annotators.ask(round_, made):
            return None
        comparisons = call(judge_round, campaign, round_, made)
        if judged is not None:
            judged(JudgedRound(round_, made, comparisons))
        decision = call(decide_round, campaign, round_, comparisons)
        call(record_round, campaign, round_, comparisons, decision)
        tell_decision(span, campaign.checked.candidates, decision)
    return FinishedRound(made, comparisons, decision)


class Runner:
    """Run a campaign's rounds in planned order, several at once with lookahead.

    Leaving this context manager closes all engines that still work on later rounds. The campaign's selector
    must have observed all finished rounds. Observers receive each round that is recorded, and any of them can
    end the stream before the next one.
    """

    def __init__(self, campaign: CampaignSession, *observers: Observer) -> None:
        self._campaign, self._observers = campaign, observers
        self._in_flight = RoundsInFlight(campaign) if campaign.checked.runs_ahead else None
        self._may_begin: bool | None = None  # unknown at first, and after an error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._in_flight is not None:
            self._in_flight.close()

    @property
    def wants_to_stop(self) -> bool:
        """Whether an observer requests an end before the next round."""
        return any(each.wants_to_stop for each in self._observers)

    def run(self, call: StepCall = plainly) -> None:
        """Run rounds until the campaign ends, waits for annotators, or is stopped."""
        self.run_for(math.inf, call)
        self.finish_begun()

    def run_for(self, seconds: float, call: StepCall = plainly) -> tuple[bool, float]:
        """Run rounds for some seconds; return whether they ended, and seconds per round.

        The rounds end if the campaign has ended, or waits for annotators. The call can be repeated after any
        error.
        """
        started = time.monotonic()
        done, elapsed, ended = 0, 0.0, False
        while elapsed < seconds and not (ended or self.wants_to_stop):
            ended = self.run_round(call)
            done, elapsed = done + 1, time.monotonic() - started
        return ended, elapsed / max(done, 1)

    def run_round(self, call: StepCall = plainly) -> bool:
        """Plan rounds and finish the first one; return whether no other can follow.

        This is the case if the campaign has ended, or if the round waits for annotators.
        """
        campaign, begins, self._may_begin = self._campaign, self._may_begin, None
        if begins is None:
            begins = self._goes_on(campaign.selector.decision())
        planned = call(plan_rounds, campaign, begins=begins)
        if not planned or awaits_humans(campaign, planned[0]):
            return True
        if campaign.is_retry(planned[0]) and campaign.is_overspent:
            return True
        at_once = planned[: campaign.checked.lookahead + 1]  # retries are planned all at once
        ahead = None if self._in_flight is None else partial(self._in_flight.texts_of_first, at_once)
        found = finish_round(campaign, planned[0], call, texts=ahead, judged=self._judged)
        if found is None:
            return True
        for each in self._observers:
            each.round_done(campaign, planned[0], found.decision)
        self._may_begin = self._goes_on(found.decision)
        return not self._may_begin and len(planned) == 1

    def _judged(self, judged: JudgedRound) -> None:
        """Pass a round to observers before its decision.

        The candidates that they return are excluded.
        """
        found = [each.round_judged(self._campaign, judged) for each in self._observers]
        if arms := set().union(*found):
            self._campaign.leave_out(judged.round_, arms)

    def finish_begun(self) -> None:
        """Wait for engines that work on later rounds, and store their outputs.

        `resume` continues these rounds.
        """
        if self._in_flight is not None:
            self._in_flight.finish_begun()

    def _goes_on(self, decision: Decision) -> bool:
        """Whether further rounds can begin after a decision."""
        return not (decision.stop or self._campaign.is_overspent)
