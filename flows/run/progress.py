"""Show the progress of a running campaign: a live table on a terminal, else a line per round, or a log.

The live table shows the budget spent, the leading candidates and loading models.
"""

import sys
import time
from collections.abc import Callable, Collection, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

import numpy as np
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from winnow.algorithms.decision import Decision
from winnow.flows.reports.output import can_ask, tell
from winnow.flows.reports.rows.text_table import table_lines
from winnow.flows.run.artifacts import Artifacts, server_is_the_users
from winnow.flows.run.callbacks import Callback, CallbackList, NullCallback
from winnow.flows.run.first_look import ask_about, not_approved
from winnow.flows.run.log_format import json_context
from winnow.flows.run.logging_callback import RoundLog
from winnow.flows.run.signals import Interrupts
from winnow.storage.objectives import traits_of
from winnow.storage.records.record_types import RoundRecord
from winnow.tasks.answer.sentences.excess import excess_words, whom_words
from winnow.tasks.campaign.contacts import canary_words
from winnow.tasks.campaign.replay import can_leave_out
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.objectives.runner import JudgedRound
from winnow.tasks.queries.views import Cell
from winnow.tasks.queries.warnings.campaign_warnings import EarlyWarnings
from winnow.tasks.queries.warnings.first_outputs import FirstLook, FirstOutputs
from winnow.tasks.spec.selector_traits import GATE, TRUSTS_A_MEAN
from winnow.tasks.spec.stored_spec import estimated_value, grouping_of
from winnow.tasks.text.phrases import amount, ends, percentage, rounded

IN_QUESTION = "active"
UNFIT = {"infeasible", "unfit"}


class Tally:
    """Counts for a progress display: comparisons so far, and their rate; also finds new warnings."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts
        self.comparisons = 0
        self._comparisons_at_start = 0
        self._campaign: CampaignSession | None = None
        self._stalled_at_start = 0.0
        self._started = time.monotonic()
        self._early_warnings = EarlyWarnings()
        self._first_outputs = FirstOutputs()

    @property
    def wants_to_stop(self) -> bool:
        """See `Callback`."""
        return self._interrupts.asked

    def begin(self, campaign: CampaignSession) -> None:
        """Start counting; a resumed campaign begins with its stored counts.

        Time is counted from the first request for outputs, which may be before this call.
        """
        self.comparisons = self._comparisons_at_start = campaign.allowance.answered
        self._campaign, self._stalled_at_start = campaign, campaign.engines.stalled
        early = campaign.head_start
        self._started = time.monotonic() if early is None else early.began

    def first_look(self, campaign: CampaignSession, judged: JudgedRound) -> FirstLook:
        """Candidates whose first outputs look wrong after this round; each candidate is returned once."""
        found = self._first_outputs.look(campaign, judged)
        self._early_warnings.were_told(found.warnings)
        return found

    def count_round(self, campaign: CampaignSession, decision: Decision) -> list[str]:
        """Count a round; return new warnings as lines."""
        self.comparisons = campaign.allowance.answered
        found = self._early_warnings.new(
            campaign.database,
            campaign.record,
            comparisons=self.comparisons,
            stop=decision.stop,
            statuses=decision.status,
        )
        return [f"check: {warning.sentence}" for warning in found]

    def ended(self) -> None:
        """See `Callback`; prints nothing, because the command prints the answer."""

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning of the run."""
        return time.monotonic() - self._started

    @property
    def stalled(self) -> float:
        """Seconds of the elapsed time in which models were loading and all engines were idle."""
        return 0.0 if self._campaign is None else self._campaign.engines.stalled - self._stalled_at_start

    @property
    def rate(self) -> float:
        """Comparisons per second in this run, without `stalled` time."""
        return (self.comparisons - self._comparisons_at_start) / max(self.elapsed - self.stalled, 1e-9)

    @property
    def pace(self) -> str:
        """The rate as text, with decimals if it is below 10 per second."""
        return f"{self.rate:.0f}/s" if self.rate >= 10.0 else f"{self.rate:.2g}/s"

    def line(self, campaign: CampaignSession, round_: RoundRecord, decision: Decision) -> str:
        """The status of the campaign in one line."""
        most = campaign.checked.most
        spent = (
            f"{amount(self.comparisons)} of {amount(most)} comparisons "
            f"({percentage(self.comparisons / campaign.checked.grid)} of the grid)"
            if campaign.labels_used is None
            else f"{amount(self.comparisons)} comparisons, {campaign.labels_used} of {amount(most)} labels"
        )
        spent += "".join(f", {each}" for each in campaign.other_budgets)
        return (
            f"round {round_.number + 1}: {spent}, {best_so_far(campaign, decision)}, "
            f"{self.pace}, {self.elapsed:.0f} s"
        )


