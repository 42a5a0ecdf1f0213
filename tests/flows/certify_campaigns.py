"""Campaigns that certify, on scripted models: humans know every answer, two of three candidates nearly do."""

import json
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import campaign_processes as processes
from campaign_processes import Kill, rows
from campaigns import write_spec
from duel_campaigns import start
from tiny_models import save_tiny_llama

N_EXAMPLES = 240
BUDGET = 60
BATCH_SIZE = 10
USED = 50
"""Labels after which a campaign that has them all knows its answer: the last candidate is refuted."""
CANDIDATES = ("large/plain", "medium/plain", "small/plain")
"""In testing order."""


def truth(number: int) -> str:
    """What a human answers to example number i."""
    return "abcdefg"[number % 7]


def write_certify(folder: Path, *, labelled: int = 0, certify: dict | None = None, **changes) -> Path:
    """Candidates that are wrong never, on one in 40 and on one in 2 examples, and an autoevaluator.

    Args:
        folder: Gets the models, the data and the spec; the campaign is to be run from there.
        labelled: How many examples have a target in the dataset.
        certify: Keys of that section to set; None takes one away.
        changes: Keys of the spec to set; None takes one away.
    """
    for number, name in enumerate(("large", "medium", "small", "grader")):
        save_tiny_llama(folder / name, seed=number, hidden=64 if name == "large" else 32)
    with (folder / "data.jsonl").open("w") as file:
        for number in range(N_EXAMPLES):
            target = truth(number) if number < labelled else None
            file.write(json.dumps({"id": f"e{number}", "input": f"{number}", "target": target}) + "\n")
    section = {
        "alpha": 0.15,
        "cost": "custom",
        "costs": {"small/plain": 1, "large/plain": 3, "medium/plain": 2},
        "unlabelled_per_label": 2,
        "autoevaluator": {"model": model("grader", "grader"), "prompt": "What is {{ input }}?"},
    }
    section = {key: value for key, value in {**section, **(certify or {})}.items() if value is not None}
    spec = {
        "name": "survivor",
        "objective": "certify",
        "seed": 5,
        "storage": f"sqlite:///{folder}/winnow.db",
        "models": [model("medium", "slips"), model("small", "guesses"), model("large", "knows")],
        "prompts": [{"name": "plain", "template": "{{ input }}="}],
        "dataset": {"path": "data.jsonl", "fields": {"id": "id", "input": "input", "target": "target"}},
        "judge": {"type": "exact"},
        "certify": section,
        "selector": {"name": "r-autoeval-plus", "params": {"betting": "wsr"}},
        "batch_size": BATCH_SIZE,
        "stopping": {"budget": BUDGET, "delta": 0.1},
        "execution": {"group_size": 16, "max_loaded": 4, "log_folder": f"{folder}/logs"},
    }
    return write_spec(folder, {key: value for key, value in {**spec, **changes}.items() if value is not None})


def model(name: str, provider: str) -> dict:
    return {"name": name, "provider": provider, "model": name, "model_args": {"max_model_len": 64}}


def wanted(folder: Path) -> list[str]:
    """Keys of the examples that the planned round waits for."""
    planned = rows(
        folder,
        "SELECT r.examples FROM rounds r LEFT JOIN decisions d ON d.round_id = r.id WHERE d.id IS NULL",
    )
    known = {
        key for (key,) in rows(folder, "SELECT e.key FROM labels l JOIN examples e ON e.id = l.example_id")
    }
    keys = [f"e{number}" for (examples,) in planned for number in json.loads(examples)]
    return [key for key in dict.fromkeys(keys) if key not in known]


def write_labels(folder: Path, keys: list[str], name: str = "labels.jsonl") -> Path:
    """A file with what humans answer to some examples."""
    path = folder / name
    lines = [json.dumps({"id": key, "target": truth(int(key[1:]))}) for key in keys]
    path.write_text("\n".join(lines) + "\n")
    return path


def all_keys() -> list[str]:
    return [f"e{number}" for number in range(N_EXAMPLES)]


def begin(context: ForkServerContext, folder: Path, storage: str, kill: Kill | None = None) -> BaseProcess:
    """Resume the stored campaign in a process of its own."""
    return start(context, folder, storage, kill)


def history(folder: Path) -> dict[str, list]:
    """All that must be the same however often a campaign was killed or waited."""
    return {
        **processes.history(folder),
        "losses": rows(
            folder,
            "SELECT r.number, c.position, c.human_loss, c.auto_loss, c.unlabelled_loss FROM comparisons c "
            "JOIN rounds r ON r.id = c.round_id ORDER BY r.number, c.position",
        ),
    }
