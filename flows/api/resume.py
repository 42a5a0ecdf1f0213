"""Runs of a campaign that a program begins or resumes, to the end or an interrupt, wherever it stands."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

from winnow.flows.api.call_checks import has_running_loop
from winnow.flows.prefect_support.environment import settle_environment

if TYPE_CHECKING:
    from winnow.flows.run.signals import Interrupts
    from winnow.flows.run.trust_prompt import Trust
    from winnow.tasks.campaign.campaign import Campaign

T = TypeVar("T")

REMEDY = "undo the change, or give the campaign another name; stored outputs are reused"
"""The remedy for a program whose campaign began with another definition."""


def interruptible(call: "Callable[[Interrupts], T]") -> T:
    """Call with the requests to stop by Ctrl-C; in a new thread where this one has a running event loop."""
    settle_environment()
    from winnow.flows.run.signals import Interrupts

    interrupts = Interrupts()
    return _in_a_thread(call, interrupts) if has_running_loop() else call(interrupts)


def resume(storage: str, name: str, changes: Mapping[str, object], *, progress: bool, trust: bool) -> None:
    """Go on with a stored campaign; see `Campaign.resume`."""
    from winnow.tasks.setup.written_files import written_changes

    overrides = written_changes(changes)
    interruptible(
        lambda interrupts: _resume(storage, name, overrides, interrupts, progress, allowed(everything=trust))
    )


def _resume(
    storage: str, name: str, overrides: list[str], interrupts: "Interrupts", progress: bool, trust: "Trust"
) -> None:
    from winnow.flows.run.launch import change_stored_campaign, require_resumable
    from winnow.tasks.campaign.campaign import opened_campaign

    with opened_campaign(storage, name) as campaign:
        if overrides:
            with remedied():
                change_stored_campaign(campaign, overrides, trust)
        to_the_end(campaign, interrupts, progress, lambda: require_resumable(campaign, trust))


def to_the_end(
    campaign: "Campaign", interrupts: "Interrupts", progress: bool, check: Callable[[], None]
) -> None:
    """Run a stored campaign, unless it has ended; `check` may refuse to.

    Raises:
        KeyboardInterrupt: If it was interrupted; what it had is stored.
    """
    from winnow.flows.notify.outbox import delivering
    from winnow.flows.reports.summary import status_now
    from winnow.flows.run.launch import run_to_the_end

    if status_now(campaign).is_settled:
        return
    check()
    with delivering():
        run_to_the_end(campaign, interrupts, shown=progress)
    if interrupts.asked:
        raise KeyboardInterrupt


@contextmanager
def remedied() -> Iterator[None]:
    """Turn the refusal of a changed definition into one whose remedy a program can use."""
    from winnow.tasks.setup.identity import IdentityChanged

    try:
        yield
    except IdentityChanged as error:
        raise IdentityChanged(error.what, REMEDY, error.found) from error


def allowed(*, everything: bool) -> "Trust":
    """The trust that a program gives, and how it would give more."""
    from winnow.flows.run.trust_prompt import Trust

    return Trust(everything=everything, how="pass trust=True")


def _in_a_thread(call: "Callable[[Interrupts], T]", interrupts: "Interrupts") -> T:
    """Call in a thread without an event loop, so that one may be started, and wait; Ctrl-C asks to stop."""
    with ThreadPoolExecutor(1, "winnow-run") as executor:
        future = executor.submit(copy_context().run, call, interrupts)
        while True:
            try:
                return future.result()
            except KeyboardInterrupt:
                if future.done():
                    raise
                interrupts.ask()
