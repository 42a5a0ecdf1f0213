"""Ways of sampling in a campaign's file: what is refused, and what is kept of them."""

import pytest
from spec_files import load_spec

from winnow.tasks.candidates.candidates import StoredCandidate
from winnow.tasks.engines.protocol import Structure
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.spec.campaign import CampaignSpec

WARM = "{name: warm, temperature: 1.0}"
RARE = (
    "{name: warm, temperature: 1.0, min_p: 0.1, presence_penalty: 0.5, frequency_penalty: 0.2, "
    'repetition_penalty: 1.1, logit_bias: {5: -100, "7": 2.5}, stop_token_ids: [2]}'
)
ON_VLLM = ["models[0].provider=vllm", "models[1].provider=vllm"]


def refusal(path, overrides=()):
    with pytest.raises(SpecError) as caught:
        check_campaign_file(path, overrides)
    return str(caught.value)


def test_what_is_set_reaches_the_candidates_and_is_stored_with_them(campaign_file):
    checked = check_campaign_file(campaign_file(WARM, RARE))
    greedy, warm = checked.candidates[:2]
    assert (warm.sampling.min_p, warm.sampling.repetition_penalty) == (0.1, 1.1)
    assert warm.sampling.logit_bias == ((5, -100.0), (7, 2.5))
    assert warm.sampling.stop_token_ids == (2,)
    assert set(greedy.as_record().sampling) == {
        "temperature", "top_p", "top_k", "max_tokens", "stop", "choices"
    }  # fmt: skip
    again = StoredCandidate.from_record(warm.as_record(), checked.dataset.field_names)
    assert again.sampling == warm.sampling


def test_a_stored_spec_is_the_one_that_was_written(campaign_file):
    structure = "{json_schema: {type: object, properties: {a: {type: [string, 'null'], default: null}}}}"
    spec = load_spec(campaign_file(WARM, f"{RARE[:-1]}, structured_output: {structure}}}"))
    again = CampaignSpec.from_stored(spec.identity(), spec.execution_fields(), spec.storage)
    assert again == spec
    assert again.identity() == spec.identity()


def test_without_these_keys_a_campaign_is_the_same_as_before_there_were_any(campaign_file):
    configs = load_spec(campaign_file()).identity()["models"][0]["generate_config"]
    assert set(configs) == {"temperature", "top_p", "top_k", "max_tokens", "stop_seqs"}


def test_a_named_way_of_sampling_can_switch_off_what_its_model_sets(campaign_file):
    path = campaign_file(WARM, "{name: warm, temperature: 1.0, min_p: 0.0}")
    checked = check_campaign_file(path, ["models[0].generate_config.min_p=0.4"])
    assert [each.sampling.min_p for each in checked.candidates[:2]] == [0.4, 0.0]
    spec = checked.spec
    again = CampaignSpec.from_stored(spec.identity(), spec.execution_fields(), spec.storage)
    assert again.generate_configs[1].given() == {"temperature": 1.0, "min_p": 0.0}


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("min_p: 1.5", "generate_configs[1].min_p: must be at most"),
        (
            "presence_penalty: 3",
            "generate_configs[1].presence_penalty: must be at most",
        ),
        ("repetition_penalty: 0", "generate_configs[1].repetition_penalty: must be greater than 0"),
        ("logit_bias: {-1: 1}", "generate_configs[1].logit_bias"),
        ("logit_bias: {word: 1}", "generate_configs[1].logit_bias"),
        (
            "stop_token_ids: [-2]",
            "generate_configs[1].stop_token_ids[0]: must be at least",
        ),
        (
            "structured_output: {regex: a, choice: [b]}",
            "generate_configs[1].structured_output: give exactly one of regex, choice, json_schema, grammar",
        ),
        ("structured_output: {regexp: a}", "unknown key; did you mean 'regex'?"),
    ],
)
def test_what_cannot_be_is_refused_where_it_stands(campaign_file, added, said):
    message = refusal(campaign_file(WARM, f"{{name: warm, {added}}}"), ON_VLLM)
    assert said in message
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize(
    ("structure", "said"),
    [
        (
            "{regex: '(a'}",
            "structured_output.regex: '(a' is not a regular expression (missing ), unterminated",
        ),
        ("{json_schema: {type: thing}}", "structured_output.json_schema: is not a JSON schema: $.type"),
        (
            "{json_schema: {$ref: 'http://x/y'}}",
            "json_schema: the $ref 'http://x/y' points outside the schema",
        ),
    ],
)
def test_a_structure_that_is_none_is_refused_before_anything_runs(campaign_file, structure, said):
    path = campaign_file(WARM, f"{{name: warm, structured_output: {structure}}}")
    assert said in refusal(path, ON_VLLM)


