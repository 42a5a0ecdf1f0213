"""Run or resume a campaign from a program, until it ends or is interrupted."""

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
"""Remedy in the error of a campaign that began with another definition, for programs."""


def interruptible(call: "Callable[[Interrupts], T]") -> T:
    """Call a function that Ctrl-C can stop; in a new thread if an event loop runs in this one."""
    settle_environment()
    from winnow.flows.run.signals import Interrupts

    interrupts = Interrupts()
    return _in_a_thread(call, interrupts) if has_running_loop() else call(interrupts)


def resume(storage: str, name: str, changes: Mapping[str, object], *, progress: bool, trust: bool) -> None:
    """Resume a stored campaign; see `Campaign.resume`."""
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
    """Run a stored campaign unless it has ended.

    Args:
        campaign: The campaign.
        interrupts: Requests to stop.
        progress: Whether to write a line per round to standard error.
        check: Called before a run; raises to refuse it.

    Raises:
        KeyboardInterrupt: If the run was interrupted; its results are stored.
    """
    from winnow.flows.notify.announce import delivering
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
    """Replace the remedy in errors about a changed definition by one for programs."""
    from winnow.tasks.setup.definition_changes import IdentityChanged

    try:
        yield
    except IdentityChanged as error:
        raise IdentityChanged(error.what, REMEDY, error.found) from error


def allowed(*, everything: bool) -> "Trust":
    """Permissions of a call by a program; the remedy in errors is `trust=True`."""
    from winnow.flows.run.trust_prompt import Trust

    return Trust(everything=everything, how="pass trust=True")


def _in_a_thread(call: "Callable[[Interrupts], T]", interrupts: "Interrupts") -> T:
    """Call a function in a new thread and wait for it; Ctrl-C requests a stop."""
    with ThreadPoolExecutor(1, "winnow-run") as executor:
        future = executor.submit(copy_context().run, call, interrupts)
        while True:
            try:
                return future.result()
            except KeyboardInterrupt:
                if future.done():
                    raise
                interrupts.ask()
