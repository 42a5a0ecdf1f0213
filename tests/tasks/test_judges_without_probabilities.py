"""Campaigns whose served judge, or plug-in, gives numbers that are none: unscored, in both databases."""

import math
from types import SimpleNamespace

import pytest
import served_campaigns
from both_databases import BOTH, fresh_database
from faulty_server import faulty_server
from sqlalchemy import text

from winnow.tasks.judges.pairwise.protocol import PairVerdict
from winnow.tasks.judges.plugin import PluginPairJudge
from winnow.tasks.plugins.entry_points import Plugin


@pytest.fixture(params=BOTH)
def database(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    served_campaigns.write_data(tmp_path)
    with fresh_database(request.param, tmp_path, request) as database:
        yield database


def duels(url, read="probabilities"):
    judge = {"type": "llm", "models": [served_campaigns.served_model(url, "judge")], "template": "alpaca"}
    return served_campaigns.served_spec(
        served_campaigns.served_model(url),
        objective="best-duel",
        judge={**judge, "read": read},
        selector={"name": "llm-po"},
        batch_size=4,
    )


def told(database):
    with database.reading() as session:
        return session.execute(text("SELECT outcome, reason FROM comparisons")).all()


@pytest.mark.parametrize("read", ["probabilities", "choice"])
@pytest.mark.parametrize(
    "known",
    [
        {"m": math.nan, "M": -0.1},
        {"m": -math.inf, "M": -0.1},
        {"m": math.inf, "M": -0.1},
        {"m": -9999.0, "M": -9999.0},
    ],
    ids=["NaN", "minus infinity", "infinity", "placeholders"],
)
def test_a_served_judge_without_usable_probabilities_leaves_duels_unscored(database, known, read):
    """The reproduction: verdicts of 0.0 in SQLite, a crash in PostgreSQL, and ties of placeholders."""
    with faulty_server(next_tokens=known) as server:
        served_campaigns.run(database, duels(server.url, read), rounds=1)
    assert set(told(database)) == {(None, "no_logprobs")}


def test_a_served_judge_with_probabilities_scores_them(database):
    with faulty_server(next_tokens={"m": math.log(0.75), "M": math.log(0.25)}) as server:
        served_campaigns.run(database, duels(server.url), rounds=1)
    assert {reason for _, reason in told(database)} == {None}


def test_a_plug_in_that_gives_nan_leaves_duels_unscored(database, monkeypatch):
    plug_in = SimpleNamespace(
        models=(),
        identity={},
        is_deterministic=True,
        calls=lambda duel, replies: (),
        verdict=lambda duel, replies: PairVerdict(outcome=math.nan),
    )
    monkeypatch.setattr(
        "winnow.tasks.objectives.best_duel.objective.create_pair_judge",
        lambda *_, **__: PluginPairJudge(Plugin(kind="pair judge", name="nan", location="nan:Nan"), plug_in),
    )
    with faulty_server() as server:
        served_campaigns.run(database, duels(server.url), rounds=1)
    assert set(told(database)) == {(None, "invalid_score")}
