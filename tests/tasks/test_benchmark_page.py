"""The worked example of docs/how-to/use-a-benchmark.md is what it says it is."""

import json
import re
from pathlib import Path

import yaml
from typer.testing import CliRunner

from winnow.flows.cli import app
from winnow.tasks.setup.load import check_campaign_file

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-a-benchmark.md"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def test_the_task_becomes_what_the_page_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    [rows] = blocks("json")
    task, became, asked = blocks("text")
    campaign = next(block for block in blocks("yaml") if block.startswith("name:"))
    (tmp_path / "sums.jsonl").write_text(rows)
    (tmp_path / "sums.yaml").write_text(task)
    for name in ("small", "large"):
        folder = tmp_path / "path" / "to" / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps({"name": name}))
    (tmp_path / "campaign.yaml").write_text(campaign)
    said = CliRunner().invoke(app, ["validate", "campaign.yaml"])
    assert said.exit_code == 0, said.output
    shown = said.output.split("keys set by the task:")[1].partition("\nnew examples:")[0]
    assert yaml.safe_load(shown) == yaml.safe_load(became)
    checked = check_campaign_file("campaign.yaml")
    first = checked.dataset.examples[0]
    assert checked.candidates[0].prompt(first.fields, first.key) + "\n" == asked
    assert [each.fields["doc"]["level"] for each in checked.dataset.examples] == [1, 2, 1, 1, 2]


def test_the_filter_and_the_sample_of_files_are_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from winnow.tasks.data.sources import read_dataset
    from winnow.tasks.spec.sections.dataset import DatasetSpec

    values = yaml.safe_load(next(block for block in blocks("yaml") if "shards" in block))["dataset"]
    rows = [{"id": f"{i}", "question": "?", "answer": "a" * (i % 2), "level": i % 5} for i in range(600)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_dataset(DatasetSpec.model_validate({**values, "path": "rows.jsonl"}))
    assert len(found.examples) == 200
    assert all(each.fields["level"] <= 3 and each.targets for each in found.examples)
