"""Read a task of Inspect in a separate process."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from subprocess import STDOUT, TimeoutExpired

from winnow.storage.json_types import JsonObject
from winnow.tasks.data.dataset_files import PlacedRow, json_row
from winnow.tasks.errors import DatasetError
from winnow.tasks.harness.inspect.definition import KEY, InspectTask, definition_of
from winnow.tasks.plugins.allowed_code import Act, digests_of, file_digest, require_allowed
from winnow.tasks.plugins.own_files import state_folder
from winnow.tasks.processes.child_process import last_lines, running_process
from winnow.tasks.spec.sections.dataset import InspectSpec
from winnow.tasks.text.printable import one_line

CHILD = Path(__file__).with_name("child.py")

SECONDS = 600.0
"""Maximum seconds for reading a task."""

MOST_BYTES = 512 * 2**20
"""Maximum size of a task's content."""

_SHOWN = 500
"""Characters shown of the error message of a task's code."""


def read_task(spec: InspectSpec, *, is_allowed: bool) -> InspectTask:
    """The content of a task, determined by running its code.

    Args:
        spec: The part of a campaign's file that names the task.
        is_allowed: Whether a user has approved that.

    Raises:
        DatasetError: If it was not approved, there is no such task, it fails, or it needs what Winnow does
            not support.
        NotAllowed: If a command that did not ask for permission runs it.
    """
    file = spec.file
    if file is not None and not file.is_file():
        raise DatasetError(f"there is no file {file} (working directory {Path.cwd()})", KEY)
    if not is_allowed:
        raise DatasetError(
            f"the task {spec.task} is Python code, which runs where somebody allows it: "
            "winnow validate SPEC --trust",
            KEY,
        )
    require_allowed(*act_of_task(spec, Path.cwd()))
    return definition_of(_asked(spec, _interpreter(spec)), spec.task)


def act_of_task(spec: InspectSpec, folder: Path) -> Act:
    """The act of running a task's code; see `tasks.plugins.allowed_code`.

    Args:
        spec: The part of a campaign's file that names the task.
        folder: Base folder of relative paths.
    """
    what, digests = f"the task {spec.task!a} of an installed package", None
    if spec.file is not None:
        file, name = (folder / spec.file).resolve(), spec.task.rpartition("@")[2]
        digests = digests_of(file)
        which = f"task {name!a}" if "@" in spec.task else "only task"
        what = f"the {which} of the Python file {str(file)!a}"
    given = f" with {spec.args!a}" if spec.args else ""
    python = spec.interpreter(folder)
    by = "" if python is None else f" by the interpreter {python!a}"
    if python is not None and Path(python).resolve().is_relative_to(folder.resolve()):
        digests = {**(digests or {}), python: file_digest(Path(python))}
    return Act(f"run {what}{given}{by}", digests)


def rows_of(task: InspectTask) -> Iterator[PlacedRow]:
    """The samples of a task as rows of a dataset, each with its place.

    A row has the keys `id`, `input` (only the question), `target`, `messages` (the prompt) and `metadata`,
    `choices` if there are any, and `context` if every prompt is one user message.

    Raises:
        DatasetError: If a sample contains values that JSON does not have.
    """
    for number, row in enumerate(task.rows, 1):
        place = f"task {task.name}, sample {number}"
        yield place, json_row(place, row, KEY)


def _interpreter(spec: InspectSpec) -> str:
    python = spec.interpreter(Path.cwd())
    if python is None:
        if find_spec("inspect_ai") is None:
            raise DatasetError(
                "tasks of Inspect need inspect-ai, which is not installed here; run: pip install inspect-ai, "
                "or name an interpreter that has it as task.python",
                KEY,
            )
        return sys.executable
    found = shutil.which(python)
    if found is None:
        raise DatasetError(f"there is no interpreter {spec.python}; correct it", "task.python")
    return found


def _asked(spec: InspectSpec, python: str) -> JsonObject:
    with tempfile.TemporaryDirectory(prefix="winnow-task-") as name:
        folder = Path(name)
        request, answer, log = folder / "request.json", folder / "answer.json", folder / "task.log"
        asked = {"task": spec.task, "args": spec.args, "compiled": _compiled(folder)}
        request.write_text(json.dumps(asked), encoding="utf-8")
        _run([python, str(CHILD), str(request), str(answer), str(os.getpid())], log, spec.task)
        if not answer.is_file():
            with log.open("rb") as output:
                said = "".join(last_lines(output, 1)).strip()
            raise DatasetError(_sentence(spec.task, "ended its process", said), KEY)
        if answer.stat().st_size > MOST_BYTES:
            raise DatasetError(
                f"the task {spec.task} holds more than {MOST_BYTES >> 20} MiB; take fewer samples", KEY
            )
        told = _parsed(answer.read_bytes())
    if not isinstance(told, dict) or "failed" in told:
        raise DatasetError(_sentence(spec.task, "cannot be read", _failure(told)), KEY)
    return told


def _compiled(otherwise: Path) -> str:
    """The folder for Python's bytecode: bytecode next to a source could belong to another one."""
    try:
        return str(state_folder() / "compiled")
    except RuntimeError:  # no home
        return str(otherwise / "compiled")


def _run(command: list[str], log: Path, task: str) -> None:
    """Run a command in its own session, all of which is gone when it ends or exceeds its time."""
    with log.open("wb") as output, running_process(command, stdout=output, stderr=STDOUT) as process:
        try:
            process.wait(SECONDS)
        except TimeoutExpired:
            raise DatasetError(f"the task {task} took over {SECONDS:g} s to be read", KEY) from None


def _parsed(content: bytes) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _failure(told: object) -> str:
    return str(told["failed"]) if isinstance(told, Mapping) else "it says nothing that can be understood"


def _sentence(task: str, what: str, said: str) -> str:
    shown = one_line(said)[:_SHOWN]
    return f"the task {task} {what}{f': {shown}' if shown else ''}"
