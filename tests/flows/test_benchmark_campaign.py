"""A campaign on a task of lm-eval: what it became, killed and resumed, and code that nobody allowed."""

import gzip
import shutil

import pytest
import scripted_engines
import yaml
from campaign_processes import Kill
from campaigns import one_message, winnow
from scored_campaigns import decisions_with_kills, write_scored

pytestmark = pytest.mark.usefixtures("plain_runs")

TASK = {
    "task": "letters",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": "data.jsonl.gz"}},
    "test_split": "test",
    "doc_to_text": "{{ input }}=",
    "doc_to_target": "target",
    "filter_list": [
        {"name": "bare", "filter": [{"function": "remove_whitespace"}, {"function": "take_first"}]}
    ],
    "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
}


@pytest.fixture
def write(monkeypatch):
    """Write a campaign on the task into a folder."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("knows", "guesses"):
        scripted_engines.provide(monkeypatch, name)

    def written(folder):
        fills = {"name": "row-mean", "params": {"variant": "paper"}}  # it never is sure
        path = write_scored(folder, ["knows", "guesses"], fills, budget=24)
        with (folder / "data.jsonl").open("rb") as file, gzip.open(folder / "data.jsonl.gz", "wb") as packed:
            shutil.copyfileobj(file, packed)
        (folder / "letters.yaml").write_text(yaml.safe_dump(TASK))
        spec = yaml.safe_load(path.read_text())
        for key in ("prompts", "judge"):
            del spec[key]
        spec |= {"task": {"lm_eval": "./letters.yaml"}, "dataset": {"sample": 12, "shuffle": 1}}
        path.write_text(yaml.safe_dump(spec))
        return path

    return written


def test_a_campaign_on_a_task_that_is_killed_ends_as_one_that_is_not(tmp_path, write):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    found = decisions_with_kills(whole, write(whole), [])
    assert decisions_with_kills(killed, write(killed), [Kill(commit=6, after=False)]) == found
    outcomes = [row[4] for row in found[0]["comparisons"]]
    assert len(outcomes) == 24
    assert 12 <= sum(outcomes) < 24


SCORER = """
def process_results(doc, results):
    said = results[0].strip()
    if said == doc["input"]:
        raise ValueError("repeats the question")
    return {"right": float(said == doc["target"]), "all": [said], "length": len(said)}
"""


def test_a_task_scored_by_its_own_function_is_killed_and_resumed(tmp_path, write):
    def scored(folder):
        path = write(folder)
        (folder / "utils.py").write_text(SCORER)
        metrics = [{"metric": "all", "aggregation": "bleu"}, {"metric": "right", "aggregation": "mean"}]
        task = {**TASK, "metric_list": metrics}
        text = yaml.safe_dump(task) + "process_results: !function utils.process_results\n"
        (folder / "letters.yaml").write_text(text)
        return path

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    found = decisions_with_kills(whole, scored(whole), [])
    said = winnow(whole, "validate", "campaign.yaml").stdout
    assert "metrics left out: all (aggregation: bleu); task.metric sets the metric that decides\n" in said
    assert decisions_with_kills(killed, scored(killed), [Kill(commit=6, after=False)]) == found
    rows = found[0]["comparisons"]
    assert len(rows) == 24
    assert 12 <= sum(row[4] or 0 for row in rows) < 24


def test_validate_shows_what_a_task_became(tmp_path, write):
    write(tmp_path / "work")
    said = winnow(tmp_path / "work", "validate", "campaign.yaml")
    assert said.returncode == 0, said.stderr
    shown = yaml.safe_load(said.stdout.split("keys set by the task:")[1].partition("\nnew examples:")[0])
    assert shown["prompts"] == [{"name": "letters", "template": "{{ context }}"}]
    assert shown["judge"] == {"type": "exact_match", "filters": [{"function": "remove_whitespace"}]}
    assert shown["dataset"]["sample"] == {"n": 12, "seed": 0}


def test_functions_of_a_task_are_not_run_before_somebody_allows_it(tmp_path, monkeypatch, write):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    folder = tmp_path / "work"
    write(folder)
    task = (folder / "letters.yaml").read_text()
    (folder / "letters.yaml").write_text(
        task.replace("doc_to_text: '{{ input }}='", "doc_to_text: !function utils.text")
    )
    (folder / "utils.py").write_text("open('ran', 'w')\ndef text(doc):\n    return doc['input'] + '='\n")
    refused = one_message(winnow(folder, "run", "campaign.yaml"))
    assert f"it would run 'text' of the Python file '{folder}/utils.py' (task.lm_eval)" in refused
    assert "which needs your permission to run" in one_message(winnow(folder, "validate", "campaign.yaml"))
    assert not (folder / "ran").exists()
    assert winnow(folder, "validate", "campaign.yaml", "--trust").returncode == 0
    assert (folder / "ran").exists()
