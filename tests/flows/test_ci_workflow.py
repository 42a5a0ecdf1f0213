"""The workflow of the page on continuous integration: its commands run, and end as the page says."""

import shlex
from pathlib import Path
from string import Template

import pytest
import scripted_engines
import yaml
from campaign_processes import rows
from campaigns import winnow
from scored_campaigns import write_scored

pytestmark = pytest.mark.usefixtures("plain_runs")

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / "examples" / "ci" / "gate.yml"
ENVIRONMENT = {"GITHUB_RUN_ID": "4711", "GITHUB_STEP_SUMMARY": "summary.md", "BASELINE": "knows/plain"}


@pytest.fixture(autouse=True)
def engines(monkeypatch):
    for name in ("knows", "slips", "guesses"):
        scripted_engines.provide(monkeypatch, name)


def winnow_steps():
    (job,) = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
    for step in job["steps"]:
        words = shlex.split(Template(step.get("run", "")).safe_substitute(ENVIRONMENT))
        if words[:1] == ["winnow"]:
            yield words[1:]


def codes(folder):
    return {words[0]: winnow(folder, *words).returncode for words in winnow_steps()}


def test_the_page_shows_the_file():
    page = (ROOT / "docs" / "how-to" / "ci.md").read_text()
    assert f"```yml\n{WORKFLOW.read_text()}```" in page


@pytest.mark.parametrize(("other", "code", "said"), [("slips", 0, "no worse"), ("guesses", 4, "worse")])
def test_the_job_passes_or_fails_by_what_the_gate_shows(tmp_path, other, code, said):
    write_scored(tmp_path, ["knows", other], {"name": "champion"})
    assert codes(tmp_path) == {"validate": 0, "gate": code, "report": 0}
    assert said in (tmp_path / "summary.md").read_text()
    assert (tmp_path / "gate.xml").is_file()
    assert (tmp_path / "gate.html").is_file()
    assert codes(tmp_path) == {"validate": 0, "gate": code, "report": 0}  # the job is started again


def test_a_run_on_a_cached_database_pays_only_for_what_is_new(tmp_path, monkeypatch):
    write_scored(tmp_path, ["knows", "slips"], {"name": "champion"})
    assert codes(tmp_path)["gate"] == 0
    monkeypatch.setitem(ENVIRONMENT, "GITHUB_RUN_ID", "4712")
    assert codes(tmp_path)["gate"] == 0
    texts = dict(rows(tmp_path, "SELECT campaign, sum(generations) FROM v_costs GROUP BY 1"))
    assert texts["gate-4711"] > 0
    assert texts.get("gate-4712", 0) == 0
