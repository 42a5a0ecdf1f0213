"""A file is held to all limits of a spec, a stored campaign to its types alone."""

import pytest
from pydantic import ValidationError

from winnow.tasks.spec.campaign import CampaignSpec

VALUES = {
    "name": "letters",
    "objective": "best-mean",
    "seed": 1,
    "storage": "sqlite:///results.db",
    "models": [{"name": "one", "provider": "transformers", "model": "one"}],
    "prompts": [{"name": "plain", "template": "{{ input }}"}],
    "generate_configs": [{"name": "warm", "temperature": 1.0, "max_tokens": 4}],
    "dataset": {"path": "data.jsonl"},
    "samples": {"n": 4},
    "judge": {"type": "exact"},
    "selector": {"name": "champion"},
    "batch_size": 4,
    "stopping": {"budget": 8, "delta": 0.05},
}
SPEC = CampaignSpec.model_validate(VALUES)
IDENTITY, EXECUTION = SPEC.identity(), SPEC.execution_fields()

LIMITED = {
    "a number above its maximum": ("samples", {"n": 1_000, "reduce": "mean"}),
    "a number below its minimum": ("batch_size", 0),
    "a number with a bound of its own": ("generate_configs", [{"name": "warm", "temperature": 99.0}]),
    "two keys that do not fit": ("samples", {"n": 4, "reduce": "pass@9"}),
    "a name that is used twice": ("models", VALUES["models"] * 2),
    "a budget that covers no round": ("batch_size", 9),
    "no text": ("prompts", [{"name": "plain", "template": ""}]),
}
MISTYPED = {
    "text for a number": ("batch_size", "four"),
    "a fraction for a whole number": ("batch_size", 4.5),
    "no list": ("prompts", {"name": "plain"}),
    "an unknown key": ("colour", "green"),
    "an unknown word": ("objective", "best-looking"),
    "a name that leads elsewhere": ("name", "../../etc"),
    "a model's name that leads elsewhere": ("models", [{**VALUES["models"][0], "name": "../up"}]),
    "a key in the place of its variable": ("models", [{**VALUES["models"][0], "api_key": "sk-123"}]),
}


def test_a_stored_spec_is_what_it_was_in_its_file():
    assert CampaignSpec.from_stored(IDENTITY, EXECUTION, SPEC.storage) == SPEC


@pytest.mark.parametrize(("key", "value"), LIMITED.values(), ids=LIMITED)
def test_a_limit_that_is_made_later_refuses_files_and_no_stored_campaign(key, value):
    with pytest.raises(ValidationError):
        CampaignSpec.model_validate({**VALUES, key: value})
    stored = CampaignSpec.from_stored({**IDENTITY, key: value}, EXECUTION, SPEC.storage)
    assert stored.model_dump(mode="json")[key] != SPEC.model_dump(mode="json")[key]


@pytest.mark.parametrize(("key", "value"), MISTYPED.values(), ids=MISTYPED)
def test_what_is_of_another_type_is_refused_in_a_file_and_a_database(key, value):
    with pytest.raises(ValidationError):
        CampaignSpec.model_validate({**VALUES, key: value})
    with pytest.raises(ValidationError):
        CampaignSpec.from_stored({**IDENTITY, key: value}, EXECUTION, SPEC.storage)
