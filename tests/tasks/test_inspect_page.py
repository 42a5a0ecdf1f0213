"""The worked example of docs/how-to/inspect-tasks.md is what it says it is."""

import json
import re
from pathlib import Path

import yaml
from typer.testing import CliRunner

from tests.tasks.inspect_tasks import record
from winnow.flows.cli import app

HERE = Path(__file__)
PAGE = (HERE.parents[2] / "docs" / "how-to" / "inspect-tasks.md").read_text()
TOLD = json.loads((HERE.parent / "inspect_tasks" / "expected.json").read_text("utf-8"))["page"]
"""What the task's code says, as `record.py` kept it."""


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_task_becomes_what_the_page_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    [code] = blocks("python")
    assert code == record.page_code()
    (tmp_path / "capitals.py").write_text(code)
    (tmp_path / "told.json").write_text(json.dumps(TOLD))
    python = tmp_path / ".inspect" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\ncp told.json $3\n")
    python.chmod(0o755)
    for name in ("small", "large"):
        (folder := tmp_path / "path" / "to" / name).mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps({"name": name}))
        (folder / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    campaign = next(block for block in blocks("yaml") if block.startswith("name:"))
    (tmp_path / "capitals.yaml").write_text(campaign)
    said = CliRunner().invoke(app, ["validate", "capitals.yaml", "--trust"])
    assert said.exit_code == 0, said.output
    became = said.output.split("keys set by the task:")[1].partition("allowed: it would")[0]
    assert yaml.safe_load(became) == yaml.safe_load(blocks("text")[0])
