"""The files of examples/: each is what editors and Winnow take for sound, and runs as it stands."""

import json
import re
import runpy
import shutil
from contextlib import closing
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import yaml
from served_campaigns import run
from spec_files import load_spec

from winnow.flows.cli.start.specs import starter
from winnow.infra.demo.data import evaluation_examples
from winnow.storage.admin.schema import ensure_schema
from winnow.storage.engine.database import open_database
from winnow.tasks.campaign.look import Look
from winnow.tasks.embedding import sentence_model
from winnow.tasks.engines.known_providers import PROVIDERS
from winnow.tasks.engines.protocol import Completion
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.setup.json_schema import campaign_schema
from winnow.tasks.spec.campaign import CampaignSpec

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "examples").glob("*.yaml"))
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
SCHEMA = jsonschema.Draft202012Validator(campaign_schema(selectors=(), judges=(), providers=()))
ROUNDS = 6


class Adder:
    """Adds the two numbers of a prompt, wrongly now and then; of two answers it prefers the first."""

    identity = "adder 1"

    def __init__(self, model, settings):
        self._slips = 3 if model.name in ("small", "coder", "medium") else 17

    def generate(self, requests):
        return [
            Completion(
                text=self._answer("1 + 2" if request.images else request.prompt),
                finish_reason="stop",
                input_tokens=1,
                output_tokens=1,
                seconds=0.0,
                choice_logprobs=self._weights(request),
            )
            for request in requests
        ]

    def close(self):
        pass

    def _weights(self, request):
        right = self._answer(request.prompt)
        return {each: -0.1 if each.strip() == right else -3.0 for each in request.continuations} or None

    def _answer(self, prompt):
        if "[[A]]" in prompt:
            return "[[A]]"
        numbers = [int(each) for each in re.findall(r"\d+", prompt)] or [0]
        answer = f"{sum(numbers) + (sum(numbers) % self._slips == 0)}"
        return f"Answer: {answer}" if "Answer:" in prompt else answer


def vectors(self, texts):
    return np.eye(self.dim)[[len(text) for text in texts]]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with what all examples refer to: checkpoints, which hold no weights, and data."""
    monkeypatch.chdir(tmp_path)
    for path in {path for file in FILES for path in re.findall(r"model: ([\w./]+/\w+)\b", file.read_text())}:
        Path(path).mkdir(parents=True)
        (Path(path) / "config.json").write_text(json.dumps({"hidden_size": 64, "at": path}))
        (Path(path) / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
        (Path(path) / "model.safetensors").write_bytes(bytes(8 if path.endswith("small") else 16))
    for data in (*(ROOT / "examples").glob("*.jsonl"), ROOT / "examples" / "agent.py"):
        shutil.copy(data, tmp_path)
    runpy.run_path(str(ROOT / "examples" / "images.py"))
    demo = tmp_path / ".winnow" / "demo" / "data"
    demo.mkdir(parents=True)
    rows = [{"id": e.id, "task": e.task, "input": e.input, "target": e.target} for e in evaluation_examples()]
    (demo / "demo.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for provider in ("vllm", "openai"):
        monkeypatch.setitem(PROVIDERS, provider, f"{__name__}:Adder")
    monkeypatch.setattr(sentence_model.SentenceModel, "embed", vectors)
    return tmp_path


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_is_sound_to_an_editor(file):
    SCHEMA.validate(yaml.safe_load(file.read_text()))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_runs_as_it_stands(folder, file):
    spec = load_spec(file)
    with closing(open_database(spec.storage)) as database:
        ensure_schema(database)
        record = run(database, spec, rounds=ROUNDS)
        with database.reading() as session:
            status = campaign_status(Look(session, record), in_full=True)
    assert status.totals["rounds"] == ROUNDS or status.is_settled
    assert status.totals["answered"] >= 2 * spec.batch_size
    assert status.totals["answered"] == status.totals["comparisons"]
    assert any(each.estimate for each in status.answer.candidates) or file.stem == "route"


@pytest.mark.parametrize("objective", ["best-mean", "best-duel", "certify", "route"])
def test_init_copies_an_example_of_its_question(objective):
    text = (ROOT / "examples" / f"{objective}.yaml").read_text()
    assert starter(objective) == text
    assert yaml.safe_load(text)["objective"] == objective


def test_the_table_of_examples_names_all_of_them():
    table = (ROOT / "examples" / "README.md").read_text()
    files = (*FILES, *SCRIPTS, *(ROOT / "examples").glob("python/*.py"))
    assert set(re.findall(r"^\| `([\w./-]+)`", table, re.M)) == {
        str(file.relative_to(ROOT / "examples")) for file in files
    }


def test_the_schema_knows_agents():
    values = yaml.safe_load((ROOT / "examples" / "agents.yaml").read_text())
    for key, value in {"timout": 3, "chat": True, "command": "agent.py", "entry": "x"}.items():
        odd = {**values["models"][0], key: value}
        assert not SCHEMA.is_valid({**values, "models": [odd]})
    models = [{"name": "m", "provider": "vllm", "model": "m"}, *values["models"]]
    assert not SCHEMA.is_valid({**values, "models": models})  # a model needs a prompt
    assert SCHEMA.is_valid({**values, "models": models, "prompts": ["{{ input }}"]})


def test_the_schema_takes_what_is_short():
    short = {"name": "a", "objective": "best-mean", "models": ["gpt-x"], "prompts": "{{ input }}"}
    assert SCHEMA.is_valid({**short, "dataset": "x.csv", "judge": "exact"})
    assert SCHEMA.is_valid({**short, "dataset": {"path": "x.csv"}, "judge": "f1", "selector": "champion"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sede", 7),
        ("objective", "best"),
        ("stopping", {"budget": "many"}),
        ("batch_size", "many"),
        ("models", []),
    ],
)
def test_the_schema_refuses_what_the_spec_refuses(key, value):
    values = {**yaml.safe_load(starter("best-mean")), key: value}
    assert not SCHEMA.is_valid(values)
    with pytest.raises(ValueError, match=key):
        CampaignSpec.model_validate(values)


@pytest.mark.parametrize("source", ["train.jsonl", ["a.jsonl"], {"hub": "owner/sums", "split": "train"}])
def test_an_editor_knows_what_solved_examples_may_come_from(source):
    values = yaml.safe_load(starter("best-mean"))
    values["prompts"] = [{"name": "p", "template": "x", "few_shot": {"n": 1, "from": source}}]
    assert SCHEMA.is_valid(values)
    CampaignSpec.model_validate(values)
    values["prompts"][0]["few_shot"]["form"] = values["prompts"][0]["few_shot"].pop("from")
    assert not SCHEMA.is_valid(values)
    described = SCHEMA.schema["$defs"]["FewShotSpec"]["properties"]["from"]["description"]
    assert described.startswith("Files, or the keys of a dataset")


def test_the_schema_offers_names_and_explains_keys():
    schema = campaign_schema(selectors=["champion"], judges=["exact"], providers=["vllm"])
    parts = schema["$defs"]
    for part, key, names in (
        ("SelectorSpec", "name", ["champion"]),
        ("JudgeSpec", "type", ["exact"]),
        ("ModelSpec", "provider", ["vllm"]),
    ):
        assert parts[part]["properties"][key]["anyOf"][0] == {"enum": names}
    assert schema["properties"]["holdout"]["description"].startswith("For best-mean: share of the examples")
    # What a section inherits is explained too.
    assert (
        parts["NamedGenerateConfig"]["properties"]["max_tokens"]
        == (parts["GenerateConfig"]["properties"]["max_tokens"])
    )
    assert "see `" not in json.dumps(schema)
