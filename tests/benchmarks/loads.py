"""`make bench-loads`: loads of a campaign with more models than places, planned and in the naive order.

12 candidates on 6 checkpoints, 2 of them in memory at once, on real vLLM engines. The naive order asks models
as the spec names them, and the least recently used makes room. Both choose, score and decide the same. Then
five engines are loaded, asked and closed one after the other, with vLLM imported once and by each of them.

python -m tests.benchmarks.loads --out .winnow/bench --rounds 4
"""

import argparse
import json
import os
import platform
import sqlite3
import tempfile
import time
from collections.abc import Collection, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any, NamedTuple
from unittest import mock

from tests.benchmarks.measurements import cpu_name
from tests.tiny_models import save_tiny_llama
from winnow.storage.admin.schema import ensure_schema
from winnow.storage.engine.database import open_database
from winnow.storage.queries.campaign_views import totals
from winnow.tasks.campaign.session import running
from winnow.tasks.engines.pool.loads_and_evictions import Allocation, ResidentModel, allocation_for
from winnow.tasks.engines.protocol import Completion, ModelRef, Request, Sampling
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.engines.vllm import WORKER, WORKER_ENVIRONMENT
from winnow.tasks.engines.vllm.engine import VllmEngine
from winnow.tasks.objectives.runner import Runner
from winnow.tasks.processes.fork_server import forking
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign

CHECKPOINTS = 6
CANDIDATES = 2 * CHECKPOINTS
LOADED = 2
BATCH = 4 * CANDIDATES
MODEL_ARGS = {"max_model_len": 64, "dtype": "float32"}


_TEXT = Template("""\
name: loads
objective: best-mean
seed: 3
storage: sqlite:///$database
models:
$models
prompts:
  - {name: plain, template: "{{ input }}="}
  - {name: question, template: "Q: {{ input }} A:"}
dataset: {path: $data}
judge: {type: contains}
selector: {name: row-mean}
batch_size: $batch
stopping: {budget: $budget}
execution: {max_loaded: $loaded, log_folder: $logs}
""")


ENGINES = 5
"""Loaded one after the other."""

IMPORTS = ("once", "by each engine")


class Run(NamedTuple):
    order: str
    imports: str
    loads: int
    loading: float
    """Seconds of loading."""
    answering: float
    """Seconds of generation."""
    wall: float
    processor: float
    """Seconds of all processors, ours and those of the engines."""
    decisions: Sequence[Any]

    def line(self) -> str:
        share = self.loading / (self.loading + self.answering)
        return (
            f"{self.order}, imports {self.imports}: {self.loads} loads, {self.loading:.1f} s of loading and "
            f"{self.answering:.1f} s of generation ({share:.0%} of both is loading), "
            f"{self.wall:.1f} s in all, {self.processor:.1f} s of processors"
        )


