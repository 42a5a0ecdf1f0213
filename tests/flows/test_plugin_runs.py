"""A plug-in that fails, on the terminal: one sentence that names it; its traceback is in the log folder."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml
from campaign_processes import fork_server
from faulty_server import faulty_server
from plugins_on_disk import NAME, write_plugins
from served_campaigns import served_model, write_data
from waiting import PATIENCE_S

from tests.faults.child import run_command
from tests.faults.tampering import with_environment

CASES = {
    "acme-judge": {"judge": {"type": "acme-judge"}},
    "acme-pairs": {"judge": {"type": "acme-pairs"}, "objective": "best-duel", "selector": {"name": "llm-po"}},
    "acme-selector": {"selector": {"name": "acme-selector"}},
}


def write_spec(folder, url, changes):
    spec = {
        "name": "letters",
        "objective": "best-mean",
        "models": [served_model(url)],
        "prompts": [{"name": f"p{each}", "template": f"{{{{ input }}}}{each}"} for each in range(3)],
        "dataset": {"path": "letters.jsonl", "fields": {"id": "id", "input": "input", "target": "target"}},
        "judge": {"type": "contains"},
        "selector": {"name": "row-mean"},
        "batch_size": 12,
        "stopping": {"budget": 36, "delta": 0.05},
    }
    (folder / "campaign.yaml").write_text(yaml.safe_dump(spec | changes))


def on_path(folder):
    sys.path.insert(0, folder)


@pytest.fixture
def acme(tmp_path):
    write_data(tmp_path)
    write_plugins(tmp_path)
    return tmp_path


@pytest.mark.parametrize("plugin", CASES)
def test_a_plug_in_that_fails_ends_in_one_sentence(acme, prefect_api, plugin):
    """The reproduction: 108 lines of Prefect's and its own traceback."""
    out, err = acme / "out", acme / "err"
    failing = partial(with_environment, {"ACME_FAILS_AT": "tell", "ACME_RAISES": "lines"})
    command, first = ("run", "campaign.yaml", "--trust"), (failing, partial(on_path, str(acme)))
    with faulty_server() as server:
        write_spec(acme, server.url, CASES[plugin])
        ended = fork_server().Process(
            target=run_command, args=(str(acme), command, first, str(out), str(err), prefect_api)
        )
        ended.start()
        ended.join(PATIENCE_S)
    said = err.read_text()
    assert ended.exitcode == 1, said
    assert f"'{plugin}' ({NAME}:" in said.splitlines()[-1]
    assert r"raised RuntimeError: one two \x1b[2J\u202e (acme_plugins.py, line " in said
    assert len(said.splitlines()) == 4  # the size, the canary prompts, how to go on, the sentence
    assert "Traceback" not in out.read_text() + said
    kept = (acme / ".winnow" / "logs" / "letters" / "plugins.log").read_text()
    assert "Traceback" in kept
    assert "raise RAISED" in kept


def test_a_log_in_json_holds_the_traceback_as_a_field(acme, prefect_api):
    """In a process that shares nothing with this one: nothing else is said as it ends either."""
    path = os.pathsep.join([str(acme), str(Path(__file__).parents[2])])
    failing = {"ACME_FAILS_AT": "tell", "ACME_RAISES": "exit"}
    with faulty_server() as server:
        write_spec(acme, server.url, CASES["acme-selector"])
        ended = subprocess.run(
            [sys.executable, "-m", "winnow.flows.main", "run", "campaign.yaml", "--trust",
             "--log-format", "json"],
            cwd=acme, env=os.environ | failing | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True, text=True,
        )  # fmt: skip
    assert ended.returncode == 1, ended.stderr
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert lines[-1]["event"] == "failed"
    assert "SystemExit: 0" in lines[-1]["traceback"]
