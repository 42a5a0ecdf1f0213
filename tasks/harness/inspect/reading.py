"""Read a task of Inspect in a separate process, and refuse unsupported features."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from subprocess import STDOUT, TimeoutExpired
from typing import NoReturn

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.data.dataset_files import PlacedRow, json_row
from winnow.tasks.errors import DatasetError, SpecError
from winnow.tasks.plugins.allowed_code import Act, digests_of, file_digest, require_allowed
from winnow.tasks.plugins.own_files import state_folder
from winnow.tasks.processes.child_process import last_lines, running_process
from winnow.tasks.spec.sections.dataset import InspectSpec
from winnow.tasks.text.printable import one_line

KEY = "task.inspect"

PREFIX = "inspect_ai/"
"""Name prefix of everything that Inspect provides."""

PROMPTS = ("assistant_message", "chain_of_thought", "prompt_template", "system_message", "user_message")
"""Solvers that change the prompt."""

ASKS = ("generate", "multiple_choice")
"""Solvers that call the model."""

METRICS = ("accuracy", "bootstrap_stderr", "mean", "std", "stderr", "var")
"""Metrics of scores; a campaign estimates the mean, and the others describe its uncertainty."""

RULES: Mapping[str, tuple[str, ...]] = {
    "answer": ("pattern",),
    "choice": (),
    "exact": (),
    "f1": ("stop_words",),
    "includes": ("ignore_case",),
    "match": ("location", "ignore_case", "numeric"),
    "pattern": ("pattern", "ignore_case", "match_all"),
}
"""Scorers that follow a rule, with their supported options."""

GRADED = ("model_graded_fact", "model_graded_qa")
GRADED_OPTIONS = ("template", "instructions", "grade_pattern", "include_history", "partial_credit")
"""Supported options of scorers that use a model."""

WHO_GRADES = ("model", "model_role")
"""Options of these scorers that name the grader, which the campaign names instead."""

_SETTINGS = """
    frequency_penalty logit_bias max_tokens presence_penalty stop_seqs temperature top_k top_p
"""
SETTINGS = tuple(_SETTINGS.split())
"""Sampling settings that have the same names in Winnow."""

_WITHOUT_EFFECT = """
    adaptive_connections attempt_timeout batch cache cache_prompt internal_tools logprobs max_connections
    max_retries max_tool_output parallel_tool_calls prompt_logprobs seed stream_idle_timeout timeout
    top_logprobs
"""
WITHOUT_EFFECT = frozenset(_WITHOUT_EFFECT.split())
"""Settings that change no output, or that a campaign sets itself."""

REMEDY = "write your own judge next to the task"


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectTask:
    """Content of a task, as its code describes it."""

    name: str
    solvers: Sequence[JsonView]
    """Solvers in order, each with `name` and `params`, already checked."""
    scorers: Sequence[JsonView]
    metrics: Sequence[str] | None
    """Metrics that replace the scorers' own; None if the task names none."""
    config: JsonView
    """Sampling settings."""
    rows: Sequence[JsonObject]

    @property
    def is_one_question(self) -> bool:
        """Whether the prompt of every sample is one user message."""
        return all("context" in row for row in self.rows)

    def refuse(self, feature: str, remedy: str = "choose another task") -> NoReturn:
        """Raise `SpecError` for an unsupported feature, with what to do."""
        raise SpecError(f"the task {self.name} {feature}; {remedy}", KEY)


def _definition_of(told: JsonView, spec: str) -> InspectTask:
    """Check and convert a task's description.

    Raises:
        SpecError: If the task needs a feature that Winnow does not support, or the description is invalid.
    """
    try:
        if "ignored" in told:
            there = ", ".join(told["arguments"]) or "none"
            raise SpecError(
                f"the task {spec} has no argument {told['ignored']!r}; its arguments: {there}", "task.args"
            )
        task = InspectTask(
            name=spec,
            solvers=told["solvers"],
            scorers=told["scorers"],
            metrics=told["metrics"],
            config=told["config"],
            rows=[_with_context(row) for row in told["rows"]],
        )
        for refused in _refusals(task, told):
            task.refuse(refused)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise SpecError(f"the task {spec} is not a valid task of Inspect: {error}", KEY) from error
    if not task.rows:
        task.refuse("has no samples")
    return task


