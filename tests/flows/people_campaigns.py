"""Campaigns that people judge, on scripted models, and a person who knows what is right."""

import csv
import json
import os
from multiprocessing.context import ForkServerContext
from pathlib import Path

import campaign_processes as processes
import pytest
import scripted_engines
from campaigns import winnow, write_spec
from certify_campaigns import model, truth
from tiny_models import save_tiny_llama
from waiting import PATIENCE_S

N_EXAMPLES = 40
LEVELS = {"right": 1.0, "wrong": 0.0, "half right": 0.5}
QUALITY = {"type": "human", "question": "Is it the right letter?", "levels": LEVELS}
PREFERENCE = {"type": "human", "question": "Which answer is better?"}

BY_OBJECTIVE = {
    "best-mean": {
        "judge": QUALITY,
        "selector": {"name": "champion"},
        "stopping": {"budget": 80, "delta": 0.1},
    },
    "certify": {
        "judge": QUALITY,
        "certify": {"alpha": 0.5, "cost": "custom", "costs": {"medium/plain": 2, "small/plain": 1}},
        "selector": {"name": "r-eval"},
        "stopping": {"budget": 40, "delta": 0.2},
    },
    "best-duel": {
        "judge": PREFERENCE,
        "selector": {"name": "llm-po"},
        "batch_size": 20,
        "stopping": {"budget": 120, "delta": 0.1},
    },
}


def write_people(folder: Path, objective: str, **changes) -> Path:
    """Two candidates, one of which is wrong on every other example; no example has a target.

    Args:
        folder: Gets the models, the data and the spec; the campaign is to be run from there.
        objective: The question.
        changes: Keys of the spec to set; None takes one away.
    """
    for number, name in enumerate(("medium", "small")):
        save_tiny_llama(folder / name, seed=number)
    with (folder / "data.jsonl").open("w") as file:
        for number in range(N_EXAMPLES):
            file.write(json.dumps({"id": f"e{number}", "input": f"{number}", "target": None}) + "\n")
    spec = {
        "name": "survivor",
        "objective": objective,
        "seed": 5,
        "storage": "sqlite:///winnow.db",
        "models": [model("medium", "knows"), model("small", "guesses")],
        "prompts": [{"name": "plain", "template": "{{ input }}="}],
        "dataset": {"path": "data.jsonl", "fields": {"id": "id", "input": "input", "target": "target"}},
        "batch_size": 10,
        "execution": {"group_size": 8, "max_loaded": 2, "log_folder": "logs"},
        **BY_OBJECTIVE[objective],
    }
    return write_spec(folder, {key: value for key, value in {**spec, **changes}.items() if value is not None})


def killed_at(context: ForkServerContext, folder: Path, storage: str, commit: int) -> int | None:
    """Go on with the stored campaign in a process that kills itself; its exit code."""
    process = context.Process(target=_run, args=(str(folder), storage, commit))
    process.start()
    process.join(PATIENCE_S)
    return process.exitcode


def _run(folder: str, storage: str, commit: int) -> None:
    os.chdir(folder)
    scripted_engines.provide_all(pytest.MonkeyPatch())
    processes.run(storage, processes.Kill(commit=commit, after=False))


def tasks(folder: Path) -> list[dict]:
    """Every task of the campaign, as somebody who judges elsewhere gets them."""
    path = folder / "todo.csv"
    path.unlink(missing_ok=True)
    found = winnow(folder, "query", "survivor", "labels", "--format", "csv", "--output", str(path))
    assert found.returncode == 0, found.stderr
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def opinion(row: dict) -> str:
    """What the person says of a task: the truth."""
    right = truth(int(row["input"]))
    if "output" in row:
        return "right" if row["output"] == right else "wrong"
    if (row["first"] == right) == (row["second"] == right):
        return "tie"
    return "first" if row["first"] == right else "second"


def labelled_elsewhere(folder: Path, name: str = "done.csv", **more: str) -> Path:
    """A file with what the person says of every task that the campaign waits for."""
    wanted = [row for row in tasks(folder) if row["state"] == "wanted"]
    path = folder / name
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "verdict", *more])
        writer.writeheader()
        writer.writerows({"id": row["id"], "verdict": opinion(row), **more} for row in wanted)
    return path


def judged_to_the_end(folder: Path, *options: str, most: int = 30) -> int:
    """Label and resume until the campaign does not wait any more; how often it waited."""
    for waits in range(most):
        path = labelled_elsewhere(folder)
        if len(path.read_text().splitlines()) == 1:
            return waits
        labelled = winnow(folder, "label", "survivor", str(path), "--as", "Ann")
        assert labelled.returncode == 0, labelled.stderr
        resumed = winnow(folder, "resume", "survivor", *options)
        assert resumed.returncode in (0, 3), resumed.stderr
    raise AssertionError("the campaign does not end")
