"""Commands on a campaign of best mean load no module of another objective, of people, or of a satellite."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from faulty_server import faulty_server
from served_campaigns import write_data

TESTS = Path(__file__).parents[1]

COMMAND = """
import atexit, sys
import pytest
from without_prefect import leave_prefect_out
if sys.argv[1] == "run":
    leave_prefect_out(pytest.MonkeyPatch())
atexit.register(lambda: print("MODULES", *sys.modules, file=sys.stderr))
from winnow.flows.main import main
sys.argv[0] = "winnow"
main()
"""

ELSEWHERE = (
    "algorithms.best_duel", "algorithms.certify", "algorithms.papers", "algorithms.route",
    "flows.cli.labels", "flows.cli.plan", "flows.cli.results.dashboards", "flows.cli.routes",
    "flows.cli.simulate", "flows.reports.dashboard", "flows.reports.export.trackers", "flows.simulate",
    "storage.queries.objective.certify", "storage.queries.objective.duels",
    "storage.queries.objective.route", "storage.records.annotations", "storage.records.labels",
    "tasks.engines.litellm", "tasks.engines.ray", "tasks.harness", "tasks.judges.code",
    "tasks.objectives.best_duel", "tasks.objectives.certify", "tasks.objectives.human",
    "tasks.objectives.route", "tasks.simulation",
)  # fmt: skip
"""Packages and modules of duels, certificates, routes and people, and satellites."""

OF_OTHER_RUNS = (
    "flows.notify.messages", "tasks.campaign.earlier_scores", "tasks.data.hub", "tasks.engines.external",
    "tasks.engines.transformers", "tasks.engines.vllm.engine", "tasks.judges.human",
    "tasks.judges.isolated", "tasks.judges.pairwise", "tasks.judges.plugin", "tasks.judges.pointwise",
    "tasks.objectives.best_mean.holdout.selector", "tasks.setup.unread_targets",
)  # fmt: skip
"""Packages and modules of campaigns with webhooks, history, holdout, plug-ins, other models or judges."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the file of a campaign whose only model a server runs."""
    folder = tmp_path_factory.mktemp("loaded")
    write_data(folder)
    with faulty_server() as server:
        spec = {
            "name": "letters",
            "objective": "best-mean",
            "seed": 1,
            "models": [
                {"name": "one", "provider": "openai", "model": "served", "model_base_url": server.url}
            ],
            "prompts": [{"name": name, "template": f"{{{{ input }}}}{name}"} for name in "ab"],
            "dataset": {
                "path": "letters.jsonl",
                "fields": {"id": "id", "input": "input", "target": "target"},
            },
            "judge": {"type": "contains"},
            "selector": {"name": "champion"},
            "batch_size": 4,
            "stopping": {"budget": 12, "delta": 0.05},
        }
        (folder / "letters.yaml").write_text(json.dumps(spec))
        yield folder


def loaded(folder, *words):
    """The modules that a command has loaded once it ends."""
    found_in = (TESTS / "flows", TESTS, TESTS.parent / ".package")
    ran = subprocess.run(
        [sys.executable, "-c", COMMAND, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, found_in)), "OPENAI_API_KEY": "key"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode in (0, 3), ran.stderr.partition("MODULES ")[0]
    return {name.removeprefix("winnow.") for name in ran.stderr.partition("MODULES ")[2].split()}


def test_a_command_loads_nothing_of_what_its_campaign_is_not_about(folder):
    for words in (
        ["run", "letters.yaml", "--trust"],
        ["report", "letters"],
        ["report", "letters", "--html", "page.html"],
        ["query", "letters", "leaderboard"],
        ["query", "letters", "comparisons"],
    ):
        assert packages_of(loaded(folder, *words), ELSEWHERE) == set(), words


def test_a_run_loads_nothing_of_what_only_other_runs_need(folder):
    modules = loaded(folder, "run", "letters.yaml", "--trust", "--set", "name=other")
    assert packages_of(modules, OF_OTHER_RUNS) == set()


def packages_of(modules, elsewhere):
    """Those of some packages of which more is loaded than the facts about an objective."""
    held = {name for name in modules if not name.endswith(".traits") and f"{name}.traits" not in modules}
    return {each for each in elsewhere if any(f"{name}.".startswith(f"{each}.") for name in held)}
