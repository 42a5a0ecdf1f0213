"""Campaigns written with typed classes: the same definitions as those of files, and the same complaints."""

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from spec_files import load_spec

import winnow
from winnow.tasks.engines.known_providers import AGENTS
from winnow.tasks.errors import SpecError
from winnow.tasks.setup import typed_parts
from winnow.tasks.setup.typed_spec import SpecKeys
from winnow.tasks.setup.written_files import campaign_text
from winnow.tasks.setup.yaml_file import _known_keys, read_spec_file
from winnow.tasks.spec.campaign import CampaignFile

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "examples").glob("*.yaml"))
PARTS = {name: each for name, each in vars(typed_parts).items() if getattr(each, "_place", None)}

LISTED = {
    "models": winnow.Model,
    "prompts": winnow.Prompt,
    "guardrails": winnow.Guardrail,
    "generate_configs": winnow.Sampling,
    "exclude": winnow.Exclusion,
    "metrics": winnow.Metric,
    "constraints": winnow.Constraint,
}
SINGLE = {
    "dataset": winnow.Dataset,
    "choices": winnow.Choices,
    "samples": winnow.Samples,
    "judge": winnow.Judge,
    "certify": winnow.Certify,
    "embedder": winnow.Embedder,
    "selector": winnow.Selector,
    "groups": winnow.Groups,
    "stopping": winnow.Stopping,
    "execution": winnow.Execution,
}


def typed(values):
    """The spec that a program would write with classes, from what a file holds."""
    written = {}
    for key, value in values.items():
        if key in LISTED:
            is_agent = [key == "models" and each.get("provider") in AGENTS for each in value]
            written[key] = [
                each if agent else LISTED[key](**each) for each, agent in zip(value, is_agent, strict=True)
            ]
        else:
            written[key] = SINGLE[key](**value) if key in SINGLE else value
    return winnow.Spec(**written)


def is_same(one, other):
    return (one.identity(), one.execution_fields(), one.storage) == (
        other.identity(),
        other.execution_fields(),
        other.storage,
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_spec_of_classes_is_that_of_the_file_and_so_is_what_it_writes(file, tmp_path):
    read = load_spec(file)
    assert is_same(winnow.Spec.from_file(file), read)
    spec = typed(read_spec_file(file).values)
    assert is_same(spec, read)
    (tmp_path / "again.yaml").write_text(spec.to_yaml())
    assert is_same(winnow.Spec.from_file(tmp_path / "again.yaml"), read)


def test_a_spec_written_by_hand_is_that_of_its_file():
    spec = winnow.Spec(
        name="served",
        seed=7,
        models=[
            winnow.Model(
                name="served",
                provider="openai",
                model="my-model",
                model_base_url="http://127.0.0.1:8000/v1",
                chat=True,
                generate_config=winnow.GenerateConfig(max_tokens=64),
            )
        ],
        prompts=[
            winnow.Prompt(name="direct", template="What is {{ input }}? Answer with the number alone."),
            winnow.Prompt(
                name="careful",
                template="What is {{ input }}? Think step by step, then write 'Answer:' and the number.",
            ),
        ],
        dataset=winnow.Dataset(
            path="data.jsonl", fields=winnow.Fields(id="id", input="input", target="target")
        ),
        judge=winnow.Judge("numeric", extract="(?s)(?:.*Answer:)?(.+)"),
        selector=winnow.Selector(name="champion"),
        batch_size=64,
        stopping=winnow.Stopping(budget=800, delta=0.05, epsilon="auto"),
    )
    assert is_same(spec, load_spec(ROOT / "examples" / "server.yaml"))


SHORT = {
    "name": "a",
    "models": ["gpt-4o", "./b"],
    "prompts": ["{{ input }}"],
    "dataset": "x.csv",
    "judge": "f1",
}


def test_short_forms_and_defaults_are_those_of_a_file(tmp_path):
    spec = winnow.Spec(**SHORT)
    file = tmp_path / "short.yaml"
    file.write_text(yaml.safe_dump(SHORT))
    assert is_same(spec, load_spec(file))
    assert (spec.selector.name, spec.stopping.delta, spec.judge.type) == ("champion", 0.05, "f1")
    assert spec.to_yaml().splitlines()[:3] == ["name: a", "models:", "  - gpt-4o"]
    assert "selector" not in spec.to_yaml()


def test_a_setting_counts_as_given_only_if_it_is(tmp_path):
    warm = {"name": "warm", "temperature": 0.7}
    spec = winnow.Spec(**SHORT, generate_configs=[winnow.Sampling(**warm)])
    assert spec.identity()["generate_configs"] == [warm]


def test_a_changed_spec_is_checked_and_the_first_one_stays():
    spec = winnow.Spec(**SHORT)
    other = spec.replace(name="b", judge=winnow.Judge("contains"), stopping=winnow.Stopping(budget=40))
    assert (other.name, other.judge.type, other.stopping.budget) == ("b", "contains", 40)
    assert (spec.name, spec.judge.type) == ("a", "f1")
    assert is_same(spec.model_copy(update={"name": "b"}), spec.replace(name="b"))
    with pytest.raises(SpecError, match="spec: seed: must be at least 0"):
        spec.replace(seed=-1)


def test_changes_of_a_file_are_those_of_the_command_line():
    file = ROOT / "examples" / "server.yaml"
    spec = winnow.Spec.from_file(file, {"stopping.budget": 400, "name": "2024"})
    assert is_same(spec, load_spec(file, ["stopping.budget=400", 'name="2024"']))


NO_FILE_HAS = winnow.Judge("f1", a=object())


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda: winnow.Model(nam="a", model="x"), "Model: name: is missing"),
        (lambda: winnow.Model(nam="a", name="a", model="x"), "Model: nam: unknown key; did you mean 'name'?"),
        (lambda: winnow.Stopping(delta=95), "Stopping: delta: must be less than 1"),
        (lambda: winnow.Budget(), "Budget: give at least one of comparisons, tokens"),
        (lambda: winnow.Prompt(name="a"), "Prompt: give exactly one of template"),
        (lambda: winnow.Spec(**SHORT, sede=7), "spec: sede: unknown key; did you mean 'seed'?"),
        (lambda: winnow.Spec(**SHORT, holdout=2.0), "spec: holdout: must be less than 1"),
        (lambda: winnow.Spec(name="a", models=["gpt-4o"]), "spec: prompts: is missing"),
        (lambda: winnow.Spec.from_file("nowhere.yaml"), "there is no file nowhere.yaml"),
        (
            lambda: setattr(winnow.Spec(**SHORT), "seed", 3),
            "a spec cannot be changed; spec.replace(seed=...)",
        ),
        (lambda: setattr(winnow.Stopping(), "delta", 0.1), "a Stopping cannot be changed; make another one"),
        (
            lambda: winnow.Spec(**{**SHORT, "judge": winnow.Judge("f1", a=object())}).to_yaml(),
            "spec: a file cannot contain",
        ),
    ],
)
def test_a_mistake_is_a_sentence_and_no_traceback_of_pydantic(write, said):
    with pytest.raises(SpecError) as caught:
        write()
    assert str(caught.value).startswith(said)
    assert "pydantic" not in str(caught.value)
    assert caught.value._render_traceback_() == [f"{type(caught.value).__name__}: {caught.value}"]


