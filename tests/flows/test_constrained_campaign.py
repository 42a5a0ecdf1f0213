"""The best of those that meet constraints, the whole way from a file to an answer, on scripted models."""

import json

import pytest
import scripted_engines
import yaml
from campaign_processes import rows
from scored_campaigns import KILLS, decisions_with_kills, write_scored
from test_command_line import winnow

pytestmark = pytest.mark.usefixtures("plain_runs")

NAMES = ["talks", "slips", "guesses"]
METRICS = [{"name": "bare", "judge": {"type": "exact"}}]
"""Whoever answers in a sentence has the highest score, and never the value 1."""


def write_constrained(folder, **constraint):
    path = write_scored(folder, NAMES, {"name": "champion"}, judge={"type": "contains"}, epsilon=0.0)
    spec = yaml.safe_load(path.read_text())
    spec |= {"metrics": METRICS, "constraints": [{"metric": "bare", **constraint}]}
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return path


@pytest.fixture(autouse=True)
def engines(monkeypatch):
    for name in NAMES:
        scripted_engines.provide(monkeypatch, name)


def test_the_answer_names_the_best_of_those_that_meet_the_constraints(tmp_path):
    write_constrained(tmp_path, at_least=0.9)
    assert "; the best is that of those which meet bare at least 0.9" in said(tmp_path, "validate")
    result = winnow(tmp_path, "run", "campaign.yaml")
    assert result.returncode == 0, result.stderr
    print(result.stdout)
    assert result.stdout.startswith("survivor: winner, proven\n")
    assert 0


def said(folder, command):
    return winnow(folder, command, "campaign.yaml").stdout
