"""Campaigns whose outputs a model scores: killed and resumed, what they cost, and what goes wrong."""

import json
import math

import duel_campaigns
import pytest
import scripted_engines
import yaml
from campaign_processes import Kill, rows
from campaigns import one_message, winnow
from certify_campaigns import N_EXAMPLES as N_CERTIFIED
from certify_campaigns import model, write_certify
from faulty_server import faulty_server
from scored_campaigns import decisions_with_kills, write_scored
from tiny_models import save_tiny_llama

pytestmark = pytest.mark.usefixtures("plain_runs")

RUBRIC = "The output is the reference, character for character."
LOSSES = "SELECT human_loss, auto_loss, unlabelled_loss, unlabelled_missing FROM comparisons ORDER BY id"

WRONG = """
    SELECT count(*) FROM comparisons c JOIN generations g ON g.id = c.generation_a_id
    JOIN examples e ON e.id = c.example_id
    WHERE c.outcome <> (g.text = json_extract(e.targets, '$[0]'))
"""


@pytest.fixture(autouse=True)
def scripted_models(monkeypatch):
    scripted_engines.provide_all(monkeypatch)


def comparing(**params):
    """A scripted judge that says what `exact` says."""
    judge = {"type": "llm", "rubric": RUBRIC, "scale": "yes/no", "reference": True, "read": "text"}
    return judge | {"model": model("judging", "compares")} | params


def weighing():
    """A real judge, which knows nothing and is sure of some of it."""
    real = {"name": "judging", "provider": "transformers", "model": "judging"}
    return comparing(model=real | {"model_args": {"max_model_len": 2048}}, scale="1..5", read="probabilities")


def written(folder, judge, *, budget=24, **stopping):
    spec = write_scored(
        folder, ["knows", "guesses"], {"name": "row-mean"}, budget=budget, judge=judge, **stopping
    )
    save_tiny_llama(folder / "judging", seed=9)
    return spec


def served(server, **params):
    """A judge at a server."""
    at_server = {"name": "judging", "provider": "openai", "model": "served", "model_base_url": server.url}
    return comparing(model=at_server, scale="1..5", **params)


def asked(folder, view):
    return json.loads(winnow(folder, "query", "survivor", view, "--json").stdout)