def test_values_of_python_are_taken_as_a_file_has_them():
    assert winnow.Model(name="a", model=Path("b")).model == "b"
    assert winnow.Dataset(path=("a.csv", Path("b.csv"))).path == ["a.csv", "b.csv"]
    stopping = winnow.Stopping(delta=np.float64(0.05), budget=np.int64(40))
    assert (stopping, repr(stopping)) == (
        winnow.Stopping(delta=0.05, budget=40),
        "Stopping(budget=40, delta=0.05)",
    )
    assert winnow.Selector("champion", params={"top_m": 2}).params == {"top_m": 2}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_knows_its_place_in_a_file(name):
    part = PARTS[name]
    keys = sorted({field.alias or key for key, field in part.model_fields.items()})
    assert _known_keys(part._place) == keys
    assert getattr(winnow, name) is part


def test_the_keywords_of_a_spec_are_the_keys_of_a_file():
    assert set(SpecKeys.__annotations__) == set(CampaignFile.model_fields)
    required = {key for key, field in CampaignFile.model_fields.items() if field.is_required()}
    # The objective has a default here; a benchmark or defaults of a file stand for the others.
    assert SpecKeys.__required_keys__ == required - {
        "objective", "prompts", "dataset", "judge", "selector", "stopping",
    }  # fmt: skip
    assert set(SpecKeys.__annotations__) - {"task"} <= set(inspect.signature(winnow.Spec).parameters)


def test_few_shot_examples_have_a_source_as_python_cannot_say_from():
    shots = winnow.FewShot(n=2, source="solved.jsonl")
    assert shots.source.path == "solved.jsonl"
    spec = winnow.Spec(
        **{**SHORT, "prompts": [winnow.Prompt(name="p", template="{{ input }}", few_shot=shots)]}
    )
    assert "from: {path: solved.jsonl}" in spec.to_yaml()


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.one_of(
            st.text(max_size=12),
            st.sampled_from(
                ["1e3", "+1E-2", "“word”", "no", "2024-01-01", "~", "x: y", "- a", "a\nb", " a\n"]
            ),
            st.floats(allow_nan=False, allow_infinity=False),
            st.integers(),
            st.booleans(),
            st.none(),
            st.lists(st.text(max_size=5), max_size=3),
        ),
        min_size=1,
    )
)
def test_what_is_written_is_read_back_as_it_is(tmp_path_factory, values):
    file = tmp_path_factory.mktemp("written") / "a.yaml"
    text = campaign_text({"judge": values, "models": [values]})
    file.write_text(text, encoding="utf-8", newline="")
    assert read_spec_file(file).values == {"judge": values, "models": [values]}


PROGRAM = """
import winnow
spec = winnow.Spec(
    name="a",
    models=["gpt-4o", winnow.Model(name="b", model="./b", generate_config=winnow.GenerateConfig(top_k=3))],
    prompts=[winnow.Prompt(name="p", messages=[winnow.Message(role="user", content="a")])],
    dataset=winnow.Dataset(path=["x.csv"], fields=winnow.Fields(input="text")),
    judge=winnow.Judge("choice", options=["yes"]),
    stopping=winnow.Stopping(delta=0.05, epsilon="auto", budget=winnow.Budget(comparisons=40)),
)
reveal_type(spec.models[0].generate_config.top_k)
winnow.Model(name="b", model="./b", top_k=3)
winnow.Spec(name="a", models=["gpt-4o"], judge=3)
"""


@pytest.mark.slow
def test_a_type_checker_sees_the_keys_and_their_types(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", f"--cache-dir={tmp_path}", str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    said = [line.partition("program.py:")[2] for line in done.stdout.splitlines()]
    assert [each.partition(": ")[0] for each in said] == ["11", "12", "13"]
    assert said[0].endswith('Revealed type is "int"')
    assert 'Unexpected keyword argument "top_k" for "Model"' in said[1]
    assert 'Argument "judge" to "Spec" has incompatible type "int"' in said[2]
