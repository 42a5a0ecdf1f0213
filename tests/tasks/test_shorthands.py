"""Short campaign files: what they stand for, and that a campaign is the same whichever way it was written."""

import pytest
import yaml
from spec_files import load_spec

from winnow.tasks.errors import SpecError
from winnow.tasks.setup.check import check_campaign
from winnow.tasks.spec.shorthands import DELTA, model_of, models_of, short_name

SHORT = {
    "name": "short",
    "objective": "best-mean",
    "models": ["openai:gpt-x", "http://127.0.0.1:8000/v1#served"],
    "prompts": ["{{ input }}", "Q: {{ input }}"],
    "dataset": "data.jsonl",
    "judge": "exact",
}
LONG = {
    "name": "short",
    "objective": "best-mean",
    "models": [
        {"name": "gpt-x", "provider": "openai", "model": "gpt-x", "chat": True},
        {
            "name": "served",
            "provider": "openai",
            "model": "served",
            "model_base_url": "http://127.0.0.1:8000/v1",
            "chat": True,
        },
    ],
    "prompts": [
        {"name": "prompt-1", "template": "{{ input }}"},
        {"name": "prompt-2", "template": "Q: {{ input }}"},
    ],
    "dataset": {"path": "data.jsonl"},
    "judge": {"type": "exact"},
    "selector": {"name": "champion"},
    "stopping": {"delta": 0.05, "budget": 80},
}


@pytest.fixture
def spec_of(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    rows = (f'{{"input": "{i}", "target": "{i}"}}\n' for i in range(20))
    (tmp_path / "data.jsonl").write_text("".join(rows))

    def read(values):
        (tmp_path / "campaign.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
        return load_spec("campaign.yaml")

    return read


def test_a_short_file_is_the_campaign_of_the_file_that_is_written_out(spec_of):
    short, long = (check_campaign(spec_of(values)) for values in (SHORT, LONG))
    assert short.identity() == long.identity()
    assert short.spec.execution_fields() == long.spec.execution_fields()


@pytest.mark.parametrize("key", ["models", "prompts", "dataset", "judge"])
def test_each_key_alone_may_be_short(spec_of, key):
    assert spec_of({**LONG, key: SHORT[key]}).identity() == spec_of(LONG).identity()


def test_a_judge_may_be_a_function_of_a_file(spec_of):
    short, long = ({**LONG, "judge": each} for each in ("f.py:f", {"type": "python", "path": "f.py:f"}))
    assert spec_of(short) == spec_of(long)


def test_a_selector_may_be_its_name(spec_of):
    assert spec_of({**LONG, "selector": "champion"}) == spec_of(LONG)


def test_a_metric_may_name_its_judge_alone(spec_of):
    short, long = ({**LONG, "metrics": [{"name": "m", "judge": each}]} for each in ("f1", {"type": "f1"}))
    assert spec_of(short) == spec_of(long)


def test_a_text_is_a_list_of_one(spec_of):
    spec = spec_of({**SHORT, "models": "gpt-x", "prompts": "{{ input }}"})
    assert [each.name for each in (*spec.models, *spec.prompts)] == ["gpt-x", "prompt-1"]


@pytest.mark.parametrize(
    ("stopping", "delta", "budget"),
    [
        ({}, DELTA, 80),
        ({"epsilon": 0.1}, DELTA, 80),
        ({"delta": 0.1}, 0.1, 80),
        ({"delta": None}, None, 80),
        ({"budget": 40}, DELTA, 40),
        ({"budget": {"tokens": 9}}, DELTA, {"tokens": 9}),
    ],
)
def test_what_a_file_leaves_out_is_as_select_has_it(spec_of, stopping, delta, budget):
    spec = check_campaign(spec_of({**SHORT, "stopping": stopping})).spec
    assert (spec.stopping.delta, spec.stopping.stored_budget) == (delta, budget)
    assert spec.selector.name == "champion"


def test_a_file_that_named_selector_and_budget_still_asks_for_no_error_probability(spec_of):
    spec = spec_of({**SHORT, "selector": {"name": "champion"}, "stopping": {"budget": 40}})
    assert spec.stopping.delta is None


def test_the_whole_grid_is_one_round_at_least(spec_of):
    spec = check_campaign(spec_of({**SHORT, "batch_size": 200})).spec
    assert spec.stopping.budget == 200


@pytest.mark.parametrize("objective", ["best-duel", "certify", "route"])
def test_other_objectives_still_need_selector_and_stopping(spec_of, objective):
    with pytest.raises(SpecError, match="selector: is missing"):
        spec_of({**SHORT, "objective": objective})
    with pytest.raises(SpecError, match=f"stopping: {objective} needs a budget; add stopping.budget"):
        spec_of({**LONG, "objective": objective, "stopping": {"delta": 0.1}})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gpt-4o", {"name": "gpt-4o", "provider": "openai", "model": "gpt-4o", "chat": True}),
        ("o3-mini", {"name": "o3-mini", "provider": "openai", "model": "o3-mini", "chat": True}),
        ("gpt2", {"name": "gpt2", "model": "gpt2"}),
        ("./runs/step-9", {"name": "step-9", "model": "./runs/step-9"}),
        ("./runs/a:b", {"name": "a-b", "model": "./runs/a:b"}),
        ("Org/Model-7B", {"name": "Model-7B", "model": "Org/Model-7B"}),
        ("transformers:./m", {"name": "m", "provider": "transformers", "model": "./m"}),
        (
            "litellm:anthropic/claude-x",
            {"name": "claude-x", "provider": "litellm", "model": "anthropic/claude-x", "chat": True},
        ),
        (
            "https://h/v1#a/b:7b",
            {"name": "b-7b", "provider": "openai", "model": "a/b:7b", "model_base_url": "https://h/v1"}
            | {"chat": True},
        ),
    ],
)
def test_a_text_stands_for_a_model(text, found):
    assert model_of(text) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "http://127.0.0.1:8000/v1",
            "names a server without a model; write http://127.0.0.1:8000/v1#SERVED-NAME",
        ),
        ("ollama:qwen", "'ollama:qwen' is not a model; write one of command:, http:, litellm:"),
        ("openai:", "'openai:' is not a model"),
    ],
)
def test_a_text_that_is_no_model_is_refused_with_the_remedy(spec_of, text, said):
    with pytest.raises(SpecError) as caught:
        spec_of({**SHORT, "models": [text]})
    assert said in str(caught.value)
    assert str(caught.value).startswith("campaign.yaml:3: models: ")


def test_models_of_one_name_are_told_apart_and_written_names_stay():
    names = [each["name"] for each in models_of(["a/m", "b/m", {"name": "m", "model": "c"}, "d/other"])]
    assert names == ["m-1", "m-2", "m", "other"]


@pytest.mark.parametrize("text", ["///", "…", "-._", ""])
def test_a_name_is_made_of_any_text(text):
    assert short_name(text) == "model"
