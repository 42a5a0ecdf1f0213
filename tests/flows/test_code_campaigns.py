"""Campaigns whose judge runs programs: killed and resumed, what is told, and what has to be allowed."""

import json
import re
from pathlib import Path

import pytest
import scripted_engines
import yaml
from campaign_processes import Kill
from campaigns import one_message, winnow
from scored_campaigns import decisions_with_kills
from tiny_models import save_tiny_llama

pytestmark = pytest.mark.usefixtures("plain_runs")

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "score-code.md"


def page_blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def write(folder, *, n_examples=4, judge=None, **models):
    """The campaign of the page, with models given as name -> provider, on so many examples like its own."""
    folder.mkdir(exist_ok=True)
    first = page_blocks("json")[0].splitlines()[0]
    numbers = range(1, n_examples + 1)
    rows = [re.sub(r"(plus[_/]|plus )1\b", rf"\g<1>{n}", first) for n in numbers]
    rows = [
        row.replace("== 1", f"== {n}").replace("== -6", f"== {n - 7}")
        for n, row in zip(numbers, rows, strict=True)
    ]
    (folder / "plus.jsonl").write_text("\n".join(rows) + "\n")
    spec = yaml.safe_load(page_blocks("yaml")[0])
    for seed, name in enumerate(models):
        save_tiny_llama(folder / name, seed=seed)
    spec["models"] = [
        {"name": name, "provider": provider, "model": name, "model_args": {"max_model_len": 512}}
        for name, provider in models.items()
    ]
    spec["storage"] = f"sqlite:///{folder}/winnow.db"
    spec["execution"] = {"log_folder": str(folder / "logs")}
    spec["generate_configs"][0]["max_tokens"] = 16
    del spec["generate_configs"][0]["stop_seqs"]  # scripted models write fences, as chat models do
    spec["judge"] |= {"timeout": 1, "memory": 256, **(judge or {})}
    spec["stopping"] |= {
        "budget": 2 * len(models) * n_examples,
        "ties": "resolve",
    }  # asks what is certain, too
    spec["name"] = "survivor"
    path = folder / "campaign.yaml"
    path.write_text(yaml.safe_dump(spec))
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder, at home where nothing is trusted yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    for name in ("codes", "bugs"):
        scripted_engines.provide(monkeypatch, name)
    return tmp_path / "work"


def test_the_examples_of_the_page_are_what_the_test_makes(folder):
    write(folder, codes="codes")
    made = [json.loads(line) for line in (folder / "plus.jsonl").read_text().splitlines()]
    assert made == [json.loads(line) for line in page_blocks("json")[0].splitlines()]


def test_a_campaign_that_is_killed_ends_as_one_that_is_not_on_real_and_scripted_models(folder, tmp_path):
    models = {"codes": "codes", "bugs": "bugs", "babble": "transformers"}
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    found = decisions_with_kills(whole, write(whole, n_examples=8, **models), [])
    again = decisions_with_kills(killed, write(killed, n_examples=8, **models), [Kill(commit=7, after=False)])
    assert again == found
    (history, _) = found
    told = " ".join(row[6] or "" for row in history["comparisons"])
    for words in ("passed 1 of 1 tests", "NameError", "SyntaxError"):
        assert words in told
    assert {row[5] for row in history["comparisons"]} == {None}


def test_the_campaign_of_the_page_runs_through_the_command_line(folder):
    write(folder, coder="codes", other="bugs")
    refused = winnow(folder, "run", "campaign.yaml")
    assert refused.returncode == 2
    assert "it would run programs that models write, in a sandbox (judge.allow_code)" in one_message(refused)
    assert winnow(folder, "validate", "campaign.yaml").returncode == 0
    assert not (folder / "winnow.db").exists()
    ran = winnow(folder, "run", "campaign.yaml", "--trust")
    assert ran.returncode in (0, 3), ran.stderr
    rows = json.loads(winnow(folder, "query", "survivor", "comparisons", "--json").stdout)
    told = {(row["candidate"].partition("/")[0], row["answer"]) for row in rows}
    assert ("coder", "passed 1 of 1 tests") in told
    assert {row["outcome"] for row in rows} == {0.0, 1.0}


@pytest.mark.parametrize(
    ("judge", "sentence"),
    [
        (
            {"allow_code": False},
            "judge.allow_code: runs programs that models write; to allow this, set allow_code: true",
        ),
        ({"tests": "{{ tset }}"}, "judge.tests: example 'plus/1': the template failed: 'tset' is undefined"),
        ({"tests": "{{ target[:0] }}"}, "judge.tests: no example has tests"),
        (
            {"entry_point": "{{ task }}"},
            "judge.entry_point: example 'plus/1': the template failed: 'task' is",
        ),
        ({"same_process": "no"}, "judge.same_process: must be true or false, got 'no'"),
    ],
)
def test_a_judge_that_cannot_work_is_refused_in_a_sentence(folder, judge, sentence):
    write(folder, codes="codes", judge=judge)
    refused = winnow(folder, "validate", "campaign.yaml")
    assert refused.returncode == 2
    assert sentence in one_message(refused)


def test_a_machine_without_the_isolation_is_told_so_before_anything_runs(folder, monkeypatch):
    write(folder, codes="codes")
    monkeypatch.setattr("winnow.tasks.judges.code.judge.missing", lambda: "Landlock")
    refused = winnow(folder, "validate", "campaign.yaml")
    assert refused.returncode == 2
    assert (
        "the sandbox for programs is unavailable: this machine lacks Landlock; run this judge"
        in one_message(refused)
    )


def test_a_sandbox_that_does_not_hold_is_told_before_a_text_is_made(folder, monkeypatch):
    write(folder, codes="codes")
    monkeypatch.setattr("winnow.tasks.judges.code.judge.escape", lambda: "AssertionError: opens a socket")
    refused = winnow(folder, "run", "campaign.yaml", "--trust")
    assert refused.returncode == 2
    assert "it does not hold here: AssertionError: opens a socket" in one_message(refused)
    assert not (folder / "winnow.db").exists()


def test_a_campaign_certifies_with_tests_for_labels(folder):
    spec = yaml.safe_load(write(folder, n_examples=24, codes="codes", bugs="bugs").read_text())
    spec |= {
        "objective": "certify",
        "prompts": spec["prompts"][:1],
        "certify": {"alpha": 0.4, "cost": "custom", "costs": {"bugs/bare/greedy": 1, "codes/bare/greedy": 2}},
        "selector": {"name": "r-eval"},
        "stopping": {"budget": 24, "delta": 0.2},
    }
    (folder / "campaign.yaml").write_text(yaml.safe_dump(spec))
    ran = winnow(folder, "run", "campaign.yaml", "--trust")
    assert ran.returncode in (0, 3), ran.stderr
    rows = json.loads(winnow(folder, "query", "survivor", "comparisons", "--json").stdout)
    losses = {(row["candidate"].partition("/")[0], row["human_loss"]) for row in rows}
    assert ("codes", 0.0) in losses
    assert losses <= {("codes", 0.0), ("bugs", 0.0), ("bugs", 1.0)}