class PlainProgress(Tally):
    """Progress display with one line per round."""

    def begun(self, campaign: CampaignSession) -> None:
        """See `Callback`."""
        self.begin(campaign)
        checked = campaign.checked
        tell(
            f"campaign {campaign.record.name}: {len(checked.candidates)} candidates x "
            f"{amount(len(checked.dataset.examples))} examples, {amount(self.comparisons)} comparisons stored"
        )
        if (canaries := canary_words(checked)) is not None:
            tell(f"first requests to served models: {canaries}")

    def round_judged(self, campaign: CampaignSession, judged: JudgedRound) -> Collection[int]:
        """See `Callback`."""
        for warning in self.first_look(campaign, judged).warnings:
            tell(f"check: {warning.sentence}")
        return ()

    def round_done(self, campaign: CampaignSession, round_: RoundRecord, decision: Decision) -> None:
        """See `Callback`."""
        to_check = self.count_round(campaign, decision)
        tell(self.line(campaign, round_, decision))
        for sentence in to_check:
            tell(sentence)


def best_so_far(campaign: CampaignSession, decision: Decision) -> str:
    """Clause on the leader; for gates, on the number of undecided candidates."""
    spec = campaign.checked.spec
    if spec.selector.name == GATE:
        return f"{decision.status.count(IN_QUESTION)} open against {spec.selector.params['baseline']}"
    certifies = traits_of(spec.objective).measures_risk
    trusts_a_mean = spec.selector.name in TRUSTS_A_MEAN
    if decision.best is None:
        is_unfit = {*decision.status} <= UNFIT
        none = "no candidate meets the constraints" if is_unfit else "no best candidate yet"
        return "nothing certified yet" if certifies else none
    arm, word = decision.best, "leading" if spec.stopping.epsilon else "best"
    if certifies and not trusts_a_mean:
        word = "certified"
    name = campaign.checked.candidates[arm].name
    if certifies and spec.certify is not None and name == spec.certify.baseline:
        return f"{word} {name}, the baseline itself"
    return f"{word} {name} {number(decision.estimates[arm])} {interval(decision, arm)}".rstrip()


def interval(decision: Decision, arm: int) -> str:
    """An arm's confidence interval as text; empty if the arm has none."""
    if np.isnan(decision.lower[arm]):
        return ""
    return "[{}, {}]".format(*ends(float(decision.lower[arm]), float(decision.upper[arm])))


def number(value: float) -> str:
    """A score as text; a dash for NaN."""
    return "-" if np.isnan(value) else rounded(value)


@contextmanager
def progress_display(
    interrupts: Interrupts, *, shown: bool = True, recorded: bool = True
) -> Generator[Callback, None, None]:
    """Yield the callback that shows progress, on standard error and on Prefect's pages.

    Args:
        interrupts: Requests to stop.
        shown: Whether progress is written to standard error.
        recorded: Whether Prefect records the run. If so, and the server is the user's, its pages show the
            progress, too.
    """
    with _on_standard_error(interrupts) if shown else nullcontext(SilentProgress(interrupts)) as display:
        yield CallbackList(display, Artifacts()) if recorded and server_is_the_users() else display


