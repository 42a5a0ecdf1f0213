"""The m best candidates and the runner-up, the whole way from a file to an answer, on scripted models."""

import json

import pytest
import scripted_engines
from campaigns import one_message, status_json, winnow
from scored_campaigns import KILLS, decisions_with_kills, write_scored

pytestmark = pytest.mark.usefixtures("plain_runs")

NAMES = ["knows", "slips", "guesses"]


def write_best(folder, top_m=2):
    return write_scored(folder, NAMES, {"name": "champion", "params": {"top_m": top_m}})


@pytest.fixture(autouse=True)
def engines(monkeypatch):
    for name in NAMES:
        scripted_engines.provide(monkeypatch, name)


def test_the_answer_names_the_two_best_and_who_comes_next(tmp_path):
    write_best(tmp_path)
    result = winnow(tmp_path, "run", "campaign.yaml")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("survivor: the 2 best, exact\n")
    assert "best         knows/plain: mean " in result.stdout
    assert "best         slips/plain: mean " in result.stdout
    assert "runner-up    guesses/plain: slips/plain is ahead by " in result.stdout
    assert "no other candidate has a mean that is higher than that of any of these" in result.stdout
    shown = status_json(tmp_path)
    assert (shown["top_m"], shown["top"]) == (2, ["knows/plain", "slips/plain"])
    assert (shown["best"], shown["runner_up"]) == ("knows/plain", "guesses/plain")
    difference = next(each for each in shown["candidates"] if each["name"] == "guesses/plain")["difference"]
    assert difference["against"] == "slips/plain"
    assert difference["lower"] <= difference["estimate"] <= difference["upper"] < 0.0
    (listed,) = json.loads(winnow(tmp_path, "list", "--json").stdout)
    assert [listed[key] for key in ("best", "winners", "estimate")] == [
        "knows/plain, slips/plain",
        ["knows/plain", "slips/plain"],
        None,
    ]


def test_who_is_scored_on_all_that_selection_sees_is_known_exactly_though_not_on_what_is_held_out(tmp_path):
    """Two are scored on what is held out, and the runner-up of the two best is neither of them."""
    path = write_scored(
        tmp_path, NAMES, {"name": "champion", "params": {"top_m": 2}}, delta=None, epsilon=0.0, budget=300
    )
    path.write_text(f"{path.read_text()}holdout: 0.5\n")
    result = winnow(tmp_path, "run", "campaign.yaml")
    assert result.returncode == 0, result.stderr
    told = " ".join(result.stdout.split())
    assert "best knows/plain: mean 1.000 on the 60 examples of selection (known exactly)" in told
    (runner_up,) = [line for line in result.stdout.splitlines() if line.startswith("  runner-up")]
    assert runner_up.split(maxsplit=1)[1].startswith("guesses/plain: slips/plain is ahead by ")
    assert runner_up.endswith(" on the 60 examples of selection (known exactly)")


def test_more_best_than_there_are_candidates_are_refused_in_a_sentence(tmp_path):
    write_best(tmp_path, top_m=3)
    refused = winnow(tmp_path, "validate", "campaign.yaml")
    assert refused.returncode == 2
    assert "top_m must be from 1 to 2, fewer than the candidates, got 3" in one_message(refused)


def test_a_campaign_killed_and_resumed_is_like_an_uninterrupted_one(tmp_path):
    stored = [
        decisions_with_kills(tmp_path / name, write_best(tmp_path / name), kills)
        for name, kills in (("whole", ()), ("killed", KILLS))
    ]
    assert stored[0] == stored[1]
