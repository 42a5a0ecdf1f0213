"""The demo's routes: a campaign file that is sound, and a stream that mixes all kinds of prompts."""

import json

import pytest
from test_demo_preparation import Trainer

from winnow.infra.demo.data import evaluation_examples
from winnow.infra.demo.prepare import prepare_routes
from winnow.infra.demo.problems import TASKS
from winnow.infra.demo.recipes import ROUTED
from winnow.tasks.setup.load import check_campaign_file


@pytest.fixture
def checked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = prepare_routes(tmp_path / "demo", print, train=Trainer())
    for recipe in ROUTED:
        (tmp_path / "demo" / recipe.name / "config.json").write_text("{}")
        (tmp_path / "demo" / recipe.name / "model.safetensors").write_bytes(bytes(recipe.hidden_size))
    return check_campaign_file(str(spec))


def test_the_campaign_is_sound(checked):
    assert checked.spec.prompt_type == "task"
    assert checked.embedding.dim == 384
    assert {each.names.model for each in checked.candidates} == {recipe.name for recipe in ROUTED}
    assert checked.spec.stopping.budget == len(checked.dataset.examples)


def test_the_stream_holds_every_example_and_begins_with_every_kind(checked, tmp_path):
    lines = (tmp_path / "demo" / "data" / "stream.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert sorted(row["id"] for row in rows) == sorted(each.id for each in evaluation_examples())
    assert {row["task"] for row in rows[:40]} == set(TASKS)
