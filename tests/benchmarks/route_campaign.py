"""A real routed campaign on the demo's models through vLLM, killed on the way, beside what all would score.

The demo's campaign is run in a folder of its own, killed with SIGKILL in the middle and resumed; then every
candidate answers every prompt, so that the best one for each kind of prompt is known.
"""

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import yaml

from tests.benchmarks.tables import Row
from winnow.algorithms.route.metrics import is_optimal
from winnow.storage.engine.database import Database, open_database
from winnow.storage.queries import campaign_views
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records

MODELS = Path(".winnow") / "demo"
KILL_AFTER = 200
"""Comparisons."""
LATE = 150
"""The last prompts, for which the most has been learned."""


def measure() -> list[Row]:
    """Rows for the whole stream and for its end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(MODELS, folder / MODELS, ignore=shutil.ignore_patterns("winnow.db*", "*.yaml*"))
        _run_and_kill(folder)
        _winnow(folder, "demo", "--objective", "route")
        _winnow(folder, "run", str(_exhaustive(folder)))
        with closing(open_database(f"sqlite:///{folder / MODELS / 'winnow.db'}")) as database:
            return _rows(database)


def _run_and_kill(folder: Path) -> None:
    process = subprocess.Popen(_command("demo", "--objective", "route"), cwd=folder, start_new_session=True)
    path = folder / MODELS / "winnow.db"
    while process.poll() is None:
        time.sleep(0.1)
        if path.exists() and _stored(path) >= KILL_AFTER:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return
    raise RuntimeError("the campaign ended before it could be killed")


def _stored(path: Path) -> int:
    import sqlite3

    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM comparisons").fetchone()[0])
    except sqlite3.OperationalError:  # it has no tables yet
        return 0


def _exhaustive(folder: Path) -> Path:
    """The same candidates and prompts as a benchmark of which nothing is left out."""
    spec = yaml.safe_load((folder / MODELS / "route.yaml").read_text())
    for key in ("embedder", "prompt_type"):
        del spec[key]
    spec |= {
        "name": "everything",
        "objective": "best-mean",
        "selector": {"name": "filled-subset"},
        "batch_size": 256,
        "stopping": {"budget": 100_000},
    }
    path = folder / "everything.yaml"
    path.write_text(yaml.safe_dump(spec))
    return path


def _rows(database: Database) -> list[Row]:
    with database.reading() as session:
        routed = campaign_records.get_campaign(session, "demo-routes")
        everything = campaign_records.get_campaign(session, "everything")
        names = campaign_records.candidate_names(session, routed.id)
        examples = dataset_records.examples(session, routed.dataset_id)
        picked = list(campaign_views.comparisons(session, routed.id))
        every = list(campaign_views.comparisons(session, everything.id))
    place = {example.key: position for position, example in enumerate(examples)}
    kinds = [str(example.fields["task"]) for example in examples]
    scores = np.full((len(examples), len(names)), np.nan)
    for row in every:
        scores[place[row["example"]], names.index(row["candidate"])] = row["outcome"]
    means = {kind: scores[[each == kind for each in kinds]].mean(axis=0) for kind in sorted(set(kinds))}
    prompts = np.array([place[row["example"]] for row in picked])
    arms = np.array([names.index(row["candidate"]) for row in picked])
    expected = np.array([means[kinds[prompt]] for prompt in prompts])  # (T, K)
    single = int(scores.mean(axis=0).argmax())
    parts = {"all": slice(None), f"the last {LATE}": slice(-LATE, None)}
    return [
        {
            "prompts": title,
            "router's optimal picks": f"{is_optimal(arms[part], expected[part]).mean():.3f}",
            "those of the best single": (
                f"{is_optimal(np.full_like(arms[part], single), expected[part]).mean():.3f}"
            ),
            "router's mean score": f"{scores[prompts[part], arms[part]].mean():.3f}",
            "that of the best single": f"{scores[prompts[part], single].mean():.3f}",
            "best for each kind": f"{expected[part].max(axis=1).mean():.3f}",
            "best single": names[single],
        }
        for title, part in parts.items()
    ]


def _winnow(folder: Path, *arguments: str) -> None:
    subprocess.run(_command(*arguments), cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _command(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).parent / "winnow"), *arguments]
