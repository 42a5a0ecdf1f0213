"""A plug-in that fails, on the terminal: one sentence that names it; its traceback is in the log folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from faulty_server import faulty_server
from plugins_on_disk import NAME, write_plugins
from served_campaigns import served_model, write_data

CASES = {
    "acme-judge": {"judge": {"type": "acme-judge"}},
    "acme-pairs": {"judge": {"type": "acme-pairs"}, "objective": "best-duel", "selector": {"name": "llm-po"}},
    "acme-selector": {"selector": {"name": "acme-selector"}},
}


def run(folder, url, changes, *options, **environment):
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
    command = [sys.executable, "-m", "winnow.flows.main", "run", "campaign.yaml", "--trust", *options]
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[2])])
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def acme(tmp_path):
    write_data(tmp_path)
    write_plugins(tmp_path)
    return tmp_path


@pytest.mark.parametrize("plugin", CASES)
def test_a_plug_in_that_fails_ends_in_one_sentence(acme, prefect_api, plugin):
    """The reproduction: 108 lines of Prefect's and its own traceback."""
    with faulty_server() as server:
        ended = run(acme, server.url, CASES[plugin], ACME_FAILS_AT="tell", ACME_RAISES="lines")
    assert ended.returncode == 1, ended.stderr
    assert f"'{plugin}' ({NAME}:" in ended.stderr.splitlines()[-1]
    assert r"raised RuntimeError: one two \x1b[2J\u202e (acme_plugins.py, line " in ended.stderr
    assert len(ended.stderr.splitlines()) == 3  # the campaign's size, how to go on, the sentence
    assert "Traceback" not in ended.stdout + ended.stderr
    kept = (acme / ".winnow" / "logs" / "letters" / "plugins.log").read_text()
    assert "Traceback" in kept
    assert "raise RAISED" in kept


def test_a_log_in_json_holds_the_traceback_as_a_field(acme, prefect_api):
    with faulty_server() as server:
        changes, failing = CASES["acme-selector"], {"ACME_FAILS_AT": "tell", "ACME_RAISES": "exit"}
        ended = run(acme, server.url, changes, "--log-format", "json", **failing)
    assert ended.returncode == 1, ended.stderr
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert lines[-1]["event"] == "failed"
    assert "SystemExit: 0" in lines[-1]["traceback"]