@contextmanager
def _on_standard_error(interrupts: Interrupts) -> Generator[Callback, None, None]:
    """Yield the callback that suits standard error: JSON log, live table on a terminal, or plain lines."""
    console = Console(stderr=True, highlight=False)
    if (context := json_context()) is not None:
        yield RoundLog(interrupts, context)
    elif not console.is_terminal:
        yield PlainProgress(interrupts)
    else:
        live = Live(console=console, refresh_per_second=4)
        display = LiveProgress(interrupts, partial(_without, live))
        live.update(display)
        with live:
            yield display


@contextmanager
def _without(live: Live) -> Generator[None, None, None]:
    """Suspend the live display while the block writes to the terminal."""
    live.stop()
    try:
        yield
    finally:
        live.start()


class SilentProgress(NullCallback):
    """A callback that shows nothing, and stops the run on request."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts

    @property
    def wants_to_stop(self) -> bool:
        """See `Callback`."""
        return self._interrupts.asked


TOP = 10
"""Maximum number of candidates in the live table."""
BAR_WIDTH = 30
FEWEST_LEFT = 2
"""Minimum number of candidates that must remain if suspects are removed."""


class LiveProgress(Tally):
    """Live display of a campaign on a terminal.

    Args:
        interrupts: Requests to stop.
        aside: Context manager that suspends the display while a block writes to the terminal.
    """

    def __init__(
        self, interrupts: Interrupts, aside: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        super().__init__(interrupts)
        self._aside = aside
        self._has_asked = False
        self._decision: Decision | None = None
        self._counts = np.zeros(0, dtype=np.int64)  # (K,) comparisons by arm in this process
        self._to_check: list[str] = []

    def begun(self, campaign: CampaignSession) -> None:
        """See `Callback`."""
        self.begin(campaign)
        self._counts = np.zeros(len(campaign.checked.candidates), dtype=np.int64)

    def round_judged(self, campaign: CampaignSession, judged: JudgedRound) -> Collection[int]:
        """See `Callback`."""
        found = self.first_look(campaign, judged)
        self._to_check += [f"check: {warning.sentence}" for warning in found.warnings]
        suspects = not_approved(found.suspects)
        if not suspects or self._has_asked or not can_ask(sys.stderr):
            return ()
        self._has_asked = True
        statuses = campaign.selector.decision().status
        left = statuses.count(IN_QUESTION) - len(suspects)
        with self._aside():
            reply = ask_about(
                suspects,
                may_leave_out=left >= FEWEST_LEFT
                and can_leave_out(campaign.selector)
                and not campaign.checked.spares,
                is_stopped=lambda: self._interrupts.asked,
            )
        if reply == "stop":
            self._interrupts.ask()
        return [each.arm for each in suspects] if reply == "leave out" else ()

    def round_done(self, campaign: CampaignSession, round_: RoundRecord, decision: Decision) -> None:
        """See `Callback`."""
        self._to_check += self.count_round(campaign, decision)
        np.add.at(self._counts, np.asarray(round_.arms).ravel(), 1)
        self._decision = decision

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        campaign, decision = self._campaign, self._decision
        if campaign is None:
            yield Text("starting Prefect and the first engine ...")
            return
        made = sum(map(len, list(campaign.texts_in_use.values())))
        yield self._heading(campaign)
        yield self._bar(campaign)
        yield from _loading(campaign)
        yield from _canaries(campaign)
        if campaign.n_in_flight > 1:
            yield Text(f"{campaign.n_in_flight} rounds in flight")
        if made:
            yield Text(f"{amount(made)} output{'s' * (made != 1)} of the rounds in flight")
        yield from (Text(sentence, style="yellow") for sentence in self._to_check)
        if decision is not None:
            yield Text(_race(campaign, decision))
            yield from self._table(campaign, decision, options.max_width)

    def _heading(self, campaign: CampaignSession) -> Text:
        spec = campaign.checked.spec
        delta = "" if spec.stopping.delta is None else f", delta {spec.stopping.delta:g}"
        return Text(f"{campaign.record.name}: {spec.objective} by {spec.selector.name}{delta}", style="bold")

    def _bar(self, campaign: CampaignSession) -> Table:
        limit, labels = campaign.checked.most, campaign.labels_used
        spent, what = (self.comparisons, "comparisons") if labels is None else (labels, "labels")
        row = Table.grid(padding=(0, 1))
        row.add_row(
            ProgressBar(total=limit, completed=min(spent, limit), width=BAR_WIDTH),
            Text(f"{amount(spent)} of at most {amount(limit)} {what}"),
            Text(f"{self.pace}{self._left(limit - spent, labels is None)}"),
        )
        return row

    def _left(self, left: int, counts_comparisons: bool) -> str:
        """Clause on the time for the rest of the budget at the current rate; empty if it is unknown.

        The campaign may end earlier.
        """
        has_stopped = self._decision is not None and self._decision.stop
        if not counts_comparisons or self.rate <= 0.0 or left <= 0 or has_stopped:
            return ""
        return f", at this rate at most {duration(left / self.rate)} more"

    def _table(self, campaign: CampaignSession, decision: Decision, width: int) -> list[Text]:
        objective = campaign.checked.spec.objective
        value = estimated_value(objective, grouping_of(campaign.record.spec))
        is_risk = traits_of(objective).measures_risk
        keys = np.nan_to_num(decision.estimates, nan=np.inf if is_risk else -np.inf)
        arms = np.argsort(keys if is_risk else -keys, kind="stable")[:TOP].tolist()
        rows: list[dict[str, Cell]] = [
            {
                "candidate": campaign.checked.candidates[arm].name,
                value: None if np.isnan(decision.estimates[arm]) else decision.estimates[arm],
                "interval": interval(decision, arm) or None,
                "now": f"+{amount(int(self._counts[arm]))}" if self._counts[arm] else None,
                "status": None if decision.status[arm] == IN_QUESTION else decision.status[arm],
            }
            for arm in arms
        ]
        heading, *lines = table_lines(rows, width)
        styles = ["green" if arm == decision.best else "" for arm in arms]
        return [Text(heading, style="bold"), *map(Text, lines, [*styles, *[""] * (len(lines) - len(arms))])]


def _loading(campaign: CampaignSession) -> list[Text]:
    """A line for each model that is loading or waking from sleep."""
    under_way = campaign.engines.loading
    return [
        Text(f"loading {name}, {duration(seconds)}", style="yellow") for name, seconds in under_way.items()
    ]


def _canaries(campaign: CampaignSession) -> list[Text]:
    """A line while served models have not answered their canary prompts."""
    canaries = None if campaign.contacts.by_name or campaign.known else canary_words(campaign.checked)
    return [] if canaries is None else [Text(f"first requests to served models: {canaries}", style="yellow")]


def _race(campaign: CampaignSession, decision: Decision) -> str:
    """Line on the number of candidates that can still be the best, and on the leader's margin."""
    left, all_ = decision.status.count(IN_QUESTION), len(decision.status)
    if not left:
        return f"0 of {all_} candidates in question"
    return f"{left} of {all_} candidates in question{_gap(campaign, decision)}"


def _gap(campaign: CampaignSession, decision: Decision) -> str:
    """Clause on how much better another candidate can be; empty without a bound above 0."""
    if (proven := decision.excess) is not None:
        spec, groups = campaign.record.spec, grouping_of(campaign.record.spec)
        said = excess_words(
            campaign.checked.candidates[proven.over].name,
            proven.most,
            proven.delta,
            whom=whom_words(
                has_constraints=bool(spec.get("constraints")), has_dropped="dropped" in decision.status
            ),
            top_m=spec["selector"]["params"].get("top_m", 1),
            value=None if groups is None else estimated_value(campaign.record.objective, groups),
        )
        return f"; {said}"
    found = decision.differences
    if found is None or found.against != decision.best:
        return ""
    arms = np.flatnonzero([status == IN_QUESTION for status in decision.status])
    reach = np.nanmax(found.upper[arms[arms != found.against]], initial=-np.inf)
    if reach <= 0.0:
        return ""
    enough = float(campaign.checked.spec.stopping.epsilon)
    _, most = ends(0.0, float(reach))
    return f"; none of them is ahead by more than {most}, decided at {enough:g} or earlier"


def duration(seconds: float) -> str:
    """A duration as text, in seconds, minutes or hours."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"