@pytest.mark.parametrize("judge", [comparing, weighing])
def test_a_campaign_that_is_killed_ends_as_one_that_is_not(tmp_path, judge):
    """The ninth digit of a probability depends on what is asked beside it, but for the same calls."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    streaming = judge is not weighing
    found = decisions_with_kills(whole, written(whole, judge(), streaming=streaming), [])
    spec = written(killed, judge(), streaming=streaming)
    assert decisions_with_kills(killed, spec, [Kill(commit=5, after=False)]) == found
    judgments = duel_campaigns.history(whole)["judgments"]
    assert duel_campaigns.history(killed)["judgments"] == judgments
    assert len(judgments) == 24
    assert {reason for *_, reason, _ in judgments} == {None}
    asked_once = [tuple(each) for each in duel_campaigns.stored_texts(killed) if each[0] == "judging"]
    assert len(asked_once) == len(set(asked_once)) == len({key for *_, key in judgments})
    assert winnow(killed, "db", "check").returncode == 0
    if judge is comparing:  # which says what a rule would say
        assert rows(killed, WRONG) == [(0,)]


def test_certificates_rest_on_the_same_losses_whether_a_rule_or_a_model_says_so(tmp_path):
    losses = []
    for name, judge in (("rule", {"type": "exact"}), ("model", comparing())):
        (folder := tmp_path / name).mkdir()
        save_tiny_llama(folder / "judging", seed=9)
        write_certify(folder, labelled=N_CERTIFIED, judge=judge, stopping={"budget": 12, "delta": 0.1})
        ran = winnow(folder, "run", "campaign.yaml")
        assert ran.returncode in (0, 3), ran.stderr
        losses.append(rows(folder, LOSSES))
    assert losses[0] == losses[1]
    assert {loss for row in losses[0] for loss in row} == {0.0, 0.5}  # a half is the mean of a block of two


def test_the_calls_of_a_served_judge_are_paid_for_shown_and_told(tmp_path):
    odds = {"1": math.log(0.25), "2": -9.0, "3": -9.0, "4": -9.0, "5": math.log(0.5)}
    with faulty_server(next_tokens=odds) as server:
        written(tmp_path, served(server, read="probabilities"), budget={"comparisons": 24, "tokens": 9_000})
        ran = winnow(tmp_path, "run", "campaign.yaml")
    assert ran.returncode == 3, ran.stderr
    assert "the token budget is spent" in ran.stdout
    assert (
        "judge        scores are verdicts of judging on outputs, with the prompts and settings of the file"
        in ran.stdout
    )
    judgments = asked(tmp_path, "judgments")
    assert len(judgments) == 12
    bought = {each["prompt"] for each in judgments}  # the same text on the same example is judged once
    assert len(server.calls) == len(bought)
    assert {round(each["verdict"], 3) for each in judgments} == {0.667}
    assert RUBRIC in judgments[0]["prompt"]
    (cost,) = [row for row in asked(tmp_path, "costs") if row["model"] == "judging"]
    assert (cost["candidate"], cost["generations"]) == (None, len(bought))
    assert cost["input_tokens"] == sum(map(len, bought))


def test_a_server_that_tells_no_probabilities_is_asked_for_texts_and_what_says_nothing_is_a_reason(tmp_path):
    with faulty_server(reply=lambda call: "[[2]]" if "Reminder" in call.prompt else "hm") as server:
        written(tmp_path, served(server, read="probabilities"), budget=12)
        ran = winnow(tmp_path, "run", "campaign.yaml")
        assert ran.returncode in (0, 3), ran.stderr
        reasons = [
            (each["attempt"], each["reason"], each["verdict"]) for each in asked(tmp_path, "judgments")
        ]
        assert set(reasons) == {(0, "no_logprobs", None), (1, "verdict_missing", None), (2, None, 0.25)}
        server.reply = lambda call: "nothing"
        forked = winnow(tmp_path, "run", "campaign.yaml", "--fork", "silent", "--set", "judge.max_reasks=0")
    assert forked.returncode in (1, 3), forked.stderr
    assert "Traceback" not in forked.stderr
    told = rows(
        tmp_path, "SELECT DISTINCT reason FROM comparisons WHERE judge LIKE 'llm%' AND outcome IS NULL"
    )
    assert told == [("verdict_missing",)]


def test_a_judge_of_its_own_outputs_is_told_before_and_after(tmp_path):
    written(tmp_path, comparing(model=model("judging", "compares") | {"model": "knows"}))
    told = winnow(tmp_path, "validate", "campaign.yaml").stdout
    assert "check: judging judges its own outputs, those of knows; models tend to prefer their own" in told
    written(tmp_path, comparing())
    assert "check" not in winnow(tmp_path, "validate", "campaign.yaml").stdout


def test_what_rules_have_settled_is_not_said_to_be_a_models_opinion(tmp_path):
    written(tmp_path, {"type": "any", "judges": [{"type": "exact"}, comparing()]}, budget=12)
    told = winnow(tmp_path, "run", "campaign.yaml").stdout
    assert "judge        scores come from rules and from verdicts of judging on outputs" in told
    outputs = rows(tmp_path, "SELECT outcome FROM comparisons")
    assert 0 < len(asked(tmp_path, "judgments")) == len([each for each in outputs if each == (0.0,)])


def test_what_a_judge_would_take_is_planned(tmp_path):
    prices = {name: {"input": 1.0, "output": 10.0} for name in ("knows", "guesses", "judging")}
    written(
        tmp_path, comparing(model=model("judging", "compares") | {"generate_config": {"max_tokens": 100}})
    )
    arguments = ["plan", "campaign.yaml", "--seeds", "2", "--workers", "1", "--json", "--set"]
    plan = json.loads(winnow(tmp_path, *arguments, f"execution.prices={json.dumps(prices)}").stdout)
    expected, dearest = plan["expected"], plan["dearest"]
    assert expected["judge_calls"] == expected["requests"]
    assert dearest["judge_calls"] == 24
    assert dearest["judge_reply_tokens"] == 24 * 100
    assert dearest["judge_prompt_tokens"] > 24 * len(RUBRIC)  # a token of this model is a character
    shown = dearest["prompt_tokens"] + dearest["judge_prompt_tokens"]
    made = dearest["answer_tokens"] + dearest["judge_reply_tokens"]
    assert dearest["price"] == pytest.approx((shown + 10 * made) / 1e6)


REFUSED = [
    ({"rubric": None}, "judge.rubric: llm needs rubric"),
    ({"scale": "1..100"}, "judge.scale: must be 'yes/no', '1..5' or '1..10', got '1..100'"),
    ({"model": model("judging", "compares") | {"model": "gone"}}, "judge.model.model: there is no"),
    ({"model": model("knows", "compares") | {"model": "judging"}}, "the name 'knows' is a candidate's"),
]


def test_a_judge_that_cannot_be_is_told_before_anything_runs(tmp_path):
    path = written(tmp_path, comparing())
    spec = yaml.safe_load(path.read_text())
    for change, told in REFUSED:
        judge = {key: value for key, value in comparing(**change).items() if value is not None}
        path.write_text(yaml.safe_dump(spec | {"judge": judge}))
        refused = winnow(tmp_path, "run", "campaign.yaml")
        assert refused.returncode == 2
        assert told in one_message(refused)
    assert not (tmp_path / "winnow.db").exists()
