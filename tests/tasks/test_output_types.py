"""What models may be asked for, checked before anything runs: every mistake has its place and its remedy."""

import json

import pytest

from winnow.tasks.candidates.likelihood_scoring import Asked, asked_of, compile_choices
from winnow.tasks.engines.chat import Message
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.check import check_campaign
from winnow.tasks.spec.campaign import CampaignSpec, ChoicesSpec

ROWS = [
    {
        "id": "e0",
        "input": "x",
        "options": ["a", "b b"],
        "nested": {"text": ["a", "b b"]},
        "target": "a",
        "gold": 0,
    },
    {"id": "e1", "input": "y", "options": ["c", 4], "nested": {"text": ["c", "d"]}, "target": "4", "gold": 1},
]


@pytest.fixture
def spec(tmp_path, monkeypatch):
    """A sound campaign of choices, with keys replaced; None takes one away."""
    monkeypatch.chdir(tmp_path)
    for name in ("small", "smaller"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps({"name": name}))
        (tmp_path / name / "chat_template.jinja").write_text("{{ messages[0].content }}")

    def written(rows=ROWS, **changes):
        (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        keys = {
            "name": "choices",
            "objective": "best-mean",
            "models": [model("small"), model("smaller")],
            "prompts": [{"name": "plain", "template": "{{ input }}="}],
            "dataset": {"path": "data.jsonl", "fields": {"id": "id", "target": "target"}},
            "output_type": "multiple-choice",
            "choices": {"field": "options"},
            "judge": {"type": "acc"},
            "selector": {"name": "row-mean"},
            "batch_size": 2,
            "stopping": {"budget": 4},
        } | changes
        return CampaignSpec.model_validate({key: value for key, value in keys.items() if value is not None})

    return written


def model(name, **fields):
    return {"name": name, "provider": "transformers", "model": name} | fields


SERVED = {"provider": "openai", "model_base_url": "http://127.0.0.1:9/v1"}
CLAUDE = {"provider": "litellm", "model": "anthropic/claude-x", "model_base_url": "http://127.0.0.1:9"}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"judge": {"type": "acc_norm", "per": "byte"}},
        {
            "judge": {"type": "acc", "target": "index"},
            "dataset": {"path": "data.jsonl", "fields": {"target": "gold"}},
        },
        {"choices": {"texts": ["{{ options[0] }}", "{{ options[1] }}"]}, "target_delimiter": ""},
        {"judge": {"type": "contains"}},
        {"models": [model("small", chat=True), model("served", **SERVED)]},
    ],
)
def test_what_fits_together_is_sound(spec, changes):
    assert check_campaign(spec(**changes)).weighing.of(ROWS[1], "e1") == ("c", "4")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"choices": None},
            "choices: output_type: multiple-choice needs choices; add choices: {field: NAME}",
        ),
        (
            {"output_type": None, "judge": {"type": "exact"}},
            "choices: choices needs output_type: multiple-choice; set output_type, or remove",
        ),
        (
            {"output_type": None, "choices": None, "target_delimiter": "", "judge": {"type": "exact"}},
            "target_delimiter: target_delimiter needs output_type: multiple-choice or loglikelihood",
        ),
        (
            {"output_type": None, "choices": None},
            "judge.type: judge acc reads log-likelihoods of output_type: multi",
        ),
        (
            {
                "output_type": None,
                "choices": None,
                "judge": {"type": "any", "judges": [{"type": "acc_norm"}]},
            },
            "judge.judges[0].type: judge acc_norm reads log-likelihoods",
        ),
        (
            {"generate_configs": [{"name": "warm", "temperature": 1.0}]},
            "generate_configs: nothing is sampled",
        ),
        (
            {"models": [model("small"), model("smaller", generate_config={"max_tokens": 3})]},
            "models[1].generate_config: nothing is sampled with output_type: multiple-choice; remove",
        ),
        (
            {"models": [model("small"), model("served", chat=True, **SERVED)]},
            "models[1].chat: a server returns no log-likelihoods of a chat; remove chat, or choose provider",
        ),
        (
            {"models": [model("small"), model("far", chat=True, **CLAUDE)]},
            "models[1].provider: litellm returns no log-likelihoods; choose provider vllm or transformers",
        ),
        (
            {"models": [model("small"), model("smaller", chat=True, reasoning={"parser": "think-tags"})]},
            "models[1].reasoning: no reasoning is generated with output_type: multiple-choice; remove",
        ),
        (
            {"judge": {"type": "acc", "extract": "x"}},
            "judge.extract: judge acc reads log-likelihoods instead of text",
        ),
        ({"choices": {"field": "option"}}, "choices.field: unknown field 'option'; did you mean 'options'?"),
        (
            {"choices": {"field": "input"}},
            "choices.field: example 'e0': input is not a list of texts; write a list",
        ),
        ({"choices": {"field": "nested.label"}}, "example 'e0': nested.label is not a list of texts"),
        ({"choices": {"texts": ["only"]}}, "example 'e0' has 1 choices; it needs two or more"),
        ({"choices": {"texts": ["a", "{{ target }}"]}}, "choices.texts[1]: "),
        ({"choices": {"texts": ["a", "{{ options[0][9:] }}"]}}, "example 'e0' has a choice that is empty"),
        (
            {"judge": {"type": "acc", "target": "index"}},
            "judge.target: the target 'a' of example 'e0' is not one of its choices ('a', 'b b'); correct "
            "it, or choose between judge.target: text (a choice) and index (its position, from 0)",
        ),
        (
            {"choices": {"texts": ["yes", "no"]}},
            "judge.target: the target 'a' of example 'e0' is not one of its choices ('yes', 'no')",
        ),
    ],
)
def test_what_does_not_is_refused_in_one_sentence(spec, changes, said):
    with pytest.raises(SpecError) as refusal:
        check_campaign(spec(**changes))
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


