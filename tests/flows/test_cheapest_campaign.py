"""The cheapest candidate that is good enough, the whole way from a file to an answer, on scripted models."""

import json

import pytest
import scripted_engines
from campaign_processes import rows
from campaigns import one_message, status_json, winnow
from scored_campaigns import KILLS, decisions_with_kills, write_scored

pytestmark = pytest.mark.usefixtures("plain_runs")

NAMES = ["knows", "slips", "guesses"]
COSTS = {"knows/plain": 10, "slips/plain": 2.5, "guesses/plain": 1}


def write_costs(folder, costs=COSTS, **stopping):
    selector = {"name": "champion", "params": {"prefer": "cost", "costs": costs, "start": "champion"}}
    return write_scored(folder, NAMES, selector, **{"epsilon": 0.3, **stopping})


@pytest.fixture(autouse=True)
def engines(monkeypatch):
    for name in NAMES:
        scripted_engines.provide(monkeypatch, name)


def test_the_answer_names_the_best_the_chosen_one_and_what_is_saved(tmp_path):
    write_costs(tmp_path)
    result = winnow(tmp_path, "run", "campaign.yaml")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(
        "survivor: no candidate is better by more than 30 points (5% risk of error), proven\n"
    )
    assert "winner       knows/plain" in result.stdout
    assert "chosen       slips/plain: costs 2.5 instead of 10 (knows/plain), 75% less" in result.stdout
    assert (
        "on these 120 examples no candidate has a mean that is higher than that of knows/plain or of "
        "slips/plain by more than 0.3 (at most 5% risk of error)"
    ) in result.stdout
    shown = status_json(tmp_path)
    assert (shown["best"], shown["chosen"], shown["costs"]["slips/plain"]) == (
        "knows/plain",
        "slips/plain",
        2.5,
    )
    assert shown["claim"]["delta"] == 0.05
    (row,) = json.loads(winnow(tmp_path, "query", "survivor", "history", "--json").stdout)
    assert (row["best"], row["chosen"]) == ("knows/plain", "slips/plain")
    ((spent,),) = rows(tmp_path, "SELECT count(*) FROM comparisons")
    assert spent < 360


def test_a_limit_that_ends_what_is_held_out_does_not_say_that_cheaper_ones_were_not_tested(tmp_path):
    """Bets had given up who is cheaper before the first example that is held out was asked for."""
    told = {}
    for tokens in (1000, 300):
        path = write_costs(tmp_path, budget={"comparisons": 360, "tokens": tokens}, epsilon=0.02)
        path.write_text(f"{path.read_text()}holdout: 0.5\n")
        result = winnow(tmp_path, "run", path.name, "--fork", f"first-{tokens}", "--set", "reuse=none")
        assert result.returncode == 0, result.stderr
        lines = [line[2:].split(maxsplit=1) for line in result.stdout.splitlines() if line.startswith("  ")]
        told[tokens] = dict(lines)
    nobody = "knows/plain: no candidate that costs less than 10 was shown to be at most 0.01 below it"
    assert told[1000]["chosen"] == told[300]["chosen"] == f"{nobody}, which is half of epsilon"
    assert "then the token budget is spent" in " ".join(told[300].values())


def test_costs_that_name_nobody_are_refused_in_a_sentence(tmp_path):
    write_costs(tmp_path, {**COSTS, "gueses/plain": 1})
    refused = winnow(tmp_path, "validate", "campaign.yaml")
    assert refused.returncode == 2
    assert "selector.params.costs: unknown candidate 'gueses/plain'; did you mean" in one_message(refused)


def test_a_campaign_killed_and_resumed_is_like_an_uninterrupted_one(tmp_path):
    stored = []
    for name, kills in (("whole", ()), ("killed", KILLS)):
        stored.append(decisions_with_kills(tmp_path / name, write_costs(tmp_path / name), kills))
    assert stored[0] == stored[1]
    assert "chosen" in {status for *_, status in stored[0][0]["standings"]}
