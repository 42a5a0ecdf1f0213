"""Rounds in flight: planned ahead, answered in any order, told in the order of asking, resumed as they were."""

import json
import threading
from contextlib import suppress

import campaign_processes as processes
import pytest
import scripted_engines
import yaml
from sqlalchemy import event
from sqlalchemy.orm import Session
from tiny_models import save_tiny_llama
from without_prefect import leave_prefect_out

from winnow.flows.run import flow
from winnow.flows.run.launch import store_campaign
from winnow.tasks.setup.load import check_campaign_file

N_EXAMPLES = 60


class Killed(BaseException):
    """The process is gone."""


@pytest.fixture(autouse=True)
def plainly(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    leave_prefect_out(monkeypatch)
    scripted_engines.provide(monkeypatch, "joining")
    scripted_engines.JOINING.clear()


def write(folder, *, name="ahead", n_models=2, **changes):
    """The file of a campaign of four candidates on scripted engines."""
    folder.mkdir(exist_ok=True)
    models = []
    for number in range(n_models):
        model = folder / f"model-{number}"
        model.mkdir(exist_ok=True)
        (model / "config.json").write_text(json.dumps({"name": model.name}))
        models.append({"name": f"m{number}", "provider": "joining", "model": str(model)})
    rows = [{"id": f"e{n}", "input": f"{n}", "target": "abcdefg"[n % 7]} for n in range(N_EXAMPLES)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {
        "name": name,
        "objective": "best-mean",
        "seed": 5,
        "storage": f"sqlite:///{folder}/winnow.db",
        "models": models,
        "prompts": [
            {"name": "plain", "template": "{{ input }}="},
            {"name": "asked", "template": "Q {{ input }}:"},
        ],
        "dataset": {"path": str(folder / "data.jsonl"), "fields": {"id": "id", "input": "input", "target": "target"}},
        "judge": {"type": "exact"},
        "selector": {"name": "champion"},
        "batch_size": 8,
        "lookahead": 2,
        "stopping": {"budget": 240, "delta": 0.05},
        "execution": {"log_folder": str(folder / "logs")},
        **changes,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return path


def stored(path):
    """A campaign's file, checked and stored."""
    checked = check_campaign_file(str(path))
    store_campaign(checked)
    return checked.spec


def run(path):
    """Run a campaign to its end, or go on with it."""
    spec = stored(path)
    flow.run_campaign(spec.storage, spec.name)


def is_killed(path, commit, *, after):
    """Go on with a campaign until this commit, counted from the one of the lease, is about to be made or was.

    Nothing is committed from then on. Returns whether it came so far.
    """
    spec, made, killed = stored(path), [], []

    def count(session):
        is_ours = threading.current_thread() is threading.main_thread()
        if is_ours and session.get_bind().get_execution_options().get("winnow_writes"):
            made.append(session)
            if killed or len(made) == commit:
                killed.append(session)
                raise Killed

    moment = "after_commit" if after else "before_commit"
    event.listen(Session, moment, count)
    try:
        with suppress(Killed):
            flow.run_campaign(spec.storage, spec.name)
    finally:
        event.remove(Session, moment, count)
    return bool(killed)


def history(folder):
    """All that must be the same however often it was killed, and after which round each was planned."""
    planned = processes.rows(folder, "SELECT number, planned_after FROM rounds ORDER BY number")
    return {**processes.history(folder), "planned": planned}


TURNS = [(3, False), (2, True), (2, True)]
"""Until then a process commits its lease and one thing more; each boundary meets both in some round."""


@pytest.mark.parametrize("selector", ["champion", "ucb-e"])
def test_killed_at_every_commit_boundary_it_ends_as_uninterrupted(tmp_path, selector):
    changes = {"selector": {"name": selector}, "stopping": {"budget": 56, "delta": 0.05}}
    run(write(tmp_path / "whole", **changes))
    path = write(tmp_path / "killed", **changes)
    kills = 0
    while is_killed(path, TURNS[kills % 3][0], after=TURNS[kills % 3][1]):
        kills += 1
    whole, killed = history(tmp_path / "whole"), history(tmp_path / "killed")
    assert kills >= 20
    assert max(number - after for number, after in whole["planned"]) == 2
    assert killed == whole