PERPLEXITY = {"output_type": "perplexity", "choices": None, "judge": {"type": "bits_per_byte"}}
TWO_PROMPTS = [{"name": "a", "template": "{{ input }}"}, {"name": "b", "template": "{{ input }}."}]


def test_a_server_may_tell_perplexities_but_openais_own_does_not(spec, monkeypatch):
    check_campaign(spec(**PERPLEXITY, models=[model("small"), model("served", **SERVED)]))
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    openais = spec(
        **PERPLEXITY, models=[model("small"), model("served", provider="openai", model="davinci-002")]
    )
    with pytest.raises(SpecError) as refusal:
        check_campaign(openais)
    said = "models[1].provider: OpenAI's own server returns no log-likelihood of a text; choose provider vllm"
    assert str(refusal.value).startswith(said)


def test_the_prompt_itself_is_weighed_for_perplexity(spec):
    checked = check_campaign(spec(**PERPLEXITY))
    asked = asked_of(checked.candidates[0], checked.weighing, ROWS[0], "e0")
    assert (asked.prompt, asked.continuations, asked.texts) == ("", ("x=",), ("x=",))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"prompts": TWO_PROMPTS}, "prompts: output_type: perplexity scores the prompt itself, and cannot"),
        (
            {"guardrails": [{"name": "g", "template": "{{ prompt }}!"}]},
            "guardrails: output_type: perplexity scores the prompt itself",
        ),
        (
            {"judge": {"type": "exact"}},
            "judge.type: models generate no text with output_type: perplexity",
        ),
        (
            {"judge": {"type": "acc"}},
            "judge.type: judge acc reads log-likelihoods of output_type: multiple-cho",
        ),
        ({"choices": {"field": "options"}}, "choices: choices needs output_type: multiple-choice"),
        (
            {"models": [model("small"), model("smaller", chat=True)]},
            "models[1].chat: output_type: perplexity scores a text without a chat template; remove chat",
        ),
        (
            {"generate_configs": [{"name": "warm"}]},
            "generate_configs: nothing is sampled with",
        ),
    ],
)
def test_what_does_not_fit_perplexity_is_refused_in_one_sentence(spec, changes, said):
    with pytest.raises(SpecError) as refusal:
        check_campaign(spec(**{**PERPLEXITY, **changes}))
    assert said in str(refusal.value)


@pytest.mark.parametrize("choices", [{}, {"field": "options", "texts": ["a", "b"]}])
def test_choices_come_from_one_place(spec, choices):
    with pytest.raises(ValueError, match="give exactly one of field"):
        spec(choices=choices)


@pytest.mark.parametrize("key", ["output_type", "choices", "target_delimiter"])
def test_duels_are_between_texts(spec, key):
    keys = {"output_type": None, "choices": None, "target_delimiter": None}
    keys[key] = {"output_type": "multiple-choice", "choices": {"field": "options"}, "target_delimiter": ""}[
        key
    ]
    with pytest.raises(ValueError, match="does not apply to best-duel"):
        spec(objective="best-duel", judge={"type": "rules", "scorer": {"type": "exact"}}, **keys)


def test_an_example_without_choices_is_named(spec):
    rows = [ROWS[0], {**ROWS[1], "options": None}]
    with pytest.raises(SpecError, match="example 'e1': options is not a list of texts"):
        check_campaign(spec(rows=rows))


