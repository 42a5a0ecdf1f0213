"""From models, prompts and ways of sampling to the arms of a campaign."""

import pytest
from spec_files import load_spec

from winnow.tasks.candidates.candidates import build_candidates
from winnow.tasks.data.datasets import Dataset, Example
from winnow.tasks.engines.protocol import Sampling
from winnow.tasks.errors import SpecError, TemplateError

DATASET = Dataset(
    name="letters",
    path="letters.jsonl",
    examples=(Example(key="e0", fields={"id": "e0", "input": "0 plus"}, targets=("a",)),),
    fingerprint="0" * 64,
)


@pytest.fixture
def candidates(campaign_file):
    def build(replace="", by="", *, add="", overrides=()):
        return build_candidates(load_spec(campaign_file(replace, by, add=add), overrides), DATASET)

    return build


def names(found):
    return [candidate.name for candidate in found]


def refusal(build, *arguments, **options):
    with pytest.raises(SpecError) as caught:
        build(*arguments, **options)
    return caught.value


def test_candidates_are_models_by_prompts_by_ways_of_sampling_in_the_order_of_the_file(candidates):
    assert names(candidates()) == [
        "small/plain/greedy",
        "small/plain/warm",
        "small/asked/greedy",
        "small/asked/warm",
        "smaller/plain/greedy",
        "smaller/plain/warm",
        "smaller/asked/greedy",
        "smaller/asked/warm",
    ]


def test_without_named_ways_of_sampling_a_model_samples_as_it_says(candidates):
    without = "generate_configs:\n  - {name: greedy}\n  - {name: warm, temperature: 1.0}\n"
    found = candidates(without, "")
    assert names(found) == ["small/plain", "small/asked", "smaller/plain", "smaller/asked"]
    assert [each.sampling.max_tokens for each in found] == [12, 12, 256, 256]


def test_a_named_way_of_sampling_leaves_the_rest_to_the_model(candidates):
    small, smaller = (found := candidates())[1], found[5]
    assert small.sampling == Sampling(temperature=1.0, max_tokens=12)
    assert smaller.sampling == Sampling(temperature=1.0, max_tokens=256)


def test_a_named_way_of_sampling_wins_over_the_model_even_with_a_default(candidates):
    found = candidates("{name: greedy}", '{name: greedy, max_tokens: 256, stop_seqs: ["\\n"]}')
    assert found[0].sampling == Sampling(max_tokens=256, stop=("\n",))


@pytest.mark.parametrize(
    ("replace", "by", "path"),
    [
        ("temperature: 1.0", "temperature: 2.5", "generate_configs[1].temperature"),
        ("max_tokens: 12}", "max_tokens: 12, temperature: 2.5}", "models[0].generate_config.temperature"),
    ],
)
def test_a_temperature_that_vllm_refuses_is_refused_where_it_stands(candidates, replace, by, path):
    assert max(each.sampling.temperature for each in candidates(replace, by)) == 2.5
    error = refusal(candidates, replace, by, overrides=["models[0].provider=vllm"])
    assert error.path == path
    assert error.message == "provider vllm accepts temperatures up to 2, got 2.5; lower it"


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        ("{model: small}", 4),
        ("{model: small, prompt: plain}", 6),
        ("{prompt: plain, generate_config: warm}", 6),
        ("{model: small, prompt: plain, generate_config: warm}", 7),
        ("{model: small}, {generate_config: warm}", 2),
    ],
)
def test_an_exclusion_leaves_out_what_matches_all_of_its_names(candidates, exclude, left):
    assert len(candidates(add=f"exclude: [{exclude}]\n")) == left


@pytest.mark.parametrize(
    ("exclude", "path", "said"),
    [
        ("{model: smal}", "exclude[0].model", "unknown model 'smal'; did you mean 'small'?"),
        ("{prompt: small}", "exclude[0].prompt", "unknown prompt 'small'"),
        (
            "{model: small}, {generate_config: cold}",
            "exclude[1].generate_config",
            "unknown generate_config 'cold'; available: greedy, warm",
        ),
    ],
)
def test_an_exclusion_of_what_is_not_there_is_refused(candidates, exclude, path, said):
    error = refusal(candidates, add=f"exclude: [{exclude}]\n")
    assert error.path == path
    assert error.message.startswith(said)


def test_fewer_than_two_candidates_are_refused(candidates):
    error = refusal(candidates, add="exclude: [{model: small}, {prompt: plain}, {generate_config: warm}]\n")
    assert (error.path, "the campaign has 1; add a model" in error.message) == ("models", True)


def test_a_folder_without_a_checkpoint_is_refused(candidates, folder):
    error = refusal(candidates, "checkpoints/smaller", "./checkpoints/smallest")
    assert error.path == "models[1].model"
    assert f"looked for config.json in {folder}/checkpoints/smallest" in error.message


def test_a_folder_is_not_taken_for_an_id_on_a_hub(candidates, folder):
    (folder / "checkpoints" / "smaller" / "config.json").unlink()
    assert refusal(candidates).path == "models[1].model"


def test_an_id_on_a_hub_is_not_looked_for_on_the_disk(candidates):
    assert candidates("checkpoints/smaller", "owner/name")[4].model.model == "owner/name"


def test_an_unknown_provider_is_refused(candidates):
    error = refusal(candidates, "transformers,", "transformer,")
    assert error.path == "models[0].provider"
    assert "did you mean 'transformers'?" in error.message


def test_a_template_that_asks_for_an_unknown_field_is_refused(candidates):
    error = refusal(candidates, "Q {{ input }}", "Q {{ question }}")
    assert isinstance(error, TemplateError)
    assert error.path == "prompts[1].template"


def test_what_is_stored_of_a_candidate_says_all_that_makes_it(candidates):
    record = candidates()[1].as_record()
    assert record.name == "small/plain/warm"
    assert record.model["model"] == "checkpoints/small"
    assert record.model["fingerprint"] == candidates()[0].fingerprint != candidates()[4].fingerprint
    assert record.prompt == {"name": "plain", "template": "{{ input }}="}
    assert record.sampling["temperature"] == 1.0


def test_a_small_file_that_means_more_candidates_than_anybody_compares_is_refused(candidates, monkeypatch):
    monkeypatch.setattr("winnow.tasks.candidates.candidates.MOST_CANDIDATES", 7)
    with pytest.raises(SpecError, match=r"models: .*are 8 candidates; name fewer of each, so that at most 7"):
        candidates()
