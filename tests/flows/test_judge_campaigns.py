"""Campaigns of every kind of score judge: killed and resumed, and what a user is told of a bad one."""

import json

import pytest
import scripted_engines
from campaign_processes import Kill
from campaigns import one_message, winnow
from scored_campaigns import decisions_with_kills, write_scored

pytestmark = pytest.mark.usefixtures("plain_runs")

PARTS = [
    {"type": "math"},
    {"type": "json-schema", "schema": {"enum": ["a", "b"]}, "extract": "(.)", "no_answer": "wrong"},
    {"type": "bleu"},
    {"type": "chrf", "char_order": 1},
    {"type": "ter"},
    {"type": "rouge"},
    {"type": "f1"},
    {"type": "squad"},
    {"type": "python", "path": "mine.py:score", "range": [0, 10]},
    {"type": "all", "judges": [{"type": "exact"}, {"type": "contains"}]},
    {"type": "any", "judges": [{"type": "exact"}, {"type": "choice", "options": [*"abcdefg"]}]},
    {"type": "similarity", "model": "knows"},
]
ALL_OF_THEM = {"type": "weighted", "judges": PARTS, "weights": [1.0] * len(PARTS)}
FUNCTION = """
def score(sample):
    if sample.output in ("a", "e", "i") and sample.candidate == {"model": "knows", "prompt": "plain"}:
        raise ValueError("cannot judge this")
    asked = sample.prompt == sample.fields["input"] + "=" and sample.example == "e" + sample.fields["input"]
    counted = (sample.input_tokens, sample.output_tokens, sample.finish_reason) == (1, 1, "stop")
    return 10 * (sample.output in sample.targets and asked and counted)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A campaign of two scripted models, at home where nothing is trusted yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    for name in ("knows", "guesses"):
        scripted_engines.provide(monkeypatch, name)
    folder = tmp_path / "work"
    write(folder, {"type": "python", "path": "mine.py:score", "range": [0, 10]})
    return folder


def write(folder, judge):
    spec = write_scored(folder, ["knows", "guesses"], {"name": "row-mean"}, budget=24, judge=judge)
    (folder / "mine.py").write_text(FUNCTION)
    return spec


def test_a_campaign_of_all_judges_that_is_killed_ends_as_one_that_is_not(tmp_path, monkeypatch):
    for name in ("knows", "guesses"):
        scripted_engines.provide(monkeypatch, name)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    found = decisions_with_kills(whole, write(whole, ALL_OF_THEM), [])
    assert decisions_with_kills(killed, write(killed, ALL_OF_THEM), [Kill(commit=7, after=False)]) == found
    (history, _) = found
    outcomes = [row[4] for row in history["comparisons"]]
    assert len(outcomes) == 24
    told = {row[5] for row in history["comparisons"]}
    assert told <= {None, "judge_failed"}
    answers = [row[6] for row in history["comparisons"] if row[4] is not None]
    assert all(f"{part['type']} " in answer for answer in answers for part in PARTS)
    assert len({row[4] for row in history["comparisons"]}) > 2


def test_a_function_sees_the_log_probabilities_that_the_file_asks_for_and_rescore_those_stored(folder):
    told = "def score(sample):\n    return min(10, -8 * sum(sample.logprobs))\n"
    (folder / "mine.py").write_text(told)
    refused = winnow(folder, "run", "campaign.yaml", "--trust")
    assert "TypeError: 'NoneType' object is not iterable" in refused.stderr
    asking = "generate_configs=[{name: told, max_tokens: 4, logprobs: true}]"
    ran = winnow(folder, "run", "campaign.yaml", "--trust", "--set", "name=told", "--set", asking)
    assert ran.returncode in (0, 3), ran.stderr
    (folder / "other.yaml").write_text("type: python\npath: other.py:score\nrange: [0, 10]\n")
    (folder / "other.py").write_text(told)
    rescored = winnow(folder, "rescore", "told", "--judge", "other.yaml", "--trust")
    assert rescored.returncode in (0, 3), rescored.stderr
    query = (
        "SELECT k.name, c.outcome * 10 AS length, p.text, g.token_logprobs FROM comparisons c "
        "JOIN rounds r ON r.id = c.round_id JOIN campaigns k ON k.id = r.campaign_id "
        "JOIN generations g ON g.id = c.generation_a_id JOIN prompts p ON p.id = g.prompt_id "
        "WHERE k.name IN ('told', 'told-rescored') AND c.outcome IS NOT NULL"
    )
    rows = json.loads(winnow(folder, "query", "--sql", query, "--json").stdout)
    assert [sum(row["name"] == name for row in rows) for name in ("told", "told-rescored")] == [24, 24]
    for row in rows:
        assert row["length"] == pytest.approx(len(row["text"]))
        assert json.loads(row["token_logprobs"]) == [-len(row["text"]) / 8]


def test_a_function_of_ones_own_is_not_run_before_somebody_allows_it(folder):
    (folder / "mine.py").write_text("open('ran', 'w')\n" + FUNCTION)
    refused = winnow(folder, "run", "campaign.yaml")
    assert refused.returncode == 2
    assert f"it would run 'score' of the Python file '{folder}/mine.py' (judge.path)" in one_message(refused)
    assert winnow(folder, "validate", "campaign.yaml").returncode == 0
    assert not (folder / "ran").exists()


def test_a_part_that_is_a_function_needs_to_be_allowed_too(folder):
    write(folder, ALL_OF_THEM)
    assert "(judge.judges[8].path)" in one_message(winnow(folder, "run", "campaign.yaml"))


def test_a_function_that_raises_leaves_those_outputs_unscored_and_the_campaign_goes_on(folder):
    ran = winnow(folder, "run", "campaign.yaml", "--trust")
    assert ran.returncode in (0, 3), ran.stderr
    columns = "reason, count(*) AS n, min(detail) AS detail, max(outcome) AS best"
    query = f"SELECT {columns} FROM comparisons GROUP BY reason ORDER BY n"
    rows = json.loads(winnow(folder, "query", "--sql", query, "--json").stdout)
    assert [row["reason"] for row in rows] == ["judge_failed", None]
    assert sum(row["n"] for row in rows) == 24
    assert rows[1]["best"] == 1.0
    assert "raised ValueError: cannot judge this (mine.py, line 4)" in rows[0]["detail"]
    kept = (folder / "logs" / "survivor" / "plugins.log").read_text()
    assert kept.count("Traceback") == 1
    assert "raise ValueError" in kept


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        (["validate"], "def score(:", "is not valid Python: SyntaxError"),
        (
            ["validate"],
            "def scores(sample): pass",
            "unknown function of mine.py 'score'; did you mean 'scores'?",
        ),
        (
            ["run", "--trust"],
            "import nowhere\ndef score(sample): pass",
            "raised ModuleNotFoundError: No module",
        ),
        (["run", "--trust"], "score = 7", "raised TypeError: score is not a function; correct mine.py:score"),
    ],
)
def test_a_function_that_cannot_be_had_is_told_before_anything_runs(folder, command, code, told):
    (folder / "mine.py").write_text(code)
    refused = winnow(folder, *command, "campaign.yaml")
    assert refused.returncode == 2
    assert told in one_message(refused)
    assert refused.stderr.startswith("winnow: campaign.yaml:")
    assert not (folder / "winnow.db").exists()


def test_judges_are_listed_with_their_unit_and_what_it_is_worth(tmp_path):
    rows = {row["judge"]: row for row in json.loads(winnow(tmp_path, "judges", "--json").stdout)}
    assert rows["bleu"]["unit"] == "points, 0 to 100"
    assert rows["bleu"]["score"] == "points / 100"
    assert rows["ter"]["score"] == "max(0, 1 - edits / 100)"
    assert "unit" not in rows["llm"]
