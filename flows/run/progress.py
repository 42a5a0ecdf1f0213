"""Showing a campaign while it runs: a live table on a terminal, one line a round elsewhere, or a log."""

import time
from collections.abc import Generator
from contextlib import contextmanager, nullcontext

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from winnow.algorithms.decision import Decision
from winnow.flows.reports.output import tell
from winnow.flows.run.artifacts import Artifacts, server_is_the_users
from winnow.flows.run.callbacks import Callback, CallbackList, NullCallback
from winnow.flows.run.log_format import json_context
from winnow.flows.run.logging_callback import RoundLog
from winnow.flows.run.signals import Interrupts
from winnow.storage.records.values import RoundRecord
from winnow.tasks.campaign.session import CampaignSession

TOP = 10
"""Candidates shown in the live table."""


@contextmanager
def progress_display(interrupts: Interrupts, *, shown: bool = True) -> Generator[Callback, None, None]:
    """The watcher that suits standard error, and one for Prefect's pages where somebody can see them.

    Args:
        interrupts: Who may ask to stop.
        shown: Whether anything is written to standard error.
    """
    with _on_standard_error(interrupts) if shown else nullcontext(SilentProgress(interrupts)) as display:
        yield CallbackList(display, Artifacts()) if server_is_the_users() else display


@contextmanager
def _on_standard_error(interrupts: Interrupts) -> Generator[Callback, None, None]:
    """What suits it: a log, a terminal, or something that keeps lines."""
    console = Console(stderr=True, highlight=False)
    if (context := json_context()) is not None:
        yield RoundLog(interrupts, context)
    elif not console.is_terminal:
        yield PlainProgress(interrupts)
    else:
        with Live(
            Text("starting Prefect and the first engine ..."), console=console, refresh_per_second=4
        ) as live:
            yield LiveProgress(interrupts, live)


class SilentProgress(NullCallback):
    """Shows nothing, and stops where somebody asks to."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts

    @property
    def wants_to_stop(self) -> bool:
        """See `Callback`."""
        return self._interrupts.asked


class Tally:
    """What a progress display counts: comparisons that had their texts so far, and how fast they come."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts
        self.told = 0
        self._told_at_start = 0
        self._started = time.monotonic()

    @property
    def wants_to_stop(self) -> bool:
        """See `Callback`."""
        return self._interrupts.asked

    def begin(self, campaign: CampaignSession) -> None:
        """Take up the counts of a campaign that may have been begun before."""
        self.told = self._told_at_start = campaign.allowance.answered
        self._started = time.monotonic()

    def ended(self) -> None:
        """See `Callback`: the answer is printed by others."""

    def line(self, campaign: CampaignSession, round_: RoundRecord, decision: Decision) -> str:
        """Where the campaign stands, in one line."""
        budget = campaign.checked.spec.own_budget or campaign.checked.grid
        elapsed = time.monotonic() - self._started
        rate = (self.told - self._told_at_start) / max(elapsed, 1e-9)
        spent = (
            f"{self.told}/{budget} comparisons ({self.told / campaign.checked.grid:.1%} of the grid)"
            if campaign.labels_used is None
            else f"{self.told} comparisons, {campaign.labels_used}/{budget} labels"
        )
        spent += "".join(f", {each}" for each in campaign.other_budgets)
        return (
            f"round {round_.number + 1}: {spent}, {_best(campaign, decision)}, {rate:.0f}/s, {elapsed:.0f} s"
        )


class PlainProgress(Tally):
    """One line a round."""

    def begun(self, campaign: CampaignSession) -> None:
        """See `Callback`."""
        self.begin(campaign)
        checked = campaign.checked
        tell(
            f"campaign {campaign.record.name}: {len(checked.candidates)} candidates x "
            f"{len(checked.dataset.examples)} examples, {self.told} comparisons stored"
        )

    def round_done(self, campaign: CampaignSession, round_: RoundRecord, decision: Decision) -> None:
        """See `Callback`."""
        self.told = campaign.allowance.answered
        tell(self.line(campaign, round_, decision))


class LiveProgress(Tally):
    """The leaders, redrawn after every round."""

    def __init__(self, interrupts: Interrupts, live: Live) -> None:
        super().__init__(interrupts)
        self._live = live
        self._counts = np.zeros(0, dtype=np.int64)  # (K,) comparisons by arm since this process began

    def begun(self, campaign: CampaignSession) -> None:
        """See `Callback`."""
        self.begin(campaign)
        self._counts = np.zeros(len(campaign.checked.candidates), dtype=np.int64)
        self._live.update(Text(f"{campaign.record.name}: loading the first model ..."))

    def round_done(self, campaign: CampaignSession, round_: RoundRecord, decision: Decision) -> None:
        """See `Callback`."""
        self.told = campaign.allowance.answered
        np.add.at(self._counts, np.asarray(round_.arms).ravel(), 1)
        line = Text(f"{campaign.record.name}  {self.line(campaign, round_, decision)}")
        self._live.update(Group(line, self._table(campaign, decision)))

    def _table(self, campaign: CampaignSession, decision: Decision) -> Table:
        table = Table(box=None, header_style="bold")
        for heading in ("candidate", "mean", "interval", "now"):
            table.add_column(heading, justify="left" if heading == "candidate" else "right")
        order = np.argsort(-np.nan_to_num(decision.estimates, nan=-np.inf), kind="stable")
        for arm in order[:TOP]:
            table.add_row(
                Text(campaign.checked.candidates[arm].name, style="bold" if arm == decision.best else ""),
                _number(decision.estimates[arm]),
                _interval(decision, arm).replace("[", r"\["),
                f"+{self._counts[arm]}" if self._counts[arm] else "",
            )
        return table


def _best(campaign: CampaignSession, decision: Decision) -> str:
    certifies = campaign.checked.spec.objective == "certify"
    if decision.best is None:
        return "nothing certified yet" if certifies else "nothing known yet"
    arm, word = decision.best, "certified" if certifies else "best"
    name = campaign.checked.candidates[arm].name
    return f"{word} {name} {_number(decision.estimates[arm])} {_interval(decision, arm)}".rstrip()


def _interval(decision: Decision, arm: int) -> str:
    if np.isnan(decision.lower[arm]):
        return ""
    return f"[{_number(decision.lower[arm])}, {_number(decision.upper[arm])}]"


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"
