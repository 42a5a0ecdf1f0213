"""An objective is one folder and a line in each registry: one is added to a copy of Winnow, and used."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINES = {
    Path("storage", "objectives.py"): ('"route")', '"route", "threshold")'),
    Path("algorithms", "registry.py"): (
        "SELECTORS = {\n",
        'SELECTORS = {\n    "threshold": {"above": "winnow.tasks.objectives.threshold.selector:Above"},\n',
    ),
}
"""Of each registry, what stands in it, and what it becomes."""

DRIVER = """
import os, signal, sys
from zlib import crc32
import winnow
from winnow.tasks.engines.protocol import Completion

assert winnow.__file__.startswith(os.environ["PYTHONPATH"])

class Scripted:
    identity = "scripted 1"
    groups = 0

    def __init__(self, model, settings):
        self.share = int(model.model[-2:])

    def generate(self, requests):
        Scripted.groups += 1
        if Scripted.groups == int(os.environ["KILLED_AT"]):
            os.kill(os.getpid(), signal.SIGKILL)
        return [self.answer(each) for each in requests]

    def answer(self, request):
        is_right = crc32(f"{self.share}{request.prompt}".encode()) % 100 < self.share
        return Completion(text="yes" if is_right else "no", finish_reason="stop", input_tokens=1,
                          output_tokens=1, seconds=0.1)

    def close(self):
        pass

winnow.engine("scripted")(Scripted)
from winnow.flows.main import main
main()
"""

CAMPAIGN = """
name: above
objective: threshold
models:
  - {name: good, provider: scripted, model: scripted/right-95}
  - {name: fair, provider: scripted, model: scripted/right-80}
  - {name: poor, provider: scripted, model: scripted/right-10}
prompts: [{name: plain, template: "{{ input }}"}]
dataset: {path: data.jsonl, fields: {id: id, input: input, target: target}}
judge: {type: exact}
selector: {name: above, params: {threshold: 0.5}}
batch_size: 16
stopping: {budget: 180, delta: 0.05}
"""


@pytest.fixture
def copied(tmp_path):
    """The folder of a package in which all but the new objective and the registries are links to Winnow."""
    package = tmp_path / "package" / "winnow"
    _link(ROOT / ".package" / "winnow", package, {"algorithms", "storage", "tasks"})
    _link(ROOT / "algorithms", package / "algorithms", {"registry.py"})
    _link(ROOT / "storage", package / "storage", {"objectives.py"})
    _link(ROOT / "tasks", package / "tasks", {"objectives"})
    _link(ROOT / "tasks" / "objectives", package / "tasks" / "objectives", set())
    shutil.copytree(Path(__file__).parent / "threshold", package / "tasks" / "objectives" / "threshold")
    for path, (known, added) in LINES.items():
        text = (ROOT / path).read_text()
        assert text.count(known) == 1
        (package / path).write_text(text.replace(known, added))
    return package.parent


def _link(source, target, apart):
    target.mkdir(parents=True, exist_ok=True)
    for each in source.iterdir():
        if each.name not in {*apart, "__pycache__"}:
            (target / each.name).symlink_to(each.resolve())


def test_an_objective_is_added_by_one_folder_and_a_line_in_each_registry(copied, tmp_path):
    rows = [{"id": f"e{n}", "input": f"w{n}", "target": "yes"} for n in range(60)]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "above.yaml").write_text(CAMPAIGN)
    (tmp_path / "driver.py").write_text(DRIVER)

    def winnow(*arguments, killed_at=0):
        return subprocess.run(
            [sys.executable, "driver.py", *arguments],
            cwd=tmp_path,
            env={
                "PYTHONPATH": str(copied),
                "KILLED_AT": str(killed_at),
                "HOME": str(tmp_path),
                "PATH": "/usr/bin",
            },
            capture_output=True,
            text=True,
            timeout=600,
        )

    assert winnow("run", "above.yaml", killed_at=3).returncode == -9
    resumed = winnow("resume", "above")
    assert resumed.returncode == 0
    assert "above        good/plain, fair/plain\n  below        poor/plain\n" in resumed.stdout
    assert "confidence   wrong with probability 0.05" in resumed.stdout
    assert winnow("report", "above", "--html", "above.html").returncode == 0
    assert "Means and the threshold" in (tmp_path / "above.html").read_text()
    assert winnow("query", "above", "above", "--format", "csv").stdout.split() == ['"arm"', '"0"', '"1"']
    assert winnow("export", "above", "exported").returncode == 0
    assert (tmp_path / "exported" / "above.csv").exists()
    asked = winnow("query", "--sql", "SELECT objective, scored FROM v_campaigns", "--format", "csv")
    assert asked.stdout.splitlines()[1].startswith('"threshold",')
    assert '"threshold"' in winnow("schema").stdout
    assert "sound" in winnow("db", "check").stdout