def test_transformers_holds_no_text_to_a_structure(campaign_file):
    path = campaign_file(WARM, "{name: warm, structured_output: {choice: [a, b]}}")
    assert refusal(path).endswith(
        "generate_configs[1].structured_output: provider transformers does not support structured output; "
        "choose provider vllm, or remove it"
    )
    checked = check_campaign_file(path, ON_VLLM)
    assert checked.candidates[1].sampling.structure == Structure("choice", '["a", "b"]')


@pytest.mark.parametrize(
    ("added", "models", "said"),
    [
        ("top_k: 3", "", "warm.top_k"),
        ("min_p: 0.1", "", "OpenAI's own server has no such setting; remove it"),
        ("repetition_penalty: 1.1", "", "OpenAI's own server has no such setting; remove it"),
        ("stop_token_ids: [1]", "", "OpenAI's own server has no such setting; remove it"),
        ("structured_output: {regex: a}", "", "OpenAI's own server supports only json_schema"),
        ("structured_output: {json_schema: {type: object}}", "", "supports a json_schema only in chats"),
    ],
)
def test_openais_own_server_is_not_asked_for_what_it_does_not_know(
    campaign_file, monkeypatch, added, models, said
):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    overrides = ["models[0].provider=openai", "models[0].model=davinci-002"]
    message = refusal(campaign_file(WARM, f"{{name: warm, {added}}}"), overrides)
    assert f"generate_configs[1].{added.split(':')[0]}" in message
    assert said in message or said == "warm.top_k"
    elsewhere = [*overrides, "models[0].model_base_url=http://localhost:1/v1", "models[1].provider=vllm"]
    check_campaign_file("campaign.yaml", elsewhere)


def test_vllm_refuses_what_does_not_go_with_drafted_tokens(campaign_file):
    path = campaign_file(WARM, "{name: warm, min_p: 0.1}")
    drafts = "models[0].model_args={speculative_config: {method: ngram, num_speculative_tokens: 3}}"
    message = refusal(path, [*ON_VLLM, drafts])
    assert "generate_configs[1].min_p: vLLM has no such setting with speculative_config" in message


def test_a_structure_leaves_no_room_to_think_and_a_judge_says_itself_what_may_be_replied(campaign_file):
    path = campaign_file(WARM, "{name: warm, structured_output: {choice: [a, b]}}")
    thinks = "models[0].reasoning={parser: think-tags}"
    assert "the model cannot think before; remove reasoning" in refusal(path, [*ON_VLLM, thinks])
    judge = (
        "judge={type: llm, rubric: 'Good?', scale: yes/no, model: {name: j, model: checkpoints/small, "
        "provider: vllm, generate_config: {structured_output: {choice: [a, b]}}}}"
    )
    assert "a judge sets the form of its models' replies itself" in refusal(campaign_file(), [judge])


def test_arguments_of_a_model_may_be_nested(campaign_file):
    drafts = "models[0].model_args={speculative_config: {method: ngram, sizes: [1, 2]}}"
    checked = check_campaign_file(campaign_file(), [*ON_VLLM, drafts])
    expected = {"speculative_config": {"method": "ngram", "sizes": [1, 2]}}
    assert checked.candidates[0].as_record().model["model_args"] == expected
    bad = refusal(campaign_file(), ["models[0].model_args={a: [.nan]}"])
    assert "models[0].model_args.a: must be text, a finite number, true, false or null" in bad
