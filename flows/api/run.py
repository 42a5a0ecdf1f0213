"""A campaign as programs and notebooks run it."""

import json
import os
import reprlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING

from winnow.flows.api.callers import has_running_loop, require_url
from winnow.flows.main import WORK_FOLDER
from winnow.flows.prefect_support.server import settle_environment

if TYPE_CHECKING:
    from winnow.flows.api.results import CampaignResults
    from winnow.flows.run.signals import Interrupts
    from winnow.flows.run.trust_prompt import Trust
    from winnow.tasks.spec.yaml_file import SpecFile

Spec = str | Path | Mapping[str, object]

IN_PROGRAM = Path("spec")
"""What complaints call a spec that is no file."""

REMEDY = "undo the change, or give the campaign another name, which makes no text a second time"
"""What a program can do that began a campaign with another definition."""


def run(
    spec: Spec, *, storage: str | None = None, progress: bool = False, trust: bool = False
) -> "CampaignResults":
    """Run a campaign to its end; one that was begun before goes on where it stopped.

    Works in a script, in a thread, and where an event loop is running, as in Jupyter. Ctrl-C finishes the
    round, stores it and raises `KeyboardInterrupt`: call `run` again to go on.

    Args:
        spec: A campaign's file, or what such a file holds, as a mapping.
        storage: URL of the results database; None takes what the spec says.
        progress: Whether to write a line a round to standard error.
        trust: Allow what the command line would ask for: keys sent to new servers, code that comes with a
            model, files outside the working folder.

    Returns:
        What `winnow.open(storage)[name]` gives: the answer, frames, the report.

    Raises:
        SpecError: If the spec is not sound, or needs what nobody has allowed, or a package is missing.
        WinnowError: If the campaign cannot go on.
        StorageError: If the database cannot be used, or another process runs the campaign.
    """
    return _called(lambda interrupts: _run(_file_of(spec, storage), interrupts, progress, _trust(trust)))


def resume(
    storage: str, name: str, changes: Mapping[str, object], *, progress: bool, trust: bool
) -> "CampaignResults":
    """Go on with a stored campaign; see `CampaignResults.resume`."""
    overrides = [f"{key}={json.dumps(_plain(value), default=str)}" for key, value in changes.items()]
    return _called(lambda interrupts: _resume(storage, name, overrides, interrupts, progress, _trust(trust)))


def _called(call: "Callable[[Interrupts], CampaignResults]") -> "CampaignResults":
    settle_environment(WORK_FOLDER / "prefect")
    from winnow.flows.run.signals import Interrupts

    interrupts = Interrupts()
    return _in_a_thread(call, interrupts) if has_running_loop() else call(interrupts)


def _run(file: "SpecFile", interrupts: "Interrupts", progress: bool, trust: "Trust") -> "CampaignResults":
    from winnow.flows.run.launch import require_free, starting_early, store_campaign
    from winnow.flows.run.trust_prompt import approving
    from winnow.tasks.setup.load import check_spec_file

    with starting_early(approving(trust)) as approve:
        checked = check_spec_file(file, approve)
        with _remedied():
            store_campaign(checked)
        storage, name = checked.spec.storage, checked.spec.name
        return _to_the_end(storage, name, interrupts, progress, lambda: require_free(storage, name))


def _resume(
    storage: str, name: str, overrides: list[str], interrupts: "Interrupts", progress: bool, trust: "Trust"
) -> "CampaignResults":
    from winnow.flows.run.launch import change_stored_campaign, require_resumable

    if overrides:
        with _remedied():
            change_stored_campaign(storage, name, overrides, trust)
    return _to_the_end(storage, name, interrupts, progress, lambda: require_resumable(storage, name, trust))


@contextmanager
def _remedied() -> Iterator[None]:
    """Tell of what may not change as a program can mend it, without options of the command line."""
    from winnow.tasks.setup.identity import IdentityChanged

    try:
        yield
    except IdentityChanged as error:
        raise IdentityChanged(error.what, REMEDY, error.found) from error


def _to_the_end(
    storage: str, name: str, interrupts: "Interrupts", progress: bool, check: Callable[[], None]
) -> "CampaignResults":
    """Run a stored campaign, unless it has ended; `check` may refuse to."""
    from winnow.flows.api.results import CampaignResults
    from winnow.flows.notify.outbox import delivering
    from winnow.flows.reports.summary import status_of
    from winnow.flows.run.launch import run_to_the_end

    if not status_of(storage, name).is_settled:
        check()
        with delivering():
            run_to_the_end(storage, name, interrupts, shown=progress)
        if interrupts.asked:
            raise KeyboardInterrupt
    return CampaignResults(storage, name)


def _trust(everything: bool) -> "Trust":
    from winnow.flows.run.trust_prompt import Trust

    return Trust(everything=everything, how="pass trust=True")


def _file_of(spec: Spec, storage: str | None) -> "SpecFile":
    from winnow.tasks.errors import SpecError
    from winnow.tasks.spec.yaml_file import SpecFile, read_spec_file

    if storage is not None:
        require_url(storage)
    if not isinstance(spec, str | os.PathLike | Mapping):
        raise SpecError(
            f"spec is {reprlib.repr(spec)}; give the path of a campaign's file or a mapping of what it holds"
        )
    file = SpecFile(IN_PROGRAM, _plain(spec)) if isinstance(spec, Mapping) else read_spec_file(spec)
    if storage is None:
        return file
    values = {**file.values, "storage": storage}
    return SpecFile(file.path, values, file.lines, frozenset({("storage",)}))


def _plain(value: object) -> object:
    """The same as a file would hold it: lists in place of tuples, texts of paths, numbers of NumPy's."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    return str(value) if isinstance(value, Path) else value


def _in_a_thread(
    call: "Callable[[Interrupts], CampaignResults]", interrupts: "Interrupts"
) -> "CampaignResults":
    """Call where no event loop is running, so that one may be started; wait, and let Ctrl-C ask to stop."""
    with ThreadPoolExecutor(1, "winnow-run") as executor:
        future = executor.submit(copy_context().run, call, interrupts)
        while True:
            try:
                return future.result()
            except KeyboardInterrupt:
                if future.done():
                    raise
                interrupts.ask()
