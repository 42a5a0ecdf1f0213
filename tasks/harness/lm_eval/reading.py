"""Rows of a task; its functions run in a separate process."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import NoReturn

from winnow.tasks.data.dataset_files import PlacedRow
from winnow.tasks.data.hub import load_splits
from winnow.tasks.errors import DatasetError
from winnow.tasks.harness.lm_eval.definition import Definition, load_definition
from winnow.tasks.harness.lm_eval.files import Function, as_lm_eval_has_it
from winnow.tasks.harness.lm_eval.rows import KEY, Documents, Resolve
from winnow.tasks.plugins.allowed_code import act_of_function, require_allowed
from winnow.tasks.processes.worker_process import WorkerEnded, WorkerProcess
from winnow.tasks.spec.sections.dataset import LmEvalSpec

CHILD = "winnow.tasks.harness.lm_eval.child"

SECONDS = 600.0
"""Maximum seconds until a task's functions return the next rows."""


def task_rows(spec: LmEvalSpec, *, is_allowed: bool) -> Iterator[PlacedRow]:
    """Rows of a task, each with its place; see `Documents`.

    Args:
        spec: The part of a campaign's file that names the task and the form of its prompts.
        is_allowed: Whether a user has permitted requests to the hub and running the task's functions.

    Raises:
        NotAllowed: If the task's functions would run without permission.
        SpecError: If the task does not exist, its dataset cannot be loaded, or a document is invalid.
    """
    with as_lm_eval_has_it(spec.task, KEY):
        definition = load_definition(spec.task, spec.include_path)
    if not definition.functions:
        yield from rows_with(spec, _none, asks_hub=is_allowed)
    elif is_allowed:
        for file, _, function in (each.rpartition(":") for each in spec.functions):
            require_allowed(*act_of_function(Path(file), function))
        yield from _rows_of_child(spec)
    else:
        raise DatasetError(
            f"the examples of the task {spec.task} are created by {', '.join(definition.functions)}, which "
            "needs your permission to run: winnow validate SPEC --trust",
            KEY,
        )


def rows_with(spec: LmEvalSpec, resolve: Resolve, *, asks_hub: bool) -> Iterator[PlacedRow]:
    """Rows of a task, computed in this process; `resolve` imports the task's functions."""
    with as_lm_eval_has_it(spec.task, KEY):
        definition = load_definition(spec.task, spec.include_path)
        made_by = definition.config.get("custom_dataset")
        if isinstance(made_by, Function):
            settings = (definition.config.get("metadata"), definition.config.get("dataset_kwargs"))
            splits = resolve(made_by)(**{key: each for one in settings for key, each in (one or {}).items()})
        else:
            commit = spec.commit or definition.source.commit
            splits = load_splits(replace(definition.source, commit=commit), asks_hub=asks_hub)
        documents = Documents(
            definition,
            splits,
            resolve,
            num_fewshot=shots(definition, spec.num_fewshot),
            seed=spec.fewshot_seed,
            chat=spec.chat,
        )
        yield from documents.rows()


def shots(definition: Definition, asked: int | None) -> int:
    """Number of solved examples in a prompt.

    Raises:
        SpecError: If solved examples are requested for a task that allows none.
    """
    if definition.num_fewshot == 0 and asked:
        definition.refuse("allows no solved examples (num_fewshot: 0)", "remove num_fewshot")
    return (definition.num_fewshot or 0) if asked is None else asked


def _none(function: Function) -> NoReturn:
    raise AssertionError(f"{function} belongs to a task without functions")


def _rows_of_child(spec: LmEvalSpec) -> Iterator[PlacedRow]:
    """Rows from two processes, which must agree."""
    with ExitStack() as ends:
        folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="winnow-task-"))
        children = [_child(spec, Path(folder) / str(number), ends) for number in range(2)]
        while True:
            rows, again = (_received(child, spec.task) for child in children)
            if rows != again:
                raise _unlike(rows, again, spec.task)
            if not rows:
                return
            yield from rows


def _child(spec: LmEvalSpec, folder: Path, ends: ExitStack) -> WorkerProcess:
    """Start a process that sends the rows; its functions' temporary files are in the folder."""
    folder.mkdir()
    child = WorkerProcess(CHILD, log=folder / "task.log", environment={}, forced={"TMPDIR": str(folder)})
    ends.callback(child.kill)
    child.send({"task": spec.model_dump(), "asks_hub": True})
    return child


def _unlike(rows: Sequence[PlacedRow], again: Sequence[PlacedRow], task: str) -> DatasetError:
    pairs = zip_longest(rows, again)
    places = [(one or other or ("",))[0] for one, other in pairs if one != other]
    return DatasetError(
        f"the functions of the task {task} return different examples in each call, first at "
        f"{places[0]}, so a campaign could not resume; let them draw only from random, numpy or torch, "
        "which Winnow seeds like lm-eval, not from a clock, hash() or the order of a set",
        KEY,
    )


def _received(child: WorkerProcess, task: str) -> list[PlacedRow]:
    try:
        reply = child.receive(SECONDS)
    except TimeoutError:
        raise DatasetError(f"the functions of the task {task} took over {SECONDS:g} s", KEY) from None
    except WorkerEnded as error:
        raise DatasetError(f"the functions of the task {task} ended their process: {error}", KEY) from None
    if "failed" in reply:
        raise DatasetError(str(reply["failed"]), KEY)
    return [(place, row) for place, row in reply["rows"]]
