"""`winnow init` for one's own provider and data: short files that can be run once models are named."""

import pytest
import typer
import yaml
from campaigns import one_message, winnow

from winnow.flows.cli.start import specs
from winnow.tasks.setup.starter_files import MODELS


@pytest.fixture
def folder(tmp_path):
    rows = "".join(f"text {i},{'ab'[i % 2]}\n" for i in range(8))
    (tmp_path / "tickets.csv").write_text(f"body,team\n{rows}")
    return tmp_path


def written(folder):
    text = (folder / "campaign.yaml").read_text()
    return text, yaml.safe_load(text)


@pytest.mark.parametrize("provider", [*MODELS])
def test_a_short_file_is_written_for_each_provider(folder, provider):
    ran = winnow(folder, "init", "--provider", provider, "--data", "tickets.csv")
    assert ran.returncode == 0, ran.stderr
    text, values = written(folder)
    assert values["dataset"] == {"path": "tickets.csv", "fields": {"input": "body", "target": "team"}}
    assert [each["provider"] for each in values["models"]] == [provider] * 2
    assert values["judge"] == {"type": "normalised"}
    first, _, second = text.partition("\n\n# More keys; remove")
    own = [line for line in first.splitlines() if not line.startswith("#")]
    assert len(own) <= 18
    assert all(line.startswith("#") for line in second.splitlines()[1:])


def test_the_file_is_sound_and_so_is_what_its_comments_offer(folder):
    winnow(folder, "init", "--provider", "openai", "--data", "tickets.csv")
    assert "4 candidates x 8 examples" in winnow(folder, "validate", "campaign.yaml").stdout
    text, _ = written(folder)
    lines = [line.removeprefix("# ") for line in text.partition("# More keys")[2].splitlines()[1:]]
    for key in ("generate_configs", "holdout", "seed", "storage", "execution", "stopping"):
        offered = yaml.safe_load(
            "\n".join(lines[: lines.index(next(x for x in lines if x.startswith("judge")))])
        )
        rest = yaml.safe_load("\n".join(x for x in lines if x.startswith(key)))
        value = (offered | rest)[key] if key != "generate_configs" else offered[key]
        sound = winnow(folder, "validate", "campaign.yaml", "--set", f"{key}={yaml.safe_dump(value)}")
        assert sound.returncode == 0, (key, sound.stderr)


def test_without_data_a_file_that_is_to_be_made_is_named(folder):
    winnow(folder, "init", "--provider", "openai")
    assert written(folder)[1]["dataset"] == {
        "path": "data.jsonl",
        "fields": {"input": "input", "target": "target"},
    }


@pytest.mark.parametrize(
    ("asked", "models"),
    [
        (
            ("openai", "http://h:1/v1", "big, org/small"),
            [("big", "big", "http://h:1/v1"), ("small", "org/small", "http://h:1/v1")],
        ),
        (("openai", "openai", "gpt-x"), [("gpt-x", "gpt-x", None)]),
        (("transformers", "one/a,two/a"), [("a", "one/a", None), ("a-2", "two/a", None)]),
        (("vllm", ""), [("first", "path/to/MODEL", None), ("second", "path/to/MODEL", None)]),
    ],
)
def test_in_a_terminal_it_asks_for_models_and_their_server(folder, monkeypatch, asked, models):
    answers = iter([*asked, "tickets.csv"])
    monkeypatch.setattr(specs, "can_ask", lambda _: True)
    monkeypatch.setattr(typer, "prompt", lambda text, default: next(answers))
    assert winnow(folder, "init").returncode == 0
    text, values = written(folder)
    found = [(each["name"], each["model"], each.get("model_base_url")) for each in values["models"]]
    assert found == models
    assert ("# models: " in text) == (models[0][0] == "first")
    assert next(answers, None) is None


def test_in_a_terminal_it_asks(folder, monkeypatch):
    answers = iter(["transformers", "", "tickets.csv"])
    monkeypatch.setattr(specs, "can_ask", lambda _: True)
    monkeypatch.setattr(typer, "prompt", lambda text, default: next(answers))
    assert winnow(folder, "init").returncode == 0
    assert written(folder)[1]["models"][0]["provider"] == "transformers"
    assert written(folder)[1]["dataset"]["path"] == "tickets.csv"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--provider", "openia"), "unknown provider 'openia'; did you mean 'openai'?"),
        (("--data", "gone.csv"), "gone.csv"),
        (
            ("--objective", "certify", "--provider", "openai"),
            "--provider and --data apply only to objective best-mean",
        ),
    ],
)
def test_what_cannot_be_written_is_said(folder, options, said):
    ran = winnow(folder, "init", *options)
    assert ran.returncode == 2
    assert said in one_message(ran)
    assert not (folder / "campaign.yaml").exists()
