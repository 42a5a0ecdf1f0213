"""One unfinished campaign of each objective, begun before campaigns stored their rules.

`unfinished.db.gz` and `unfinished.json` were made once, by this module as a program with a new folder as its
argument, with the code before campaigns stored their rules. Run again with later code, it would compare that
code with itself.
"""

import gzip
import json
import os
import shutil
import sqlite3
import sys
from contextlib import chdir, closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import yaml
from campaigns import winnow
from without_prefect import leave_prefect_out

from tests.golden_database.campaigns import HERE, outcome
from winnow.tasks.engines.providers import PROVIDERS

PACKED = HERE / "unfinished.db.gz"
OUTCOMES = HERE / "unfinished.json"
DATABASE = "unfinished.db"
STORAGE = f"sqlite:///{DATABASE}"
N_EXAMPLES, N_LABELS = 60, 330
TARGETS = "aeioustrn"


def spec(name: str, objective: str, stopping: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A campaign of two models with two prompts each."""
    return {
        "name": name,
        "objective": objective,
        "seed": 3,
        "storage": STORAGE,
        "models": [{"name": each, "provider": "digest", "model": "model"} for each in ("one", "two")],
        "prompts": [
            {"name": "plain", "template": "[{{ input }}]="},
            {"name": "long", "template": "{{ input }}:"},
        ],
        "dataset": {"path": "data.jsonl", "fields": {"id": "id", "input": "input", "target": "target"}},
        "judge": {"type": "contains"},
        "batch_size": 16,
        "stopping": stopping,
        **changes,
    }


def _selector(name: str, **params: Any) -> dict[str, Any]:
    return {"name": name, "params": params} if params else {"name": name}


RIGHT = {"dataset": {"path": "right.jsonl", "fields": {"id": "id", "input": "input", "target": "targets"}}}
COSTS = {"one/plain": 1, "one/long": 2, "two/plain": 3, "two/long": 4}
DUELS = {"judge": {"type": "rules", "scorer": {"type": "contains"}, "both_right": "shorter"}}
CERTIFY = {
    "certify": {"alpha": 0.65, "cost": "custom", "costs": COSTS},
    "dataset": {"path": "labels.jsonl", "fields": {"id": "id", "input": "input", "target": "target"}},
}
CAMPAIGNS = {
    each["name"]: each
    for each in (
        spec("champion", "best-mean", {"budget": 80, "delta": 0.05}, selector=_selector("champion")),
        spec(
            "all-right", "best-mean", {"budget": 80, "delta": 0.05}, selector=_selector("champion"), **RIGHT
        ),
        spec("race", "best-mean", {"budget": 80, "delta": 0.1, "epsilon": 0.1}, selector=_selector("race")),
        spec("top", "best-mean", {"budget": 80, "delta": 0.1}, selector=_selector("champion", top_m=2)),
        spec(
            "cheapest",
            "best-mean",
            {"budget": 80, "delta": 0.1, "epsilon": 0.2},
            selector=_selector("champion", prefer="cost", costs=COSTS),
        ),
        spec("halving", "best-mean", {"budget": 70}, selector=_selector("halving")),
        spec(
            "gate",
            "best-mean",
            {"budget": 64, "delta": 0.1},
            selector=_selector("gate", baseline="one/plain"),
        ),
        spec("duels", "best-duel", {"budget": 64, "delta": 0.1}, selector=_selector("llm-po"), **DUELS),
        spec(
            "labels",
            "certify",
            {"budget": {"human_labels": 320, "tokens": 700}, "delta": 0.1},
            selector=_selector("r-eval"),
            **CERTIFY,
        ),
        spec(
            "routed",
            "route",
            {"budget": {"comparisons": 24}},
            selector=_selector("pak-ucb", kernel="linear", eta=0.5),
            embedder={"model": "model"},
        ),
    )
}
RAISED: dict[str, Any] = {
    "labels": {"human_labels": 320, "tokens": 1_000_000},
    "routed": {"comparisons": 48},
    "duels": 200,
    "halving": 120,
}
"""Budgets with which the campaigns go on; 240 comparisons, the whole grid, where none is given."""


def unpack(folder: Path) -> None:
    """Put the database and what its campaigns refer to into a folder."""
    with gzip.open(PACKED) as packed, (folder / DATABASE).open("wb") as file:
        shutil.copyfileobj(packed, file)
    place_files(folder)


def place_files(folder: Path) -> None:
    shutil.copytree(HERE / "files", folder, dirs_exist_ok=True)
    files = (("data.jsonl", N_EXAMPLES), ("right.jsonl", N_EXAMPLES), ("labels.jsonl", N_LABELS))
    for name, count in files:
        rows = [
            {
                "id": f"e{i}",
                "input": f"{i * 7} and {i}",
                "target": TARGETS[i % len(TARGETS)],
                "targets": [*TARGETS],
            }
            for i in range(count)
        ]
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def budget_of(name: str) -> tuple[str, ...]:
    """Options of `winnow resume` that give a campaign enough to go on."""
    return ("--set", f"stopping.budget={json.dumps(RAISED.get(name, 240))}")


def last_claim(database: Path, name: str) -> dict[str, Any]:
    """The claim of the last decision of a campaign."""
    query = (
        "SELECT d.claim FROM decisions d JOIN rounds r ON r.id = d.round_id "
        "JOIN campaigns m ON m.id = r.campaign_id WHERE m.name = ? ORDER BY r.number DESC LIMIT 1"
    )
    with closing(sqlite3.connect(database)) as connection:
        return dict(json.loads(connection.execute(query, (name,)).fetchone()[0]))


def found_of(database: Path, name: str) -> dict[str, Any]:
    """What was asked and decided by a campaign so far."""
    return {**outcome(database, name), "claim": last_claim(database, name)}


def _begin(folder: Path, values: dict[str, Any]) -> None:
    (folder / "campaign.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    process = get_context("fork").Process(target=_run, args=(folder, values["name"]))
    process.start()
    process.join()
    if process.exitcode != 0:
        raise SystemExit(f"{values['name']} ended with {process.exitcode}")


def _run(folder: Path, name: str) -> None:
    ran = winnow(folder, "run", "campaign.yaml", "--trust")
    print(name, ran.returncode, ran.stdout[:300], ran.stderr[-300:], flush=True)
    os._exit(0 if ran.returncode in (0, 3) else 1)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir()
    place_files(folder)
    patch = pytest.MonkeyPatch()
    patch.setitem(PROVIDERS, "digest", "tests.faults.digest_engine:start")
    leave_prefect_out(patch)
    for values in CAMPAIGNS.values():
        _begin(folder, values)
    with closing(sqlite3.connect(folder / DATABASE)) as database:
        with database:
            database.execute("UPDATE leases SET host = 'golden', pid = 1, boot_id = '', pid_namespace = ''")
            database.execute("DELETE FROM file_digests")
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("VACUUM")
    left = {name: found_of(folder / DATABASE, name) for name in CAMPAIGNS}
    with (
        (folder / DATABASE).open("rb") as file,
        PACKED.open("wb") as to,
        gzip.GzipFile(fileobj=to, mode="wb", mtime=0, filename="") as packed,
    ):
        shutil.copyfileobj(file, packed)
    found = {}
    with chdir(folder):
        for name in CAMPAIGNS:
            ran = winnow(folder, "resume", name, "--storage", STORAGE, "--trust", *budget_of(name))
            print(name, ran.returncode, ran.stdout[:200], ran.stderr[-300:], flush=True)
            assert ran.returncode in (0, 3), ran.stderr
            found[name] = {"left": left[name], "ended": found_of(folder / DATABASE, name)}
    OUTCOMES.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
