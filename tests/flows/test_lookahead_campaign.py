"""Rounds in flight: planned ahead, answered in any order, told in the order of asking, resumed as they were."""

import json

import pytest
import scripted_engines
import yaml
from sqlalchemy import event
from sqlalchemy.orm import Session
from tiny_models import save_tiny_llama
from without_prefect import leave_prefect_out

from winnow.flows.run import flow
from winnow.flows.run.launch import store_campaign
from winnow.storage.engine.database import open_database
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
        "storage": f"sqlite:///{folder}/{name}.db",
        "models": models,
        "prompts": [
            {"name": "plain", "template": "{{ input }}="},
            {"name": "asked", "template": "Q {{ input }}:"},
        ],
        "dataset": {"path": "data.jsonl", "fields": {"id": "id", "input": "input", "target": "target"}},
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


def run(path):
    checked = check_campaign_file(str(path))
    store_campaign(checked)
    flow.run_campaign(checked.spec.storage, checked.spec.name)
    return checked.spec.storage
