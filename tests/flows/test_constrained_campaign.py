"""The best of those that meet constraints, the whole way from a file to an answer, on scripted models."""

import pytest
import scripted_engines
import yaml
from campaign_processes import rows
from campaigns import status_json, winnow
from certify_campaigns import model
from scored_campaigns import KILLS, decisions_with_kills, write_scored
from tiny_models import save_tiny_llama

from winnow.flows.reports.summary import status_of
from winnow.flows.run.artifacts import _status_line

pytestmark = pytest.mark.usefixtures("plain_runs")

NAMES = ["talks", "slips", "guesses"]


def write_constrained(folder, *constraints, metric=None):
    """Whoever answers in a sentence has the highest score, and never the value 1."""
    path = write_scored(folder, NAMES, {"name": "champion"}, judge={"type": "contains"}, epsilon=0.0)
    spec = yaml.safe_load(path.read_text())
    spec["metrics"] = [{"name": "bare", "judge": metric or {"type": "exact"}}]
    spec["constraints"] = [{"metric": "bare", **each} for each in constraints]
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return path


@pytest.fixture(autouse=True)
def engines(monkeypatch):
    for name in (*NAMES, "compares"):
        scripted_engines.provide(monkeypatch, name)


def test_the_answer_names_the_best_of_those_that_meet_the_constraints(tmp_path):
    write_constrained(tmp_path, {"at_least": 0.9}, {"at_most": 0.98})
    checked = winnow(tmp_path, "validate", "campaign.yaml").stdout
    assert "; only candidates that meet bare at least 0.9, bare at most 0.98 can be the best" in checked
    result = winnow(tmp_path, "run", "campaign.yaml")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("survivor: winner, proven\n")
    assert (
        "must         bare at least 0.9: slips/plain has 0.975 on the 120 examples (known exactly)\n"
        "  must         bare at most 0.98: slips/plain has 0.975 on the 120 examples (known exactly)\n"
    ) in result.stdout
    assert (
        "on these 120 examples slips/plain meets the constraints (known exactly), and of the candidates "
        "that meet them, no candidate has a mean that is higher (at most 5% risk of error)\n"
    ) in result.stdout
    shown = status_json(tmp_path)
    assert shown["constraints"][0] == {
        "constraint": {"metric": "bare", "at_least": 0.9, "at_most": None},
        "mean": 0.975,
        "valued": 120,
        "judges": [],
    }
    assert shown["candidates"][0]["status"] == "unfit"
    assert (
        "candidates are eliminated by bets that they violate a constraint, which is not certain"
        in result.stdout
    )
    ((asked,),) = rows(tmp_path, "SELECT count(*) FROM comparisons")
    assert asked < 240


def test_what_is_held_out_shows_the_winner_and_what_it_has_to_meet(tmp_path):
    path = write_constrained(tmp_path, {"at_least": 0.9})
    path.write_text(f"{path.read_text()}holdout: 0.25\n")
    checked = winnow(tmp_path, "validate", path.name).stdout
    assert "30 of the examples are held out for the winner, selection uses the other 90" in checked
    result = winnow(tmp_path, "run", "campaign.yaml")
    assert result.returncode == 0, result.stderr
    stored = rows(
        tmp_path,
        "SELECT k.name, e.key, c.outcome, m.score FROM comparisons c JOIN examples e ON e.id = c.example_id "
        "JOIN candidates k ON k.id = c.candidate_a_id JOIN metrics m ON m.comparison_id = c.id",
    )
    selection = [each.split() for each in result.stdout.splitlines() if "must " in each]
    assert " ".join(selection[0]).endswith("on the 90 examples (known exactly)")
    of_winner = {key: value for name, key, _, value in stored if name == "slips/plain"}
    assert len(of_winner) == 120
    others = {key for name, key, *_ in stored if name != "slips/plain"}
    assert len(others) <= 90
    shown = status_json(tmp_path)
    (value,) = shown["held_out"]["values"]
    assert value["valued"] == 30
    in_selection = round(shown["constraints"][0]["mean"] * 90)
    assert in_selection + round(value["mean"] * 30) == sum(of_winner.values())
    assert f"bare at least 0.9: {value['mean']:.3f} on these; on new examples like these between" in " ".join(
        result.stdout.split()
    )
    assert "not supported" not in result.stdout


def test_where_nobody_meets_them_the_answer_is_that_nobody_does(tmp_path):
    write_constrained(tmp_path, {"at_least": 1.0})
    result = winnow(tmp_path, "run", "campaign.yaml")
    assert result.returncode == 3, result.stderr
    assert result.stdout.startswith("survivor: none\nNo candidate meets the constraints. ")
    assert "must         bare at least 1\n" in result.stdout
    assert "confidence   exact: on these 120 examples no candidate meets the constraints\n" in result.stdout
    said = _status_line(status_of(f"sqlite:///{tmp_path / 'winnow.db'}", "survivor"))
    assert said.startswith("survivor: none, no candidate meets the constraints; comparisons ")
    (*_, last_round) = [line for line in result.stderr.splitlines() if line.startswith("round ")]
    assert "no candidate meets the constraints" in last_round
    assert (
        "missed       3 of 3 candidates cannot meet the constraints, whatever their missing values are"
        in result.stdout
    )
    report = winnow(tmp_path, "report", "survivor").stdout
    assert report.count("infeasible") >= len(NAMES)


def rater(folder):
    """A model that says what `exact` says."""
    folder.mkdir(exist_ok=True)
    save_tiny_llama(folder / "judging", seed=9)
    judge = {"type": "llm", "rubric": "The same?", "scale": "yes/no", "reference": True, "read": "text"}
    return judge | {"model": model("judging", "compares")}


def test_where_a_model_gives_the_values_the_answer_says_so_and_no_kill_has_it_asked_again(tmp_path):
    stored = []
    for name, kills in (("whole", ()), ("killed", KILLS)):
        folder = tmp_path / name
        path = write_constrained(folder, {"at_least": 0.9}, metric=rater(folder))
        path.write_text(f"{path.read_text()}lookahead: 2\n")
        stored.append(decisions_with_kills(folder, path, kills))
        asked = rows(folder, "SELECT prompt_id FROM generations WHERE model = 'judging'")
        assert 0 < len(asked) == len(set(asked))
        assert winnow(folder, "db", "check").returncode == 0
    assert stored[0] == stored[1]
    values = "SELECT c.generation_a_id, m.score FROM metrics m JOIN comparisons c ON c.id = m.comparison_id"
    assert rows(tmp_path / "killed", values) == rows(tmp_path / "whole", values)
    told = winnow(tmp_path / "killed", "report", "survivor").stdout
    assert "slips/plain meets the constraints" in " ".join(told.split())
    assert "values of bare come from verdicts of judging on outputs" in " ".join(told.split())
    shown = status_json(tmp_path / "killed")
    assert shown["constraints"][0]["judges"] == ["judging"]
    assert shown["judges"] == []


@pytest.mark.parametrize("lookahead", [0, 2])
def test_a_campaign_killed_and_resumed_is_like_an_uninterrupted_one(tmp_path, lookahead):
    stored = []
    for name, kills in (("whole", ()), ("killed", KILLS)):
        path = write_constrained(tmp_path / name, {"at_least": 0.9})
        path.write_text(f"{path.read_text()}lookahead: {lookahead}\n")
        stored.append(decisions_with_kills(tmp_path / name, path, kills))
    assert stored[0] == stored[1]
    assert "best" in {status for *_, status in stored[0][0]["standings"]}