def _with_context(row: JsonView) -> JsonObject:
    messages = row["messages"]
    if len(messages) == 1 and messages[0]["role"] == "user":
        return {**row, "context": messages[0]["content"]}
    return dict(row)


def _refusals(task: InspectTask, told: JsonView) -> Iterator[str]:
    names, known = [each["name"] for each in task.solvers], (*PROMPTS, *ASKS)
    for name in names:
        if name == f"{PREFIX}use_tools":
            yield "gives models tools (use_tools)"
        own = name.removeprefix(PREFIX)
        if own not in known or not name.startswith(PREFIX):
            yield f"has the solver {own}, which is not one of {', '.join(known)}"
    asking = [at for at, name in enumerate(names) if name.removeprefix(PREFIX) in ASKS]
    if not asking:
        yield "has no solver that calls the model (generate or multiple_choice)"
    if asking[0] != len(names) - 1:
        yield f"continues after the model has answered (with {names[asking[0] + 1].removeprefix(PREFIX)})"
    if task.solvers[-1]["params"].get("shuffle"):
        yield "shuffles choices in each request (shuffle of multiple_choice)"
    if told["epochs"] not in (None, 1):
        yield f"requests each answer {told['epochs']} times (epochs)"
    for feature in told["features"]:
        yield f"has {feature}"


def generation_of(task: InspectTask) -> JsonObject:
    """Generation settings of the task, as keys of `generate_config`.

    Raises:
        SpecError: If Winnow does not support one of the settings.
    """
    for key, value in task.config.items():
        if key not in (*SETTINGS, *WITHOUT_EFFECT) and (key, value) != ("num_choices", 1):
            task.refuse(f"sets {key} of the model's configuration")
    return {key: task.config[key] for key in SETTINGS if key in task.config}


def judge_of(task: InspectTask, name: str | None, grader: JsonView | None) -> JsonObject:
    """Judge for a campaign's file that scores like the task.

    Args:
        task: The task.
        name: Name of one of the task's scorers; None selects the first that Winnow supports.
        grader: The grading model, if the scorer needs one.

    Raises:
        SpecError: If Winnow does not support the task's scoring.
    """
    if task.metrics is not None and (
        others := {each.removeprefix(PREFIX) for each in task.metrics} - {*METRICS}
    ):
        task.refuse(f"is measured by {min(others)}", REMEDY)
    scorer = _wanted(task, name)
    own, params = scorer["name"].removeprefix(PREFIX), dict(scorer["params"])
    if own in GRADED:
        if grader is None:
            task.refuse(f"is scored by {own}", "set task.grader to the model that grades")
        return {"type": "inspect-graded", "scorer": own, **_options(task, own, params), "model": dict(grader)}
    if grader is not None:
        raise SpecError(f"the scorer {own} does not use a model; remove grader", "task.grader")
    _refuse_empty_targets(task)
    return {"type": "inspect", "scorer": own, **_options(task, own, params), **_of_choices(task, own)}


def _wanted(task: InspectTask, name: str | None) -> JsonView:
    there = [each["name"].removeprefix(PREFIX) for each in task.scorers]
    if name is not None and name not in there:
        task.refuse(f"has no scorer {name!r}", f"its scorers: {', '.join(there)}")
    for each in task.scorers:
        own = each["name"].removeprefix(PREFIX)
        if each["name"].startswith(PREFIX) and own in (*RULES, *GRADED) and name in (None, own):
            return each
    task.refuse(
        f"is scored by {name or ', '.join(there) or 'no scorer'}, which Winnow does not support", REMEDY
    )


def _options(task: InspectTask, scorer: str, params: JsonView) -> JsonObject:
    known = GRADED_OPTIONS if scorer in GRADED else RULES[scorer]
    options: JsonObject = {}
    for key, value in params.items():
        if scorer in GRADED and (key in WHO_GRADES or key == "reducer"):
            if isinstance(value, list):
                task.refuse(f"is graded by {len(value)} models ({key} of {scorer})", REMEDY)
        elif value is not None and key not in known:
            task.refuse(f"gives {scorer} the option {key}", REMEDY)
        elif key == "include_history" and not isinstance(value, bool):
            task.refuse(f"gives {scorer} a function as include_history", REMEDY)
        elif value is not None:
            options[key] = value
    return options


