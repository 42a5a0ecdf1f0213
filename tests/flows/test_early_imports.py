"""vLLM's imports begin as soon as a campaign has texts to generate, and for no other."""

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from process_commands import command_of
from waiting import eventually

from winnow.flows.run import early_imports
from winnow.tasks.spec.yaml_file import SpecFile, parse_spec

SPEC = {
    "name": "early",
    "objective": "best-mean",
    "seed": 1,
    "models": [{"name": "one", "provider": "vllm", "model": "one"}],
    "prompts": [{"name": "plain", "template": "{{ input }}"}],
    "dataset": {"path": "data.jsonl"},
    "judge": {"type": "contains"},
    "selector": {"name": "champion"},
    "batch_size": 4,
    "stopping": {"budget": 8, "delta": 0.05},
}
LOG = Path(".winnow/logs/early/vllm-imports.log")
IMPORTING_NOTHING = """
def preload():
    print("imported", flush=True)
"""


@pytest.fixture(autouse=True)
def _nothing_to_import(tmp_path, monkeypatch):
    (tmp_path / "imports_of_early.py").write_text(IMPORTING_NOTHING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr("winnow.tasks.engines.vllm.imports.WORKER", "imports_of_early")


def servers():
    return [each for each in psutil.Process().children() if "imports_of_early" in command_of(each)]


def approved(**changes):
    file = SpecFile(Path("campaign.yaml"), {**SPEC, **changes})
    seen = []
    with early_imports.importing_once(lambda *given: seen.append(len(servers()))) as approve:
        approve(file, parse_spec(file))
        found = servers()
        begun = bool(found) and eventually(lambda: "imported" in LOG.read_text())
    assert seen == [0], "nothing begins before the campaign is approved"
    assert servers() == []
    return begun


def test_imports_begin_once_a_campaign_on_vllm_is_approved_and_end_with_the_command():
    assert approved()


@pytest.mark.parametrize(
    "changes",
    [
        {"models": [{"name": "one", "provider": "transformers", "model": "one"}]},
        {"execution": {"cluster": "ray"}},
    ],
    ids=["no model on vLLM", "engines elsewhere"],
)
def test_nothing_is_imported_for_engines_that_do_not_need_it(changes):
    assert not approved(**changes)
    assert not LOG.exists()


def test_nothing_is_imported_for_a_campaign_that_is_decided(monkeypatch):
    monkeypatch.setattr(early_imports, "status_of", lambda *_: SimpleNamespace(is_settled=True))
    assert not approved()


def test_nothing_is_imported_where_vllm_is_not_installed(monkeypatch):
    monkeypatch.setattr("winnow.tasks.plugins.extras.find_spec", lambda _: None)
    assert not approved()
