"""Showing a campaign while it runs: a live table on a terminal, one line a round elsewhere, or a log."""

from collections.abc import Generator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.live import Live

from winnow.flows.run.artifacts import Artifacts, server_is_the_users
from winnow.flows.run.callbacks import Callback, CallbackList, NullCallback
from winnow.flows.run.live_display import LiveProgress
from winnow.flows.run.log_format import json_context
from winnow.flows.run.logging_callback import RoundLog
from winnow.flows.run.progress_lines import PlainProgress
from winnow.flows.run.signals import Interrupts


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
