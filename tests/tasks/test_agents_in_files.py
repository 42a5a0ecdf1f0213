"""Agents in a campaign's file: grids, what is wrong with an entry, and what has to be allowed."""

import pytest

from winnow.tasks.errors import SpecError
from winnow.tasks.setup.trust import permissions
from winnow.tasks.setup.yaml_file import SpecFile, parse_spec
from winnow.tasks.spec.campaign import CampaignSpec

BASE = {
    "name": "x",
    "objective": "best-mean",
    "dataset": "d.csv",
    "judge": "exact",
    "stopping": {"budget": 64},
}


def spec_of(*models, **keys):
    return CampaignSpec.model_validate({**BASE, "models": list(models), **keys})


def test_a_list_in_params_is_a_grid():
    agent = {"name": "a", "provider": "python", "function": "f.py:g"}
    spec = spec_of({**agent, "params": {"model": ["small", "org/large"], "k": [3], "z": 1}})
    assert [each.name for each in spec.models] == ["a_model-small", "a_model-org-large"]
    assert spec.models[1].settings.params == {"model": "org/large", "k": 3, "z": 1}
    again = CampaignSpec.from_stored(spec.identity(), spec.execution_fields(), spec.storage)
    assert again == spec
    assert "concurrency" not in spec.identity()["models"][0]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"timout": 3}, "models[1].timout: unknown key; did you mean 'timeout'?"),
        ({"concurrency": 0}, "models[1].concurrency: must be at least 1 (got 0)"),
        ({"lora": "x"}, "lora needs a model, and provider python runs no model; remove lora"),
        ({"params": {"k": []}}, "params.k of b is an empty list"),
        (
            {"params": {"k": ["a b", "a-b"]}},
            "two combinations of the params of b would both be called b_k-a-b",
        ),
    ],
)
def test_what_is_wrong_is_said_once_at_the_entry(tmp_path, keys, said):
    grid = {"name": "a", "provider": "python", "function": "f.py:g", "params": {"k": [1, 2, 3]}}
    odd = {"name": "b", "provider": "python", "function": "f.py:g", "params": {"k": [1, 2]}, **keys}
    with pytest.raises(SpecError) as found:
        parse_spec(SpecFile(tmp_path / "c.yaml", {**BASE, "models": [grid, odd]}))
    assert str(found.value).count(said) == 1, found.value


def test_a_key_that_goes_to_another_machine_has_to_be_allowed(tmp_path):
    agent = {"name": "a", "provider": "http", "headers": {"X-API-Key": "$RAG_KEY"}}
    (found,) = permissions(spec_of({**agent, "url": "https://rag.example.com/x"}), tmp_path)
    assert found.text == "send the environment variable RAG_KEY to 'https://rag.example.com'"
    assert found.keys == ("models[0].headers.X-API-Key", "models[0].url")
    assert not permissions(spec_of({**agent, "url": "http://127.0.0.1:8000/x"}), tmp_path)


def test_a_command_says_what_it_may_see(tmp_path):
    (tmp_path / "agent.py").write_text("print(1)")
    agent = {
        "name": "a",
        "provider": "command",
        "command": ["python3", "agent.py"],
        "env": ["$B_KEY", "A_KEY"],
    }
    (found,) = permissions(spec_of({**agent, "params": {"k": [1, 2]}}), tmp_path)
    where = f"{str(tmp_path.resolve())!a}"
    assert (
        found.text
        == f"run the command 'python3 agent.py' in {where} with the environment variables A_KEY, B_KEY"
    )
    assert list(found.digests) == ["agent.py:agent"]
