"""Run a task of Inspect and write its content as JSON.

    PYTHON child.py REQUEST ANSWER PARENT

The interpreter that has Inspect runs this file, so it imports nothing from Winnow. The task's own solvers
create the prompts, up to the first call of a model. The content is reported unchanged; `reading`, in the
calling process, decides what Winnow supports.
"""

import sys

sys.path.pop(0)  # the folder of this file, whose module names must not hide others

import asyncio
import json
import os
import threading
import time
from copy import deepcopy
from pathlib import Path
from typing import Any

Json = dict[str, Any]

Theirs = Any
"""An object of Inspect, whose types are not available where this file is checked."""

_FEATURES = """
    setup cleanup sandbox approval review sentinel early_stopping sample_source
    message_limit token_limit turn_limit time_limit working_limit cost_limit
"""
FEATURES = tuple(_FEATURES.split())
"""Features of a task that change requests to models or scoring."""

OF_SAMPLES = ("sandbox", "files", "setup")

MAKES_PROMPTS = frozenset(
    f"inspect_ai/{name}"
    for name in (
        *("assistant_message", "chain_of_thought", "generate", "multiple_choice"),
        *("prompt_template", "system_message", "user_message"),
    )
)
"""Solvers that call no tool, and no model except the evaluated one."""


class _Asked(Exception):
    """The task's solvers are about to call the model."""


def main(request: str, answer: str, parent: str) -> None:
    """Read a request file, and write the answer file."""
    threading.Thread(target=_end_with, args=(int(parent),), daemon=True).start()
    asked = json.loads(Path(request).read_text("utf-8"))
    sys.pycache_prefix = asked["compiled"]
    try:
        told = _task_description(asked["task"], asked["args"])
    except (Exception, SystemExit) as error:  # the task's own code can raise anything
        told = {"failed": f"{type(error).__name__}: {error}"}
    Path(answer).write_text(json.dumps(told), "utf-8")


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _task_description(spec: str, args: Json) -> Json:
    from inspect_ai._eval.loader import load_task_spec
    from inspect_ai._util.registry import registry_info, registry_lookup, registry_params

    file = spec.rpartition("@")[0] if "@" in spec else spec
    is_file = Path(file).is_file()
    if is_file:
        compile(Path(file).read_bytes(), file, "exec")  # otherwise Inspect ignores invalid Python
    known = is_file or registry_lookup("task", spec) is not None
    tasks = load_task_spec(spec, args) if known else []
    if not tasks:
        return {"failed": "no task has this name; give FILE.py@TASK, or PACKAGE/TASK of a package"}
    if len(tasks) != 1:
        names = ", ".join(str(each.name) for each in tasks[:10])
        return {"failed": f"there are {len(tasks)} tasks: {names}; name one, as FILE.py@TASK"}
    if ignored := sorted(args.keys() - registry_params(tasks[0]).keys()):
        makes = registry_lookup("task", registry_info(tasks[0]).name)
        return {"ignored": ignored[0], "arguments": registry_info(makes).metadata["params"]}
    if is_file:
        os.chdir(Path(file).resolve().parent)  # where Inspect looks for files that a task names
    return asyncio.run(_described(tasks[0]))


async def _described(task: Theirs) -> Json:  # a `Task`
    solvers = _solvers(task.solver)
    steps = [_registered(each) for each in solvers]
    features = {name for name in FEATURES if getattr(task, name, None)}
    features |= {f"{name} of samples" for name in OF_SAMPLES if _some_have(task.dataset, name)}
    config = task.config.model_dump(mode="json", exclude_none=True)
    rows: list[Json] = []
    if {each["name"] for each in steps} <= MAKES_PROMPTS and not features:
        first = config.pop("system_message", None)
        for number, sample in enumerate(task.dataset, 1):
            row, own, others = await _row(sample, number, solvers, first)
            rows.append(row)
            features |= others
            config |= own
    return {
        "name": str(task.name),
        "solvers": steps,
        "scorers": [_scorer(each) for each in task.scorer or []],
        "metrics": _metrics(task.metrics),
        "epochs": task.epochs,
        "features": sorted(features),
        "config": config,
        "rows": rows,
    }


