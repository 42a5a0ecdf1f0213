"""Run a campaign from a program or notebook."""

import os
import reprlib
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from winnow.flows.api.call_checks import require_url
from winnow.flows.api.resume import allowed, interruptible, remedied, to_the_end

if TYPE_CHECKING:
    from winnow.flows.api.results import Campaign
    from winnow.flows.run.signals import Interrupts
    from winnow.flows.run.trust_prompt import Trust
    from winnow.tasks.setup.typed_spec import TypedSpec
    from winnow.tasks.setup.yaml_file import SpecFile

GivenSpec: TypeAlias = "TypedSpec | SpecFile | str | Path | Mapping[str, object]"
"""A campaign's definition: a `winnow.Spec`, a parsed file, its path, or a mapping of its content."""


def run(
    spec: GivenSpec, *, storage: str | None = None, progress: bool = False, trust: bool = False
) -> "Campaign":
    """Run a campaign to its end; a campaign that has begun continues where it stopped.

    Works in a script, in a thread, and while an event loop runs, as in Jupyter. Ctrl-C finishes the round,
    stores it and raises `KeyboardInterrupt`. Call `run` again to continue.

    Args:
        spec: A `winnow.Spec`, the path of a campaign's file, or a mapping with the file's keys.
        storage: URL of the results database; None uses the spec's.
        progress: Whether to write a line per round to standard error.
        trust: Give all permissions that the command line would ask for, such as to send keys to new servers,
            to run a model's code, or to read files outside the working folder.

    Returns:
        The campaign, as `winnow.open(storage)[name]` returns it: its answer, frames and report.

    Raises:
        SpecError: If the spec is invalid, needs a permission, or needs a package that is not installed.
        WinnowError: If the campaign cannot continue.
        StorageError: If the database cannot be used, or another process runs the campaign.
    """
    found = interruptible(
        lambda interrupts: _run(file_of(spec, storage), interrupts, progress, allowed(everything=trust))
    )
    from winnow.flows.api.results import Campaign

    return Campaign(*found)


def _run(file: "SpecFile", interrupts: "Interrupts", progress: bool, trust: "Trust") -> tuple[str, str]:
    """Store and run the campaign of a file; return the database's URL and the campaign's name."""
    from winnow.flows.run.launch import launching, require_free
    from winnow.flows.run.trust_prompt import approving
    from winnow.tasks.setup.load import check_spec_file

    with launching() as launch:
        checked = check_spec_file(file, approving(trust), launch.recall)
        with remedied():
            campaign = launch.store(checked)
        to_the_end(campaign, interrupts, progress, lambda: require_free(campaign))
        return campaign.storage, campaign.name


def file_of(
    spec: GivenSpec, storage: str | None = None, changes: Mapping[str, object] | None = None
) -> "SpecFile":
    """Convert a definition into a `SpecFile`, with the given storage and changes.

    Args:
        spec: See `winnow.run`.
        storage: URL of the results database; None keeps the spec's.
        changes: New values by dotted key.

    Raises:
        SpecError: If an argument is invalid.
    """
    from winnow.tasks.errors import SpecError
    from winnow.tasks.setup.typed_spec import IN_PROGRAM, TypedSpec
    from winnow.tasks.setup.written_files import as_in_a_file, written_changes
    from winnow.tasks.setup.yaml_file import SpecFile, overriding, read_spec_file

    if storage is not None:
        require_url(storage)
    if isinstance(spec, TypedSpec):
        file = spec.file
    elif isinstance(spec, SpecFile):
        file = spec
    elif isinstance(spec, Mapping):
        file = SpecFile(IN_PROGRAM, as_in_a_file(spec))
    elif isinstance(spec, str | os.PathLike):
        file = read_spec_file(spec)
    else:
        raise SpecError(
            f"spec is {reprlib.repr(spec)}; give the path of a campaign's file, or a mapping with its keys"
        )
    if changes:
        file = overriding(replace(file, values=deepcopy(file.values)), written_changes(changes))
    if storage is None:
        return file
    values = {**file.values, "storage": storage}
    return replace(file, values=values, overridden=file.overridden | {("storage",)})
