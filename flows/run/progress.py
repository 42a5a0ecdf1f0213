"""Showing a campaign while it runs: a live table on a terminal, one line a round elsewhere, or a log."""

import time
from collections.abc import Generator
from contextlib import contextmanager, nullcontext

import numpy as np
from rich.console import Console
from rich.live import Live

from winnow.algorithms.decision import Decision
from winnow.flows.reports.output import tell
from winnow.flows.run.artifacts import Artifacts, server_is_the_users
from winnow.flows.run.callbacks import Callback, CallbackList, NullCallback
from winnow.flows.run.live_display import LiveProgress
from winnow.flows.run.log_format import json_context
from winnow.flows.run.logging_callback import RoundLog
from winnow.flows.run.signals import Interrupts
from winnow.storage.records.values import RoundRecord
from winnow.tasks.campaign.session import CampaignSession


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
        display = LiveProgress(interrupts)
        with Live(display, console=console, refresh_per_second=4):
            yield display


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

    @property
    def elapsed(self) -> float:
        """Seconds since the campaign was taken up."""
        return time.monotonic() - self._started

    @property
    def rate(self) -> float:
        """Comparisons a second since then."""
        return (self.told - self._told_at_start) / max(self.elapsed, 1e-9)

    def line(self, campaign: CampaignSession, round_: RoundRecord, decision: Decision) -> str:
        """Where the campaign stands, in one line."""
        budget = limit_of(campaign)
        spent = (
            f"{self.told}/{budget} comparisons ({self.told / campaign.checked.grid:.1%} of the grid)"
            if campaign.labels_used is None
            else f"{self.told} comparisons, {campaign.labels_used}/{budget} labels"
        )
        spent += "".join(f", {each}" for each in campaign.other_budgets)
        return (
            f"round {round_.number + 1}: {spent}, {best_so_far(campaign, decision)}, "
            f"{self.rate:.0f}/s, {self.elapsed:.0f} s"
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


def limit_of(campaign: CampaignSession) -> int:
    """Most comparisons, or labels where it certifies, that a campaign may take."""
    return campaign.checked.spec.own_budget or campaign.checked.grid


def best_so_far(campaign: CampaignSession, decision: Decision) -> str:
    """Who leads, in a few words."""
    certifies = campaign.checked.spec.objective == "certify"
    if decision.best is None:
        return "nothing certified yet" if certifies else "nothing known yet"
    arm, word = decision.best, "certified" if certifies else "best"
    name = campaign.checked.candidates[arm].name
    return f"{word} {name} {number(decision.estimates[arm])} {interval(decision, arm)}".rstrip()


def interval(decision: Decision, arm: int) -> str:
    """An arm's interval; empty where there is none."""
    if np.isnan(decision.lower[arm]):
        return ""
    return f"[{number(decision.lower[arm])}, {number(decision.upper[arm])}]"


def number(value: float) -> str:
    """A score with three decimals; a dash where there is none."""
    return "-" if np.isnan(value) else f"{value:.3f}"
