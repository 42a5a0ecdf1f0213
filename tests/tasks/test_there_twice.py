"""Choices that differ only in their names are told of: their candidates have the same texts."""

import shutil

import pytest
from scripted_engines import provide_all
from stepwise_campaigns import Steps, begun, write_campaign

from winnow.tasks.queries.warnings.from_spec import begun_twice, there_twice
from winnow.tasks.rounds.generate import plan_generations
from winnow.tasks.setup.load import check_campaign_file

PLAIN = {"name": "plain", "template": "{{ input }}="}
HOT = {"name": "hot", "temperature": 1.0}
GUARD = {"name": "guard", "template": "Only the answer. {{ prompt }}"}


@pytest.fixture(autouse=True)
def scripted(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    provide_all(monkeypatch)


def model(folder, name, at=None, **keys):
    return {"name": name, "provider": "knows", "model": str(folder / (at or name)), **keys}


def sentence(path):
    warning = there_twice(check_campaign_file(str(path)).identity())
    return None if warning is None else warning.sentence


@pytest.mark.parametrize(
    ("kind", "choices"),
    [
        ("prompts", [PLAIN, {**PLAIN, "name": "again"}]),
        ("generate_configs", [HOT, {**HOT, "name": "again"}]),
        ("guardrails", [GUARD, {**GUARD, "name": "again"}]),
    ],
)
def test_two_of_a_kind_are_told_of_and_have_the_same_texts(database, tmp_path, kind, choices):
    path = write_campaign(tmp_path, "twice", **{"prompts": [PLAIN], kind: choices})
    first = choices[0]["name"]
    assert sentence(path).startswith(f"{kind} {first} and again differ only in their names: ")
    with begun(database, path) as campaign:
        round_ = Steps(campaign).round
        keys = {}
        for arm, planned in zip(round_.arms, plan_generations(campaign, round_), strict=True):
            keys.setdefault(arm, set()).add(planned.key)
    assert [keys[0], keys[2]] == [keys[1], keys[3]]
    assert not keys[0] & keys[2]


def test_a_copy_of_a_model_is_the_same_model(tmp_path):
    write_campaign(tmp_path, "copies")
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    copies = [model(tmp_path, "one"), model(tmp_path, "copy")]
    path = write_campaign(tmp_path, "copies", models=copies)
    assert sentence(path).startswith("models one and copy differ only in their names: ")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"prompts": [PLAIN, {**PLAIN, "name": "spaced", "template": "{{ input }} ="}]},
        {"generate_configs": [HOT, {**HOT, "name": "cold", "temperature": 0.5}]},
        {"prompts": [PLAIN, {**PLAIN, "name": "again"}], "exclude": [{"model": "one", "prompt": "again"}]},
    ],
)
def test_what_differs_is_not(tmp_path, changes):
    assert sentence(write_campaign(tmp_path, "different", **changes)) is None


def test_a_model_that_is_started_otherwise_is_another(tmp_path):
    write_campaign(tmp_path, "different")
    models = [model(tmp_path, "one"), model(tmp_path, "fast", at="one", model_args={"dtype": "float16"})]
    assert sentence(write_campaign(tmp_path, "different", models=models)) is None


@pytest.mark.parametrize(
    ("model", "template", "said"),
    [
        (
            {"provider": "openai"},
            "<s>[INST] {{ input }}",
            "its server's tokenizer adds it to the prompts of m",
        ),
        ({"provider": "openai", "chat": True}, "<|begin_of_text|>{{ input }}", "its chat template adds it"),
        ({"provider": "vllm", "chat": True}, "<bos>{{ input }}", "its chat template adds it"),
        ({"provider": "vllm"}, "<s>{{ input }}", None),
        ({"provider": "transformers"}, "<s>{{ input }}", None),
        ({"provider": "openai"}, "{{ input }}<s>", None),
        ({"provider": "openai"}, "<sum>{{ input }}", None),
        ({"provider": "openai"}, None, None),
    ],
)
def test_a_prompt_that_spells_out_what_a_model_is_given_in_any_case_is_warned_of(model, template, said):
    identity = {"models": [{"name": "m", **model}], "prompts": [{"name": "p", "template": template}]}
    found = begun_twice(identity)
    assert (said in found.sentence) if said else found is None