def _solvers(solver: Theirs) -> list[Theirs]:  # a `Solver`, a `Plan` or several
    from inspect_ai.solver._chain import unroll
    from inspect_ai.solver._plan import Plan

    if isinstance(solver, Plan):
        finish = [] if solver.finish is None else [solver.finish]
        return [inner for each in (*solver.steps, *finish) for inner in unroll(each)]
    return list(unroll(solver))


def _registered(thing: Theirs) -> Json:  # a solver, scorer or metric
    """Name and parameters with which a decorated function was created."""
    from inspect_ai._util.registry import is_registry_object, registry_info, registry_params

    if not is_registry_object(thing):
        return {"name": getattr(thing, "__name__", type(thing).__name__), "params": {}}
    return {"name": registry_info(thing).name, "params": _kept(registry_params(thing), keep_names=True)}


def _scorer(scorer: Theirs) -> Json:  # a `Scorer`
    from inspect_ai.util import resource

    found = _registered(scorer)
    if isinstance(template := found["params"].get("template"), str):
        found["params"]["template"] = resource(template)  # may be the path of a file
    return found


def _metrics(metrics: Theirs) -> list[str] | None:  # a list, a mapping or None
    if metrics is None:
        return None
    listed = metrics if isinstance(metrics, list) else [metrics]
    return ["by group" if isinstance(each, dict) else _registered(each)["name"] for each in listed]


def _some_have(dataset: Theirs, name: str) -> bool:  # a `Dataset`
    return any(getattr(sample, name, None) for sample in dataset)


async def _row(
    sample: Theirs,  # a `Sample`
    number: int,
    solvers: list[Theirs],
    first: str | None,
) -> tuple[Json, Json, set[str]]:
    """Row of a sample, settings of its model call, and content types other than text."""
    state, asked = _state(sample, number), {}

    async def generate(state: Theirs, tool_calls: str = "loop", **config: Theirs) -> None:
        asked.update({key: value for key, value in config.items() if value is not None})
        raise _Asked

    try:
        for solver in solvers:
            state = await solver(state, generate)
    except _Asked:
        pass
    messages = [{"role": each.role, "content": each.text} for each in state.messages]
    row = {
        "id": number if sample.id is None else sample.id,
        "input": state.input_text,
        "target": list(state.target),
        "messages": [*([] if first is None else [{"role": "system", "content": first}]), *messages],
        "metadata": _kept(sample.metadata or {}),
        **({"choices": list(sample.choices)} if sample.choices else {}),
    }
    return row, _kept(asked, keep_names=True), _no_text(state.messages)


def _state(sample: Theirs, number: int) -> Theirs:  # a `Sample`, a `TaskState`
    from inspect_ai.model import ChatMessageUser, ModelName
    from inspect_ai.scorer import Target
    from inspect_ai.solver import TaskState

    text = isinstance(sample.input, str)
    return TaskState(
        model=ModelName("none/none"),
        sample_id=number if sample.id is None else sample.id,
        epoch=1,
        input=sample.input,
        messages=[ChatMessageUser(content=sample.input)] if text else deepcopy(sample.input),
        target=Target(sample.target),
        choices=sample.choices,
        metadata=deepcopy(sample.metadata or {}),
    )


def _no_text(messages: Theirs) -> set[str]:  # a list of `ChatMessage`
    """Content types other than text in the messages."""
    found = {"tool" for each in messages if each.role == "tool" or getattr(each, "tool_calls", None)}
    parts = [part for each in messages if isinstance(each.content, list) for part in each.content]
    return {f"{kind} in messages" for kind in found | {part.type for part in parts} - {"text"}}


def _kept(values: Json, *, keep_names: bool = False) -> Json:
    """The JSON part of a mapping; with `keep_names`, other values become the name of their type."""
    kept = {}
    for name, value in values.items():
        try:
            kept[str(name)] = json.loads(json.dumps(value))
        except (TypeError, ValueError):
            if keep_names:
                kept[str(name)] = {"python": type(value).__name__}
    return kept


if __name__ == "__main__":
    main(*sys.argv[1:])
