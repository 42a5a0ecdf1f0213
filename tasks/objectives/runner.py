"""Run a campaign's rounds as one stream: plan, generate, judge, decide and record each, until the end."""

import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ParamSpec, Protocol, Self, TypeVar

from winnow.algorithms.decision import Decision
from winnow.storage.records.record_types import NewComparison, RoundRecord
from winnow.tasks.campaign.missing_texts import GenerationBatch
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.campaign.tracing import round_span, tell_decision
from winnow.tasks.engines.errors import EngineDied, EngineTimeout
from winnow.tasks.objectives.protocol import annotators_of
from winnow.tasks.objectives.round_functions import awaits_humans, generate_round, judge_round
from winnow.tasks.rounds.generate_ahead import RoundsInFlight
from winnow.tasks.rounds.plan import plan_rounds
from winnow.tasks.rounds.record import decide_round, record_round

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JudgedRound:
    """A round whose outputs are stored and judged, and from which nothing was decided yet."""

    round_: RoundRecord
    texts: GenerationBatch
    comparisons: Sequence[NewComparison]


class Observer(Protocol):
    """Sees each round. It changes nothing but when the rounds stop, and which candidates are left out."""

    @property
    def wants_to_stop(self) -> bool:
        """Whether to end before the next round."""
        ...

    def round_judged(self, campaign: CampaignSession, judged: JudgedRound) -> Collection[int]:
        """A round was judged; return the arms to leave out from here on, before any is eliminated by it."""
        ...

    def round_done(self, campaign: CampaignSession, round_: RoundRecord, decision: Decision) -> None:
        """Called after a round was recorded."""
        ...


class StepCall(Protocol):
    """Interface of a function that runs one step of a round, and returns its result."""

    def __call__(self, step: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the step."""
        ...


ASKS_ENGINES = frozenset({generate_round, judge_round})
"""Steps that are repeated after an engine died: they generate only what is not stored."""


def plainly(step: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a step once; see `StepCall`."""
    return step(*args, **kwargs)


def restarting(times: int) -> StepCall:
    """Repeat each step of `ASKS_ENGINES` up to this many times after an engine died; see `StepCall`."""

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
        judged: Called once the round is judged, before anything is decided.

    Returns:
        None when the round waits for annotators; their tasks are stored.

    Raises: See `generate_round`, `judge_round`, `decide_round` and `record_round`.
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
    """Run a campaign's rounds in planned order, with as many in flight as its lookahead allows.

    Leaving this context manager closes all engines that still work on later rounds.

    Args:
        campaign: The running campaign, whose selector has observed all finished rounds.
        observers: See each round that is recorded; any of them may end the stream before the next one.
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
        """Whether an observer wants to end before the next round."""
        return any(each.wants_to_stop for each in self._observers)

    def run(self, call: StepCall = plainly) -> None:
        """Run rounds until the campaign ends, waits for annotators, or is stopped."""
        self.run_for(math.inf, call)
        self.finish_begun()

    def run_for(self, seconds: float, call: StepCall = plainly) -> tuple[bool, float]:
        """Run rounds for some seconds; return whether the campaign ended or waits, and seconds per round.

        Safe to call again after any error.
        """
        started = time.monotonic()
        done, elapsed, ended = 0, 0.0, False
        while elapsed < seconds and not (ended or self.wants_to_stop):
            ended = self.run_round(call)
            done, elapsed = done + 1, time.monotonic() - started
        return ended, elapsed / max(done, 1)

    def run_round(self, call: StepCall = plainly) -> bool:
        """Plan new rounds and finish the first round in flight; return whether no other can follow now.

        That is the case if the campaign has ended, or if the round waits for annotators.
        """
        campaign, begins, self._may_begin = self._campaign, self._may_begin, None
        if begins is None:
            begins = self._goes_on(campaign.selector.decision())
        planned = call(plan_rounds, campaign, begins=begins)
        if not planned or awaits_humans(campaign, planned[0]):
            return True
        ahead = None if self._in_flight is None else partial(self._in_flight.texts_of_first, planned)
        found = finish_round(campaign, planned[0], call, texts=ahead, judged=self._judged)
        if found is None:
            return True
        for each in self._observers:
            each.round_done(campaign, planned[0], found.decision)
        self._may_begin = self._goes_on(found.decision)
        return not self._may_begin and len(planned) == 1

    def _judged(self, judged: JudgedRound) -> None:
        """Show observers a round before it is decided, and leave out the candidates that they return."""
        found = [each.round_judged(self._campaign, judged) for each in self._observers]
        if arms := set().union(*found):
            self._campaign.leave_out(judged.round_, arms)

    def finish_begun(self) -> None:
        """Wait for engines working on later rounds, and store their outputs; the rounds wait for `resume`."""
        if self._in_flight is not None:
            self._in_flight.finish_begun()

    def _goes_on(self, decision: Decision) -> bool:
        """Whether further rounds may begin after a decision."""
        return not (decision.stop or self._campaign.is_overspent)