def test_an_example_without_a_target_is_not_refused(spec):
    assert check_campaign(spec(rows=[ROWS[0], {**ROWS[1], "target": None}])).weighing is not None


@pytest.mark.parametrize(
    ("delimiter", "chat", "expected"),
    [
        (None, False, (" a", " b b")),
        (None, True, ("a", "b b")),
        ("", False, ("a", "b b")),
        (": ", True, (": a", ": b b")),
    ],
)
def test_a_space_stands_before_a_choice_but_after_a_chat_template(delimiter, chat, expected):
    choices = compile_choices(ChoicesSpec(field="nested.text"), delimiter, ["nested"])
    ref = ModelRef(name="m", provider="vllm", model="m", chat=chat)
    asked = choices.asked(ref, "Q", ROWS[0], "e0")
    assert asked == Asked(prompt="Q", continuations=expected, texts=("a", "b b"))
    assert choices.variables == {"nested"}


@pytest.mark.parametrize(("said", "expected"), [("It is", " a"), ("It is: ", "a")])
def test_a_space_stands_before_a_choice_where_the_assistant_has_begun_to_speak(said, expected):
    choices = compile_choices(ChoicesSpec(field="options"), None, ["options"])
    ref = ModelRef(name="m", provider="vllm", model="m", chat=True)
    prompt = (Message("user", "Q"), Message("assistant", said))
    assert choices.asked(ref, prompt, ROWS[0], "e0").continuations[0] == expected


GREEDY = {"output_type": "loglikelihood", "choices": None, "judge": {"type": "greedy"}}


def test_the_first_target_is_weighed_after_the_delimiter(spec):
    rows = [ROWS[0] | {"target": ["a", "b"]}, ROWS[1]]
    weighing = check_campaign(spec(rows=rows, **GREEDY)).weighing
    plain, chat = (ModelRef(name="m", provider="vllm", model="m", chat=chat) for chat in (False, True))
    asked = weighing.asked(plain, "x=", {}, "e0")
    assert asked == Asked(prompt="x=", continuations=(" a",), texts=("a",), is_greedy=True)
    assert weighing.asked(chat, "x=", {}, "e1").continuations == ("4",)
    weighing = check_campaign(spec(rows=rows, **GREEDY, target_delimiter=": ")).weighing
    assert weighing.asked(plain, "x=", {}, "e1").continuations == (": 4",)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"judge": {"type": "acc"}}, "judge.type: judge acc reads log-likelihoods of output_type: multi"),
        ({"choices": {"field": "options"}}, "choices: choices needs output_type: multiple-choice"),
        ({"generate_configs": [{"name": "w", "temperature": 1.0}]}, "generate_configs: nothing is sampled"),
        ({"output_type": None}, "judge.type: judge greedy reads log-likelihoods of output_type: log"),
        ({"rows": [ROWS[0], ROWS[1] | {"target": None}]}, "example 'e1' has no target to score"),
        ({"rows": [ROWS[0], ROWS[1] | {"target": ""}]}, "example 'e1' has no target to score"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_weighing_of_targets_is_named(spec, changes, said):
    with pytest.raises(SpecError) as refusal:
        check_campaign(spec(**GREEDY | changes))
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    "value", [{"type": "code"}, {"type": "acc"}, {"type": "human"}, {"judges": [{"type": "code"}]}]
)
@pytest.mark.parametrize("key", ["const", "default", "enum", "examples"])
def test_a_schemas_own_values_are_no_judges(spec, key, value):
    given = [value] if key in ("enum", "examples") else value
    judge = {"type": "json-schema", "schema": {"type": "object", key: given}}
    for each in (judge, {"type": "all", "judges": [judge]}):
        check_campaign(spec(output_type="generate", choices=None, judge=each))


@pytest.mark.parametrize("place", ["judge", "metrics[0].judge"])
def test_judges_that_stand_too_far_within_one_another_are_refused(spec, place):
    def nested(depth):
        return nested_once(nested(depth - 1)) if depth else {"type": "exact"}

    def nested_once(judge):
        return {"type": "all", "judges": [judge]}

    def given(depth):
        judge = nested(depth)
        if place == "judge":
            return spec(output_type="generate", choices=None, judge=judge)
        metric = {"name": "deep", "judge": judge}
        return spec(output_type="generate", choices=None, judge={"type": "exact"}, metrics=[metric])

    check_campaign(given(32))
    with pytest.raises(SpecError, match="a judge is nested inside more than 32 others") as refusal:
        check_campaign(given(33))
    assert refusal.value.path == place
