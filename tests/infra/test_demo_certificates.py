"""The demo's certificate: a campaign file that is sound, and examples whose targets nobody sees."""

import json

import pytest
from test_demo_preparation import Trainer

from winnow.infra.demo.prepare import prepare_certificate
from winnow.infra.demo.recipes import CERTIFIED
from winnow.tasks.setup.load import check_campaign_file


@pytest.fixture
def checked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = prepare_certificate(tmp_path / "demo", print, train=Trainer())
    for recipe in CERTIFIED:
        (tmp_path / "demo" / recipe.name / "config.json").write_text("{}")
        (tmp_path / "demo" / recipe.name / "model.safetensors").write_bytes(bytes(recipe.hidden_size))
    return check_campaign_file(str(spec))


def test_the_campaign_is_sound_and_waits_for_humans(checked):
    certification = checked.certification
    assert certification.autoevaluator.model.name == "large"
    assert certification.parts.blocks.shape == (200, 2)
    assert not any(each.targets for each in checked.dataset.examples)
    assert [each.names.model for each in checked.candidates] == [recipe.name for recipe in CERTIFIED]


def test_there_is_a_label_for_every_example(checked, tmp_path):
    lines = (tmp_path / "demo" / "data" / "labels.jsonl").read_text().splitlines()
    labels = {row["id"]: row["target"] for row in map(json.loads, lines)}
    assert set(labels) == {each.key for each in checked.dataset.examples}
    assert all(labels.values())
