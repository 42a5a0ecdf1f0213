"""Campaigns whose models weigh the choices of examples: two real (random) models, two prompts."""

import json
from pathlib import Path

from campaign_processes import rows
from campaigns import write_spec
from tiny_models import save_tiny_llama

N_EXAMPLES = 24


def options(number: int) -> list[str]:
    """The choices of an example, of different lengths, one of which begins another."""
    return [f"{number % 7}", f"{number % 7} apples", "none at all", "e"]


def write_choices(folder: Path, **changes) -> Path:
    """A campaign in a folder with its models and data.

    Args:
        folder: Gets the models, the data and the spec; the campaign is to be run from there.
        changes: Keys of the spec to set; None takes one away.
    """
    for seed, name in enumerate(("one", "two"), start=1):
        save_tiny_llama(folder / name, seed=seed, hidden=32 * seed)
    with (folder / "data.jsonl").open("w") as file:
        for number in range(N_EXAMPLES):
            found = options(number)
            row = {"id": f"e{number}", "input": f"{number * 7} and {number}", "options": found}
            row |= {"target": found[number % 4], "gold": number % 4}
            file.write(json.dumps(row) + "\n")
    spec = {
        "name": "survivor",
        "objective": "best-mean",
        "seed": 11,
        "storage": f"sqlite:///{folder}/winnow.db",
        "models": [model("one", folder), model("two", folder)],
        "prompts": [
            {"name": "plain", "template": "{{ input }}="},
            {"name": "asked", "template": "Q {{ input }}:"},
        ],
        "dataset": {"path": str(folder / "data.jsonl"), "fields": {"id": "id", "target": "target"}},
        "output_type": "multiple-choice",
        "choices": {"field": "options"},
        "judge": {"type": "acc_norm"},
        "selector": {"name": "row-mean"},
        "batch_size": 8,
        "stopping": {"budget": 32, "delta": 0.05},
        "execution": {"group_size": 4, "max_loaded": 2, "log_folder": f"{folder}/logs"},
    }
    return write_spec(folder, {key: value for key, value in {**spec, **changes}.items() if value is not None})


def model(name: str, folder: Path) -> dict:
    args = {"max_model_len": 64, "dtype": "float32"}
    return {"name": name, "provider": "transformers", "model": str(folder / name), "model_args": args}


def weighed(folder: Path) -> list[tuple]:
    """What was stored of each choice, by generation."""
    return rows(folder, "SELECT key, text, choice_logprobs, finish_reason FROM generations ORDER BY key")