def _of_choices(task: InspectTask, scorer: str) -> JsonObject:
    """Parameters of the scorer `choice`, from the solver that requests a choice."""
    if scorer != "choice":
        return {}
    if task.solvers[-1]["name"] != f"{PREFIX}multiple_choice":
        task.refuse("is scored by choice, but does not use the solver multiple_choice", REMEDY)
    return {"multiple_correct": True} if task.solvers[-1]["params"].get("multiple_correct") else {}


def _refuse_empty_targets(task: InspectTask) -> None:
    for number, row in enumerate(task.rows, 1):
        if not row["target"] or "" in row["target"]:
            task.refuse(
                f"has no target in sample {number}, with which a rule could compare an output", REMEDY
            )


CHILD = Path(__file__).with_name("child.py")

SECONDS = 600.0
"""Maximum seconds for reading a task."""

MOST_BYTES = 512 * 2**20
"""Maximum size of a task's content, in bytes."""

_SHOWN = 500
"""Maximum characters shown of an error message of a task's code."""


def read_task(spec: InspectSpec, *, is_allowed: bool) -> InspectTask:
    """Read the content of a task by running its code.

    Raises:
        DatasetError: If running the task is not approved, or the task does not exist, fails, or needs a
            feature that Winnow does not support.
        NotAllowed: If the user has not permitted the task's code.
    """
    file = spec.file
    if file is not None and not file.is_file():
        raise DatasetError(f"there is no file {file} (working directory {Path.cwd()})", KEY)
    if not is_allowed:
        raise DatasetError(
            f"the task {spec.task} is Python code, which needs your permission to run: "
            "winnow validate SPEC --trust",
            KEY,
        )
    require_allowed(*act_of_task(spec, Path.cwd()))
    return _definition_of(_reading_request(spec, _interpreter(spec)), spec.task)


def act_of_task(spec: InspectSpec, folder: Path) -> Act:
    """Act of running a task's code, for a permission; see `tasks.plugins.allowed_code`."""
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
    """Samples of a task as rows of a dataset, each with its place.

    A row has the keys `id`, `input` (only the question), `target`, `messages` (the prompt) and `metadata`. It
    also has `choices` if the sample has choices, and `context` if its prompt is one user message.

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
                "or set task.python to an interpreter that has it",
                KEY,
            )
        return sys.executable
    found = shutil.which(python)
    if found is None:
        raise DatasetError(f"there is no interpreter {spec.python}; correct it", "task.python")
    return found


def _reading_request(spec: InspectSpec, python: str) -> JsonObject:
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
                f"the task {spec.task} has more than {MOST_BYTES >> 20} MiB; use fewer samples", KEY
            )
        told = _parsed(answer.read_bytes())
    if not isinstance(told, dict) or "failed" in told:
        raise DatasetError(_sentence(spec.task, "cannot be read", _failure(told)), KEY)
    return told


def _compiled(otherwise: Path) -> str:
    """Folder for Python's bytecode, because bytecode next to a source could belong to another one."""
    try:
        return str(state_folder() / "compiled")
    except RuntimeError:  # the user has no home folder
        return str(otherwise / "compiled")


def _run(command: list[str], log: Path, task: str) -> None:
    """Run a command in its own session, with its output and errors in `log`.

    All its processes have ended when this returns.

    Raises:
        DatasetError: If the command takes over `SECONDS`.
    """
    with log.open("wb") as output, running_process(command, stdout=output, stderr=STDOUT) as process:
        try:
            process.wait(SECONDS)
        except TimeoutExpired:
            raise DatasetError(f"reading the task {task} took over {SECONDS:g} s", KEY) from None


def _parsed(content: bytes) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _failure(told: object) -> str:
    return str(told["failed"]) if isinstance(told, Mapping) else "its process returned no valid description"


def _sentence(task: str, what: str, said: str) -> str:
    shown = one_line(said)[:_SHOWN]
    return f"the task {task} {what}{f': {shown}' if shown else ''}"
