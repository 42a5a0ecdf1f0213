"""Candidates that join a campaign that routes, and what else of its definition may not change."""

import json
import math

import pytest
import route_campaigns as route
import scripted_engines
from campaign_processes import Kill
from campaigns import winnow
from route_campaigns import write_route
from route_commands import asked, chosen, copy_of, done, everything, prepared, spell
from waiting import PATIENCE_S

from winnow.tasks.objectives.route.router import Router

pytestmark = pytest.mark.usefixtures("plain_runs")


WITH_NEWCOMER = [
    route.model("newcomer", "does_all"),
    route.model("counter", "counts"),
    route.model("speller", "spells"),
]
"""The new model stands first, yet its candidate is the third arm."""

TWO_PROMPTS = [{"name": "plain", "template": "{{ input }}="}, {"name": "other", "template": "{{ input }}:"}]


def test_a_model_that_is_added_joins_and_nothing_learned_is_lost(forks, answered, tmp_path_factory):
    early = route.history(answered)
    again, storage = copy_of(answered, tmp_path_factory.mktemp("again") / "copy")
    write_route(answered, models=WITH_NEWCOMER)
    done(answered, "run", "campaign.yaml")
    late = route.history(answered)
    for table in ("rounds", "comparisons", "decisions"):
        assert late[table][: len(early[table])] == early[table]
    assert late["embeddings"] == early["embeddings"]
    assert late["candidates"] == [
        (0, "counter/plain", 0),
        (1, "speller/plain", 0),
        (2, "newcomer/plain", 6),
    ]
    assert "newcomer/plain" in {row["candidate"] for row in asked(answered, "comparisons")[24:28]}
    prepared(again, models=WITH_NEWCOMER)
    for commit in (4, 9, None):
        process = route.begin(forks, again, storage, Kill(commit=commit, after=True) if commit else None)
        process.join(PATIENCE_S)
        assert process.exitcode == (-9 if commit else 0)
    assert route.history(again) == late
    assert "models" in refused_run(answered, models=WITH_NEWCOMER[1:])


def test_who_joins_where_all_others_were_dropped_is_asked(tmp_path, monkeypatch):
    scripted_engines.provide(monkeypatch, "absent")
    gone = [route.model(name, "absent") for name in ("counter", "speller")]
    write_route(tmp_path, models=gone)
    assert winnow(tmp_path, "run", "campaign.yaml").returncode == 1
    write_route(tmp_path, models=[*gone, WITH_NEWCOMER[0]])
    done(tmp_path, "run", "campaign.yaml")
    scored = {row["candidate"]: row["scored"] for row in asked(tmp_path, "leaderboard")}
    assert (scored["counter/plain"], scored["speller/plain"]) == (0, 0)
    assert scored["newcomer/plain"] > route.BATCH_SIZE


def test_a_candidate_that_joined_a_campaign_without_budget_is_shown_as_unknown(answered, monkeypatch):
    write_route(answered, models=WITH_NEWCOMER, stopping={"budget": 24})
    assert "24 comparisons in 6 rounds" in done(answered, "run", "campaign.yaml")
    board = {row["candidate"]: row["estimate"] for row in asked(answered, "leaderboard")}
    assert board.keys() == {"counter/plain", "speller/plain", "newcomer/plain"}
    assert board["newcomer/plain"] is None
    done(answered, "report", "survivor")
    assert chosen(answered, range(60, 70), "spell") == {"speller/plain"}
    monkeypatch.chdir(answered)
    assert math.isnan(Router.load("policy").scores(route.text("spell", 61))["newcomer/plain"])
    assert json.loads(done(answered, *spell(99, "--json")))[0]["candidate"] == "newcomer/plain"


def refused_run(folder, **changes):
    """What is said of a definition that may not take the place of the stored one; nothing changes."""
    before = everything(folder)
    write_route(folder, **changes)
    result = winnow(folder, "run", "campaign.yaml")
    assert result.returncode == 2
    assert "which cannot change" in result.stderr
    assert everything(folder) == before
    return result.stderr


CHANGES = {
    "a model less": ({"models": [WITH_NEWCOMER[1]], "prompts": TWO_PROMPTS}, "models"),
    "a model exchanged": ({"models": WITH_NEWCOMER[:2]}, "models"),
    "a model changed": (
        {"models": [*WITH_NEWCOMER[:2], route.model("speller", "does_all")]},
        "models",
    ),
    "another seed": ({"models": WITH_NEWCOMER, "seed": 4}, "seed: 3 -> 4"),
    "another pooling": ({"embedder": {"model": "embedder", "pooling": "last"}}, "pooling: 'mean' -> 'last'"),
    "another type": ({"prompt_type": None}, "prompt_type: 'type' -> None"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_else_changes_is_refused_with_the_difference(finished, case, tmp_path):
    changes, told = CHANGES[case]
    folder, _ = copy_of(finished, tmp_path / "copy")
    assert told in refused_run(folder, storage="sqlite:///winnow.db", **changes)
