"""Campaigns of scripted models on a benchmark, to which candidates are added once they have begun."""

import json
import os
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import campaign_processes as processes
from campaign_processes import Kill
from campaigns import write_spec
from scripted_engines import SCRIPTED, letter

N_EXAMPLES = 240
FIRST = ("guesses", "errs")
"""Right on 120 and on 48 of the 240 examples."""
LONGER = ("mumbles", *FIRST)
"""The one that joins stands first, and is right on 192 of them."""


def write_growing(folder: Path, models: tuple[str, ...] = FIRST, **changes) -> Path:
    """A campaign of scripted models, by the names of their providers; it is to be run from its folder."""
    for name in models:
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "config.json").write_text("{}")
    rows = [{"id": f"e{i}", "input": str(i), "target": letter(str(i), wrong_in=0)} for i in range(N_EXAMPLES)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {
        "name": "survivor",
        "objective": "best-mean",
        "seed": 11,
        "storage": f"sqlite:///{folder}/winnow.db",
        "models": [{"name": name, "provider": name, "model": name} for name in models],
        "prompts": [{"name": "plain", "template": "{{ input }}"}],
        "dataset": {"path": "data.jsonl", "fields": {"id": "id", "input": "input", "target": "target"}},
        "judge": {"type": "exact"},
        "selector": {"name": "champion"},
        "batch_size": 12,
        "stopping": {"delta": 0.05, "budget": 720},
        "execution": {"group_size": 8, "log_folder": f"{folder}/logs"},
    }
    return write_spec(folder, {**spec, **changes})


def begin(context: ForkServerContext, folder: Path, storage: str, kill: Kill | None = None) -> BaseProcess:
    """Resume the stored campaign in a process of its own."""
    process = context.Process(target=_resume, args=(str(folder), storage, kill))
    process.start()
    return process


def _resume(folder: str, storage: str, kill: Kill | None) -> None:
    from winnow.tasks.engines import providers

    os.chdir(folder)
    providers.PROVIDERS.update(SCRIPTED)
    processes.run(storage, kill)
