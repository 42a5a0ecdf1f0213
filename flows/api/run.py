"""A campaign as programs and notebooks run it."""

import os
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from winnow.flows.api.call_checks import require_url
from winnow.flows.api.resume import allowed, as_in_a_file, interruptible, remedied, to_the_end

if TYPE_CHECKING:
    from winnow.flows.api.results import CampaignResults
    from winnow.flows.run.signals import Interrupts
    from winnow.flows.run.trust_prompt import Trust
    from winnow.tasks.setup.yaml_file import SpecFile

Spec = str | Path | Mapping[str, object]

IN_PROGRAM = Path("spec")
"""The name of a spec that is no file, in complaints."""


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
        The same as `winnow.open(storage)[name]`: the answer, frames, the report.

    Raises:
        SpecError: If the spec is not sound, or needs what nobody has allowed, or a package is missing.
        WinnowError: If the campaign cannot go on.
        StorageError: If the database cannot be used, or another process runs the campaign.
    """
    found = interruptible(
        lambda interrupts: _run(_file_of(spec, storage), interrupts, progress, allowed(everything=trust))
    )
    from winnow.flows.api.results import CampaignResults

    return CampaignResults(*found)


def _run(file: "SpecFile", interrupts: "Interrupts", progress: bool, trust: "Trust") -> tuple[str, str]:
    """Store and run the campaign of a file; return its database and its name."""
    from winnow.flows.run.launch import launching, require_free
    from winnow.flows.run.trust_prompt import approving
    from winnow.tasks.setup.load import check_spec_file

    with launching() as launch:
        checked = check_spec_file(file, approving(trust), launch.recall)
        with remedied():
            campaign = launch.store(checked)
        to_the_end(campaign, interrupts, progress, lambda: require_free(campaign))
        return campaign.storage, campaign.name


def _file_of(spec: Spec, storage: str | None) -> "SpecFile":
    from winnow.tasks.errors import SpecError
    from winnow.tasks.setup.yaml_file import SpecFile, read_spec_file

    if storage is not None:
        require_url(storage)
    if not isinstance(spec, str | os.PathLike | Mapping):
        raise SpecError(
            f"spec is {reprlib.repr(spec)}; give the path of a campaign's file or a mapping of what it holds"
        )
    file = SpecFile(IN_PROGRAM, as_in_a_file(spec)) if isinstance(spec, Mapping) else read_spec_file(spec)
    if storage is None:
        return file
    values = {**file.values, "storage": storage}
    return SpecFile(file.path, values, file.lines, frozenset({("storage",)}))
