"""Campaigns in processes of their own, which can be killed at chosen or at random moments.

A fork server imports torch, transformers and Prefect once; each campaign is then a fork of it and begins
within a fraction of a second, so that a test can afford dozens of kills.
"""

import json
import multiprocessing
import os
import signal
import sqlite3
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from tiny_models import save_tiny_llama
from without_prefect import leave_prefect_out

N_EXAMPLES = 24
GROUP_SIZE = 4
BATCH_SIZE = 8
BUDGET = 32
STORAGE = "storage.url"
"""The file in a campaign's folder that names its database."""


@dataclass(frozen=True, kw_only=True)
class Kill:
    """When a process kills itself, counted in its own commits; the first is that of the lease."""

    commit: int
    after: bool
    """Right after the commit, or when it is about to be made."""
    in_prefect: bool = False
    """Whether its campaign is a flow run of Prefect's until then, or runs without."""


def fork_server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["winnow.flows.run.flow", "winnow.tasks.engines.transformers.engine", "campaign_processes"]
    )
    return context


def write_campaign(
    folder: Path,
    *,
    provider: str = "transformers",
    name: str = "survivor",
    storage: str | None = None,
    budget: int = BUDGET,
) -> Path:
    """A campaign of six candidates on two real (random) models, with a spec and data in `folder`.

    Its results are kept in a file there, unless `storage` names another database.
    """
    (folder / STORAGE).write_text(storage or f"sqlite:///{folder}/winnow.db")
    for seed in (1, 2):
        save_tiny_llama(folder / f"model-{seed}", seed=seed)
    with (folder / "data.jsonl").open("w") as file:
        for i in range(N_EXAMPLES):
            row = {"id": f"e{i}", "input": f"{i * 7} and {i}", "target": "aeioustrn"[i % 9]}
            file.write(json.dumps(row) + "\n")
    spec = folder / "campaign.yaml"
    spec.write_text(f"""\
name: {name}
objective: best-mean
seed: 11
storage: {storage_of(folder)}
models:
  - {{name: one, provider: {provider}, model: {folder}/model-1, model_args: {{max_model_len: 64}}}}
  - {{name: two, provider: {provider}, model: {folder}/model-2, model_args: {{max_model_len: 64}}}}
prompts:
  - {{name: plain, template: "{{{{ input }}}}="}}
  - {{name: question, template: "Q: {{{{ input }}}} A:"}}
  - {{name: shout, template: "!{{{{ input }}}}!"}}
generate_configs:
  - {{name: warm, temperature: 0.9, max_tokens: 12}}
dataset: {{path: {folder}/data.jsonl, fields: {{id: id, input: input, target: target}}}}
judge: {{type: contains}}
selector: {{name: row-mean}}
batch_size: {BATCH_SIZE}
stopping: {{budget: {budget}, delta: 0.05}}
execution: {{group_size: {GROUP_SIZE}, max_loaded: 2, log_folder: {folder}/logs}}
""")
    return spec


def store(spec: Path) -> str:
    """Store a campaign as `winnow run` would before it starts the flow; return its storage URL."""
    from winnow.flows.run.launch import store_campaign
    from winnow.tasks.setup.load import check_campaign_file

    checked = check_campaign_file(str(spec))
    store_campaign(checked)
    return checked.spec.storage


def start(context: ForkServerContext, folder: Path, storage: str, kill: Kill | None = None) -> BaseProcess:
    """Resume the stored campaign in a process of its own; see `asked_texts` for what it writes down."""
    (folder / "asked.jsonl").unlink(missing_ok=True)
    process = context.Process(target=_resume, args=(str(folder), storage, kill))
    process.start()
    return process


def asked_texts(folder: Path) -> list[tuple[str, int]]:
    """(prompt, seed) of every text that the last process asked an engine for, in order."""
    path = folder / "asked.jsonl"
    if not path.exists():
        return []
    lines = path.read_text().splitlines(keepends=True)
    return [tuple(json.loads(line)) for line in lines if line.endswith("\n")]


def stored_texts(folder: Path) -> list[tuple[str, int]]:
    """(prompt, seed) of every committed generation."""
    return rows(folder, "SELECT p.text, g.seed FROM generations g JOIN prompts p ON p.id = g.prompt_id")


def has_ended(folder: Path) -> bool:
    """Whether the last decision of the campaign is stored."""
    return bool(rows(folder, "SELECT 1 FROM decisions WHERE stop"))


def rows(folder: Path, query: str) -> list[tuple]:
    """What a query finds, what is JSON among it as text whatever the database makes of them."""
    url = storage_of(folder)
    if url.startswith("sqlite:///"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    else:
        import psycopg

        connection = psycopg.connect(url.replace("+psycopg", ""))
    try:
        found = connection.execute(query).fetchall()
    finally:
        connection.close()
    return [
        tuple(json.dumps(each) if isinstance(each, list | dict) else each for each in row) for row in found
    ]


def storage_of(folder: Path) -> str:
    """The URL of the database that the campaign in a folder is kept in."""
    named = folder / STORAGE
    return named.read_text() if named.exists() else f"sqlite:///{folder}/winnow.db"


def history(folder: Path) -> dict[str, list[tuple]]:
    """All that must be the same however often a campaign was killed: everything but ids of runs and times."""
    return {
        "rounds": rows(folder, "SELECT number, arms, examples, propensities FROM rounds ORDER BY number"),
        "generations": rows(
            folder,
            "SELECT g.key, p.text, g.seed, g.text, g.finish_reason FROM generations g "
            "JOIN prompts p ON p.id = g.prompt_id ORDER BY g.key",
        ),
        "comparisons": rows(
            folder,
            "SELECT r.number, c.position, c.candidate_a_id, c.example_id, c.outcome, c.reason, c.answer, "
            "g.key FROM comparisons c JOIN rounds r ON r.id = c.round_id "
            "LEFT JOIN generations g ON g.id = c.generation_a_id ORDER BY r.number, c.position",
        ),
        "decisions": rows(
            folder,
            "SELECT r.number, d.best_candidate_id, d.estimates, d.lower, d.upper, d.stop, d.reason "
            "FROM decisions d JOIN rounds r ON r.id = d.round_id ORDER BY r.number",
        ),
    }


def _resume(folder: str, storage: str, kill: Kill | None) -> None:
    _write_down_requests(Path(folder) / "asked.jsonl")
    run(storage, kill)


def run(storage: str, kill: Kill | None) -> None:
    """Run the stored campaign in this process, to its end or until it kills itself."""
    if kill is not None:
        kill_at_commit(kill)
        if not kill.in_prefect:
            leave_prefect_out(pytest.MonkeyPatch())
    from winnow.flows.run.flow import run_campaign

    run_campaign(storage, "survivor")


def _write_down_requests(path: Path) -> None:
    """Have the real engine leave a line for every request before it answers."""
    from winnow.tasks.engines.transformers.engine import TransformersEngine

    answer = TransformersEngine.generate

    def generate(self, requests):
        with path.open("a") as file:
            file.writelines(json.dumps([request.prompt, request.seed]) + "\n" for request in requests)
        return answer(self, requests)

    TransformersEngine.generate = generate


def kill_at_commit(kill: Kill) -> None:
    from sqlalchemy import event
    from sqlalchemy.orm import Session

    made = 0

    def count(session: Session) -> None:
        nonlocal made
        if session.get_bind().get_execution_options().get("winnow_writes"):
            made += 1
            if made == kill.commit:
                os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Session, "after_commit" if kill.after else "before_commit", count)
