import json

import pytest
from stored_campaigns import copy_tables, new_database, store_campaign

CAMPAIGN = """\
name: letters
objective: best-mean
seed: 7
models:
  - {name: small, provider: transformers, model: checkpoints/small, generate_config: {max_tokens: 12}}
  - name: smaller
    provider: transformers
    model: checkpoints/smaller
prompts:
  - {name: plain, template: "{{ input }}="}
  - name: asked
    template: "Q {{ input }}:"
generate_configs:
  - {name: greedy}
  - {name: warm, temperature: 1.0}
dataset: {path: letters.jsonl, fields: {id: id, input: input, target: target}}
judge: {type: contains}
selector: {name: ucb-e, params: {a: 1.0}}
batch_size: 8
stopping: {budget: 40, delta: 0.05}
"""


@pytest.fixture(scope="module", autouse=True)
def _tables_are_copied():
    with pytest.MonkeyPatch.context() as patch:
        copy_tables(patch)
        yield


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory: two checkpoints (no weights: nothing is loaded) and six examples."""
    monkeypatch.chdir(tmp_path)
    for name in ("small", "smaller"):
        checkpoint = tmp_path / "checkpoints" / name
        checkpoint.mkdir(parents=True)
        (checkpoint / "config.json").write_text(json.dumps({"name": name}))
    rows = [{"id": f"e{i}", "input": f"{i} plus", "target": "abcdef"[i]} for i in range(6)]
    (tmp_path / "letters.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.fixture
def campaign_file(folder):
    """Write the campaign's file, with parts of its text replaced or lines added; return its path."""

    def write(replace="", by="", *, add=""):
        assert replace in CAMPAIGN
        text = CAMPAIGN.replace(replace, by, 1) if replace else CAMPAIGN
        (folder / "campaign.yaml").write_text(text + add)
        return "campaign.yaml"

    return write


@pytest.fixture
def scripted_models(monkeypatch):
    """The engines of `SCRIPTED` are providers."""
    from scripted_engines import provide_all  # it loads an engine, which most tests need not

    provide_all(monkeypatch)


@pytest.fixture
def database(tmp_path):
    """A new database with all tables and no rows."""
    return new_database(tmp_path / "results.db")


@pytest.fixture
def campaign(database):
    """A campaign of three candidates and five examples, with no round yet."""
    return store_campaign(database)