class OneByOne(NamedTuple):
    """Engines that were loaded, asked and closed one after the other."""

    imports: str
    wall: float
    processor: float
    texts: Sequence[str]

    def line(self) -> str:
        return (
            f"{ENGINES} engines one after the other, imports {self.imports}: {self.wall:.1f} s, "
            f"{self.processor:.1f} s of processors"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--provider", default="vllm", help="transformers counts loads, and quickly")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(CHECKPOINTS):
            save_tiny_llama(folder / f"m{number}", seed=number)
        checkpoints = [str(folder / f"m{number}") for number in range(CHECKPOINTS)]
        runs, rows = [], []
        for imports in IMPORTS:
            with imported(imports):
                runs.append(_run(folder, "planned", imports, options.rounds, options.provider))
                print(runs[-1].line(), flush=True)
                if options.provider == "vllm":
                    rows.append(_one_by_one(checkpoints[:ENGINES], folder, imports))
                    print(rows[-1].line(), flush=True)
        with naive_order(checkpoints):
            runs.append(_run(folder, "naive", "once", options.rounds, options.provider))
            print(runs[-1].line(), flush=True)
    assert all(run.decisions == runs[0].decisions for run in runs), "how models load changed a decision"
    assert all(row.texts == rows[0].texts for row in rows), "how vLLM is imported changed a text"
    print(f"the {len(runs[0].decisions)} decisions of all are the same")
    _write(runs, rows, options.rounds, options.out)


@contextmanager
def imported(imports: str) -> Generator[None]:
    """Have vLLM imported once for all engines, or by each of them."""
    if imports == "once":
        yield
        return
    with mock.patch("winnow.tasks.processes.worker_process.fork_worker", return_value=None):
        yield


@contextmanager
def processor_time() -> Generator[list[float]]:
    """A list that holds in the end the processor seconds of the block, those of ended children included."""
    spent: list[float] = []
    before = sum(os.times()[:4])
    yield spent
    spent.append(sum(os.times()[:4]) - before)


@contextmanager
def naive_order(checkpoints: Sequence[str]) -> Generator[None]:
    """Have models asked as the spec names them, and the least recently used make room."""

    def order(wanted: Sequence[str], **_: object) -> list[str]:
        return sorted(wanted, key=lambda key: checkpoints.index(json.loads(key)[1]))

    def allocation(
        width: int,
        *,
        resident: Sequence[ResidentModel],
        waiting: Collection[str] = (),
        later: Collection[str] = (),
        **rest: Any,
    ) -> Allocation | None:
        return allocation_for(width, resident=[replace(each, priority=0.0) for each in resident], **rest)

    with (
        mock.patch("winnow.tasks.engines.pool.request_scheduler.asking_order", order),
        mock.patch("winnow.tasks.engines.pool.slots.allocation_for", allocation),
    ):
        yield


def _one_by_one(checkpoints: Sequence[str], folder: Path, imports: str) -> OneByOne:
    texts: list[str] = []
    started = time.perf_counter()
    log = folder / "imports.log"
    with processor_time() as spent, forking(WORKER, log=log, environment=WORKER_ENVIRONMENT):
        for number, checkpoint in enumerate(checkpoints):
            model = ModelRef(name=f"m{number}", provider="vllm", model=checkpoint, model_args=MODEL_ARGS)
            with closing(VllmEngine(model, EngineSettings(log_folder=folder))) as engine:
                (answer,) = engine.generate([Request(prompt="1+1=", sampling=Sampling(max_tokens=8), seed=1)])
            assert isinstance(answer, Completion)
            texts.append(answer.text)
    return OneByOne(imports, time.perf_counter() - started, spent[0], texts)


def _run(folder: Path, order: str, imports: str, rounds: int, provider: str) -> Run:
    database = folder / f"{order} {imports}.db"
    checked = check_campaign_file(str(_spec(folder, order, database, rounds, provider)))
    with closing(open_database(checked.spec.storage)) as opened:
        ensure_schema(opened)
        record = open_campaign(opened, checked)
        started = time.perf_counter()
        with (
            processor_time() as used,
            running(opened, record, checked) as campaign,
            Runner(campaign) as runner,
        ):
            runner.run()
        wall = time.perf_counter() - started
        with opened.reading() as session:
            spent = totals(session, record.id)
    assert spent["scored"] == spent["comparisons"] == rounds * BATCH, "an engine failed: see its log"
    return Run(
        order,
        imports,
        spent["loads"],
        spent["load_seconds"],
        spent["engine_seconds"],
        wall,
        used[0],
        _decisions(database),
    )


def _spec(folder: Path, order: str, database: Path, rounds: int, provider: str) -> Path:
    args = json.dumps(MODEL_ARGS)
    models = "\n".join(
        f"  - {{name: m{number}, provider: {provider}, model: {folder}/m{number}, model_args: {args}}}"
        for number in range(CHECKPOINTS)
    )
    data = folder / "data.jsonl"
    data.write_text("".join(f'{{"input": "{i}+{i}", "target": "{i % 9}"}}\n' for i in range(60)))
    spec = folder / f"{order}.yaml"
    spec.write_text(
        _TEXT.substitute(
            database=database,
            models=models,
            data=data,
            batch=BATCH,
            budget=rounds * BATCH,
            loaded=LOADED,
            logs=folder / f"logs-{order}",
        )
    )
    return spec


def _decisions(database: Path) -> Sequence[Any]:
    with closing(sqlite3.connect(database)) as connection:
        query = (
            "SELECT r.number, r.arms, r.examples, d.best_candidate_id, d.stop, d.reason FROM decisions d "
            "JOIN rounds r ON r.id = d.round_id ORDER BY r.number"
        )
        known = "SELECT * FROM standings ORDER BY round_id, candidate_id"
        return connection.execute(query).fetchall() + connection.execute(known).fetchall()


def _write(runs: Sequence[Run], rows: Sequence[OneByOne], rounds: int, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    lines = [
        f"Measured on {cpu_name()}, Python {platform.python_version()}: {CANDIDATES} candidates on "
        f"{CHECKPOINTS} checkpoints, max_loaded: {LOADED}, {rounds} rounds of {BATCH}; same decisions.",
        "",
        "| order | vLLM is imported | loads | loading (s) | generation (s) | share of loading | wall (s) | "
        "processors (s) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        share = run.loading / (run.loading + run.answering)
        lines.append(
            f"| {run.order} | {run.imports} | {run.loads} | {run.loading:.1f} | {run.answering:.1f} | "
            f"{share:.0%} | {run.wall:.1f} | {run.processor:.1f} |"
        )
    lines += ["", f"{ENGINES} engines loaded, asked and closed one after the other:", ""]
    lines += ["| vLLM is imported | wall (s) | processors (s) |", "|---|---|---|"]
    lines += [f"| {row.imports} | {row.wall:.1f} | {row.processor:.1f} |" for row in rows]
    (out / "loads.md").write_text("\n".join(lines) + "\n")
    print(f"written to {out / 'loads.md'}")


if __name__ == "__main__":
    main()
