"""Campaigns in processes of their own, which can be killed at chosen moments.

A fork server imports torch, transformers and Prefect once, and runs a campaign; each campaign of a test is
then a fork of it and begins within a fraction of a second, so that a test can afford dozens of kills.
"""

import json
import multiprocessing
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import campaigns
import pytest
from faulty_server import Call, FaultyServer, echo, faulty_server
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


def fork_server() -> ForkServerContext:
    """The one fork server of this process, with everything warm; see `warm_fork_server`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["warm_fork_server"])
    with pytest.MonkeyPatch.context() as patch:
        # It looks for modules along the environment's path, and passes over what it does not find.
        tests = Path(__file__).parents[1]
        # The package of this tree, whichever tree is installed.
        found_in = (tests / "flows", tests, tests.parent / ".package")
        patch.setenv("PYTHONPATH", os.pathsep.join(str(folder) for folder in found_in))
        forkserver.ensure_running()
    return context


def write_campaign(
    folder: Path,
    *,
    provider: str = "transformers",
    name: str = "survivor",
    storage: str | None = None,
    budget: int = BUDGET,
    seed: int = 11,
) -> Path:
    """A campaign of six candidates on two real (random) models, with a spec and data in `folder`.

    Its results are kept in a file there, unless `storage` names another database.
    """
    (folder / STORAGE).write_text(storage or f"sqlite:///{folder}/winnow.db")
    for number in (1, 2):
        save_tiny_llama(folder / f"model-{number}", seed=number)
    with (folder / "data.jsonl").open("w") as file:
        for i in range(N_EXAMPLES):
            row = {"id": f"e{i}", "input": f"{i * 7} and {i}", "target": "aeioustrn"[i % 9]}
            file.write(json.dumps(row) + "\n")
    spec = folder / "campaign.yaml"
    spec.write_text(f"""\
name: {name}
objective: best-mean
seed: {seed}
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


def have_served(spec: Path, url: str) -> None:
    """Leave a campaign the first of its models, run by a server: processes that run it then import none."""
    text = re.sub(r"  - \{name: two,.*\n", "", spec.read_text())
    served = f"{{name: one, provider: openai, model: served, model_base_url: '{url}'}}"
    spec.write_text(re.sub(r"\{name: one,.*", served, text))


@contextmanager
def slow_server(seconds: float) -> Iterator[FaultyServer]:
    """A server that takes so long for every text, so that its campaigns are not over too soon."""

    def reply(call: Call) -> str:
        time.sleep(seconds)
        return echo(call)

    with faulty_server(reply=reply) as server:
        yield server


def store(spec: Path, *, is_trusted: bool = False) -> str:
    """Store a campaign as `winnow run` would before it starts the flow; return its storage URL."""
    from stored_campaigns import store_checked

    from winnow.tasks.setup.load import check_campaign_file

    checked = check_campaign_file(str(spec), approve=(lambda file, spec: None) if is_trusted else None)
    store_checked(checked)
    return checked.spec.storage


def start(
    context: ForkServerContext,
    folder: Path,
    storage: str,
    kill: Kill | None = None,
    *,
    prefect_api: str | None = None,
) -> BaseProcess:
    """Resume the stored campaign in a process of its own; see `asked_texts` for what it writes down.

    Args:
        context: What forks.
        folder: The campaign's.
        storage: The URL of its database.
        kill: When the process is killed.
        prefect_api: The URL of the Prefect server that it is a flow run of; by default it runs without.
    """
    (folder / "asked.jsonl").unlink(missing_ok=True)
    process = context.Process(target=_resume, args=(str(folder), storage, kill, prefect_api))
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
    found = campaigns.rows(storage_of(folder), query)
    return [
        tuple(json.dumps(each) if isinstance(each, list | dict) else each for each in row) for row in found
    ]


def storage_of(folder: Path) -> str:
    """The URL of the database that the campaign in a folder is kept in."""
    named = folder / STORAGE
    return named.read_text() if named.exists() else f"sqlite:///{folder}/winnow.db"


OF_CANDIDATES = {
    "standings": "x.estimate, x.lower, x.upper, x.status",
    "rankings": "x.score",
    "differences": "x.estimate, x.lower, x.upper",
    "bets": "x.wealth, x.level, x.out_in_round, x.out_at",
}
"""The tables of what is known of candidates, and what they hold beside the key."""
CHANGES = {
    table: f"SELECT r.number, c.name, {columns} FROM {table} x JOIN rounds r ON r.id = x.round_id "
    "JOIN candidates c ON c.id = x.candidate_id ORDER BY r.number, c.position"
    for table, columns in OF_CANDIDATES.items()
}


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
            "SELECT r.number, d.best_candidate_id, d.best_estimate, d.best_lower, d.best_upper, d.stop, "
            "d.reason FROM decisions d JOIN rounds r ON r.id = d.round_id ORDER BY r.number",
        ),
        **{table: rows(folder, query) for table, query in CHANGES.items()},
    }


def _resume(folder: str, storage: str, kill: Kill | None, prefect_api: str | None) -> None:
    _write_down_requests(Path(folder) / "asked.jsonl")
    run(storage, kill, prefect_api)


def run(storage: str, kill: Kill | None, prefect_api: str | None = None) -> None:
    """Run the stored campaign in this process, to its end or until it is killed."""
    from prefect.settings import PREFECT_API_URL, temporary_settings

    from winnow.flows.run import flow

    if kill is not None:
        kill_at_commit(kill)
    if prefect_api is None:
        leave_prefect_out(pytest.MonkeyPatch())
    with temporary_settings({PREFECT_API_URL: prefect_api}):
        flow.run_campaign(storage, "survivor")


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
