"""Preparing the demo: once, again, and after a kill."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from winnow.infra.demo.artefacts import FINGERPRINT, replacing
from winnow.infra.demo.data import evaluation_examples
from winnow.infra.demo.errors import TrainingFailed
from winnow.infra.demo.prepare import prepare_demo
from winnow.infra.demo.processes import train_in_processes
from winnow.infra.demo.recipes import Recipe

ROOT = Path(__file__).parents[2]
RECIPES = [
    Recipe(name=name, hidden_size=32, layers=1, heads=2, steps=2, batch_size=6, mix={"letter": 1.0})
    for name in ("first", "second")
]


class Trainer:
    """Writes a file in place of a model, and remembers for whom."""

    def __init__(self, fails_at=None):
        self.trained = []
        self.fails_at = fails_at

    def __call__(self, jobs, finished):
        for job in jobs:
            with replacing(job.folder, job.fingerprint) as partial:
                partial.mkdir()
                (partial / "weights").write_text(job.recipe.name)
                if job.recipe.name == self.fails_at:
                    raise TrainingFailed(job.recipe.name, -9)
            self.trained.append(job.recipe.name)
            finished(job)


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "demo"


def prepare(folder, trainer, recipes=RECIPES, report=lambda line: None):
    prepare_demo(folder, report, recipes, trainer)


def test_makes_checkpoints_data_and_a_campaign_over_them(folder):
    lines = []
    prepare(folder, Trainer(), report=lines.append)
    assert (folder / "second" / "weights").read_text() == "second"
    data = [json.loads(line) for line in (folder / "data" / "demo.jsonl").read_text().splitlines()]
    assert data[0].keys() == {"id", "task", "input", "target"}
    assert len(data) == len(evaluation_examples())
    campaign = yaml.safe_load((folder / "campaign.yaml").read_text())
    assert [model["model"] for model in campaign["models"]] == [str(folder / "first"), str(folder / "second")]
    assert campaign["dataset"]["path"] == str(folder / "data" / "demo.jsonl")
    assert campaign["stopping"]["budget"] < 0.5 * 2 * 3 * 2 * len(data)
    assert len(lines) >= 4
    assert all(line.strip() and "\n" not in line for line in lines)


def test_a_second_call_changes_nothing(folder):
    prepare(folder, Trainer())
    before, again = contents(folder), Trainer()
    prepare(folder, again)
    assert again.trained == []
    assert contents(folder) == before


def test_only_a_changed_recipe_is_trained_again(folder):
    prepare(folder, Trainer())
    again = Trainer()
    prepare(folder, again, [RECIPES[0], replace(RECIPES[1], steps=3)])
    assert again.trained == ["second"]


def test_an_interrupted_training_keeps_what_was_finished_and_nothing_half_done(folder):
    with pytest.raises(TrainingFailed, match=r"'second'.*exit code -9.*run the demo again"):
        prepare(folder, Trainer(fails_at="second"))
    assert (folder / "first" / "weights").exists()
    assert not (folder / "second").exists()
    again = Trainer()
    prepare(folder, again)
    assert again.trained == ["second"]
    assert not list(folder.glob(".*.partial"))


def test_a_folder_that_was_never_completed_is_made_again(folder):
    prepare(folder, Trainer())
    (folder / "first" / FINGERPRINT).unlink()
    again = Trainer()
    prepare(folder, again)
    assert again.trained == ["first"]


def test_a_campaign_that_the_user_changed_is_kept(folder):
    prepare(folder, Trainer())
    campaign = folder / "campaign.yaml"
    campaign.write_text(campaign.read_text().replace("seed: 7", "seed: 8"))
    prepare(folder, Trainer())
    assert "seed: 8" in campaign.read_text()


def test_a_folder_name_that_yaml_would_misread_is_quoted(tmp_path):
    folder = tmp_path / "de mo: #1"
    prepare(folder, Trainer())
    campaign = yaml.safe_load((folder / "campaign.yaml").read_text())
    assert campaign["models"][0]["model"] == str(folder / "first")
    assert campaign["storage"] == f"sqlite:///{folder}/winnow.db"


def test_nothing_slow_is_imported_when_all_is_there(folder):
    prepare(folder, Trainer())
    code = (
        "import sys, pathlib; from test_demo_preparation import RECIPES; "
        "from winnow.infra.demo.prepare import prepare_demo; "
        "prepare_demo(pathlib.Path(sys.argv[1]), print, RECIPES); "
        "print(sorted({'torch', 'transformers', 'tokenizers', 'vllm'} & set(sys.modules)))"
    )
    path = f"{ROOT}:{Path(__file__).parent}"
    result = subprocess.run(
        [sys.executable, "-c", code, folder],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.splitlines()[-1] == "[]"


def test_real_training_in_processes_puts_checkpoints_in_place(folder):
    prepare(folder, train_in_processes, RECIPES[:1])
    assert (folder / "first" / "model.safetensors").exists()
    assert (folder / "first" / FINGERPRINT).exists()


def test_a_training_process_that_dies_is_named(folder, tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise ImportError('no such luck')")
    monkeypatch.syspath_prepend(tmp_path)  # for new processes alone: this one has the real one if any
    with pytest.raises(TrainingFailed, match=r"'first' ended with exit code 1;"):
        prepare(folder, train_in_processes, RECIPES[:1])
    assert not (folder / "first").exists()
