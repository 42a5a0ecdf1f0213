"""Installed without extras: what works all the same, and the sentence in place of all else."""

import ast
from pathlib import Path

import numpy as np
import pytest
from campaigns import one_message, winnow

from winnow.tasks.plugins.extras import PACKAGES

SPEC = """\
name: far
objective: best-mean
seed: 1
models: [{{name: one, provider: {provider}, model: owner/model}}]
prompts: [{{name: a, template: "{{{{ input }}}}"}}, {{name: b, template: "{{{{ input }}}}!"}}]
dataset: {{path: data.jsonl, fields: {{id: id, input: input, target: target}}}}
judge: {{type: exact}}
batch_size: 2
selector: {{name: champion}}
stopping: {{budget: 10, delta: 0.05}}
{more}
"""


@pytest.fixture(autouse=True)
def _base_only(monkeypatch):
    monkeypatch.setattr("winnow.tasks.plugins.extras.find_spec", lambda module: None)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["view"], "winnow-llm[view]"),
        (["demo"], "winnow-llm[gpu]"),
        (["report", "far", "--html", "far.html"], "winnow-llm[report]"),
        (["report", "far", "--png", "slides"], "winnow-llm[report]"),
    ],
)
def test_a_command_that_misses_an_extra_names_it(tmp_path, command, named):
    result = winnow(tmp_path, *command)
    assert result.returncode == 2
    assert f"run: pip install '{named}'" in one_message(result)
    assert not list(tmp_path.glob("[!.]*"))


@pytest.mark.parametrize(
    ("provider", "more", "named"),
    [
        ("transformers", "", "winnow-llm[local]"),
        ("vllm", "", "winnow-llm[gpu]"),
        ("vllm", "execution: {cluster: ray}", "winnow-llm[ray]"),
    ],
)
def test_a_campaign_whose_engine_is_not_installed_is_not_begun(tmp_path, provider, more, named):
    (tmp_path / "campaign.yaml").write_text(SPEC.format(provider=provider, more=more))
    (tmp_path / "data.jsonl").write_text('{"id": "1", "input": "1", "target": "1"}\n')
    result = winnow(tmp_path, "run", "campaign.yaml", "--trust")
    assert result.returncode == 2
    assert f"run: pip install '{named}'" in one_message(result)
    assert not (tmp_path / "winnow.db").exists()
    # Another machine may have what this one lacks: the file is sound, and what runs nowhere here is said.
    sound = winnow(tmp_path, "validate", "campaign.yaml")
    assert sound.returncode == 0
    (check,) = [line for line in sound.stdout.splitlines() if line.startswith("check: ")]
    assert f"run: pip install '{named}'" in check
    assert check.endswith("; until then, winnow run refuses the campaign on this machine")


def test_an_embedder_that_is_not_installed_is_a_line_of_the_spec(tmp_path):
    route = SPEC.replace("best-mean", "route").replace("champion", "pak-ucb").replace(", delta: 0.05", "")
    embedder = 'embedder: {text: "{{ input }}"}'
    (tmp_path / "campaign.yaml").write_text(route.format(provider="vllm", more=embedder))
    (tmp_path / "data.jsonl").write_text('{"id": "1", "input": "1", "target": "1"}\n')
    result = winnow(tmp_path, "validate", "campaign.yaml")
    assert result.returncode == 2
    assert "run: pip install 'winnow-llm[embed]'" in one_message(result)


def test_a_simulation_is_printed_and_kept_without_pictures(tmp_path):
    np.savez(tmp_path / "steps.npz", scores=np.repeat([[0.0], [1.0]], 10, axis=1))
    options = ["--selector", "row-mean", "--seeds", "1", "--out", "results", "--workers", "1"]
    result = winnow(tmp_path, "simulate", "steps.npz", *options)
    assert result.returncode == 0
    assert "Matplotlib" in result.stdout
    assert "run: pip install 'winnow-llm[report]'" in result.stdout
    assert [each.name for each in (tmp_path / "results").iterdir()] == ["runs.parquet"]


ROOT = Path(__file__).parents[2]
OF_EXTRAS = (
    "winnow.tasks.engines.transformers.engine",
    "winnow.tasks.engines.transformers.decoding",
    "winnow.tasks.engines.ray.engine",
    "winnow.flows.reports.export.trackers.",
    "winnow.flows.reports.html.",
    "winnow.flows.reports.dashboard.",
    "winnow.infra.demo.training",
)
"""What is imported only where `require` was called before."""


def imports(path):
    """The modules that a file imports as soon as it is imported, but for those in `if TYPE_CHECKING`."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_all_else_imports_nothing_of_an_extra():
    extras = {each for packages in PACKAGES.values() for each in packages} | {"tokenizers"}
    folders = ("algorithms", "flows", "infra", "storage", "tasks")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    imported = {
        "winnow." + ".".join(path.relative_to(ROOT).with_suffix("").parts): set(imports(path))
        for path in paths
    }
    needing = {
        name for name, found in imported.items() if {each.partition(".")[0] for each in found} & extras
    }
    while more := {name for name, found in imported.items() if found & needing} - needing:
        needing |= more
    assert {
        "winnow.tasks.engines.transformers.decoding",
        "winnow.tasks.engines.transformers.engine",
    } <= needing
    assert not [name for name in needing if not name.startswith(OF_EXTRAS)]
