"""Models asked through litellm: what a spec has to name, what it may not, and what is asked of the user."""

import pytest

from winnow.tasks.candidates.model_refs import model_ref, sampling_of
from winnow.tasks.engines.server_keys import APIS
from winnow.tasks.errors import JudgeError, SpecError
from winnow.tasks.judges.registry import create_pair_judge
from winnow.tasks.setup.trust import permissions
from winnow.tasks.spec.campaign import CampaignSpec, with_servers, without_servers
from winnow.tasks.spec.sections.generate_config import GenerateConfig
from winnow.tasks.spec.sections.models import ModelSpec

CLAUDE = {"name": "m", "provider": "litellm", "model": "anthropic/claude-x", "chat": True}
KEYED = CLAUDE | {"api_key": "$MY_KEY"}
OWN = "http://127.0.0.1:8000"


@pytest.fixture(autouse=True)
def _keys(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ambient")


def test_an_api_that_is_known_is_asked_at_its_own_address():
    ref = model_ref(ModelSpec(**KEYED), "models[0]")
    assert (ref.model_base_url, ref.api_key) == ("https://api.anthropic.com", "MY_KEY")
    ref = model_ref(ModelSpec(**CLAUDE, model_base_url=OWN), "models[0]")
    assert (ref.model_base_url, ref.api_key) == (OWN, None)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"api_key": None}, r"api_key: litellm receives only the key named .* \$ANTHROPIC_API_KEY"),
        ({"api_key": "$NOT_SET"}, "api_key: the environment variable NOT_SET is not set"),
        ({"chat": False}, "chat: provider litellm supports only chat models; set chat: true"),
        ({"model": "claude-x"}, "model: provider litellm needs API/MODEL, with API one of anthropic"),
        ({"model": "anthropic/"}, "model: provider litellm needs API/MODEL"),
        ({"model": "huggingface/http://evil.example"}, "model: provider litellm needs API/MODEL"),
        ({"model": "azure/mine"}, "model_base_url: this API has a different address for each customer"),
        ({"model_args": {"api_base": "https://evil.example"}}, "model_args: .* does not accept 'api_base'"),
        ({"model_args": {"extra_headers": {"a": "b"}}}, "model_args: .* does not accept 'extra_headers'"),
        ({"model_args": {"thinking": {"type": "enabled"}, "tools": []}}, "does not accept 'tools'"),
        ({"revision": "main"}, "revision: no API of litellm accepts"),
        ({"chat_template_args": {"a": 1}}, "chat_template_args: no API of litellm accepts"),
        ({"lora": "folder"}, "lora: provider 'litellm' does not support adapters"),
    ],
)  # fmt: skip
def test_what_litellm_would_take_up_by_itself_has_to_be_named_and_nothing_more_may_be(keys, said):
    with pytest.raises(SpecError, match=rf"^models\[0\]\..*{said}"):
        model_ref(ModelSpec(**KEYED | keys), "models[0]")


def test_arguments_that_name_no_place_are_passed_on():
    args = {"thinking": {"type": "enabled", "budget_tokens": 99}, "temperature": None, "max_tokens": None}
    assert model_ref(ModelSpec(**KEYED, model_args=args), "models[0]").model_args == args


def spec(model, **keys):
    base = {
        "name": "c",
        "objective": "best-mean",
        "models": [model],
        "prompts": [{"name": "p", "template": "{{ input }}"}],
        "dataset": {"path": "d.jsonl"},
        "judge": {"type": "exact"},
        "selector": {"name": "ucb-e"},
        "stopping": {"budget": 64, "delta": 0.1},
    }
    return CampaignSpec.model_validate(base | keys)


@pytest.mark.parametrize("name", [name for name, api in APIS.items() if api.origin])
def test_the_user_is_asked_before_a_key_goes_to_an_api(tmp_path, name):
    found = permissions(spec(KEYED | {"model": f"{name}/x"}), tmp_path)
    [asked] = found
    assert asked.text == f"send the environment variable MY_KEY to {APIS[name].origin!a}"
    assert asked.keys == ("models[0].api_key", "models[0].model_base_url")


@pytest.mark.parametrize("model", ["anthropic/claude-x", "azure/mine", "huggingface/http://127.0.0.1", "x"])
def test_and_before_it_goes_to_an_address_that_the_file_names(tmp_path, model):
    evil = KEYED | {"model": model, "model_base_url": "https://evil.example/v1"}
    [asked] = permissions(spec(evil), tmp_path)
    assert asked.text == "send the environment variable MY_KEY to 'https://evil.example'"
    assert permissions(spec(KEYED | {"model": model, "model_base_url": OWN}), tmp_path) == []


def test_nothing_is_asked_where_no_key_is_named_or_no_address_known(tmp_path):
    assert permissions(spec(CLAUDE), tmp_path) == []  # and it is refused
    assert permissions(spec(KEYED | {"model": "azure/mine"}), tmp_path) == []  # and so is this
    assert permissions(spec(KEYED | {"model": "openai/x", "api_key": "$OPENAI_API_KEY"}), tmp_path) == []


def test_a_judge_is_asked_about_too(tmp_path):
    judge = {"type": "llm", "models": [KEYED]}
    duel = {"objective": "best-duel", "selector": {"name": "llm-po"}, "judge": judge}
    found = permissions(spec({"name": "o", "model": "o/n"}, **duel), tmp_path)
    assert [each.keys[0] for each in found] == ["judge.models[0].api_key"]


def test_where_it_is_asked_is_stored_among_the_keys_of_servers():
    stored = {"models": [KEYED | {"model_base_url": OWN}]}
    bare, servers = without_servers(stored)
    assert servers == {"models.m": {"model_base_url": OWN, "api_key": "$MY_KEY"}}
    assert with_servers(bare, servers) == stored


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"min_p": 0.1}, "min_p: litellm has no such setting"),
        ({"repetition_penalty": 1.1}, "repetition_penalty: litellm has no such setting"),
        ({"stop_token_ids": [1]}, "stop_token_ids: litellm has no such setting"),
        (
            {"structured_output": {"regex": "a"}},
            "structured_output: litellm supports only json_schema",
        ),
    ],
)
def test_sampling_that_no_api_has_is_refused(keys, said):
    with pytest.raises(SpecError, match=said):
        sampling_of(GenerateConfig(**keys), ModelSpec(**KEYED), lambda key: key)


def test_top_k_goes_where_it_arrives():
    given = GenerateConfig(top_k=5)
    assert sampling_of(given, ModelSpec(**KEYED), str).top_k == 5
    with pytest.raises(SpecError, match="top_k: litellm sends top_k only to anthropic and gemini"):
        sampling_of(given, ModelSpec(**KEYED | {"model": "groq/x"}), str)
    assert {name for name, api in APIS.items() if api.top_k} == {"anthropic", "gemini"}


def test_probabilities_of_verdicts_are_not_asked_for():
    asked = {"template": "alpaca", "models": [ModelSpec(**KEYED).model_dump()]}
    with pytest.raises(JudgeError, match=r"judge.read: provider litellm of 'm' returns no probabilities"):
        create_pair_judge("llm", **asked, read="probabilities")
    assert create_pair_judge("llm", **asked, read="text").judges[0].ref.provider == "litellm"
