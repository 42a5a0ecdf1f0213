"""Campaigns that explore: the draws are stored, survive kills, and say whether routing pays."""

import json

import pytest
import route_campaigns as route
from campaign_processes import Kill, rows
from campaigns import winnow
from route_campaigns import EXPERTS
from route_commands import done, prepared
from waiting import PATIENCE_S

pytestmark = pytest.mark.usefixtures("plain_runs")

EXPLORES = {"name": "pak-ucb", "params": {"kernel": "linear", "eta": 0.5, "explore": 0.4}}


def test_a_campaign_that_explores_and_is_killed_stores_the_same_draws_and_says_whether_routing_pays(
    forks, tmp_path
):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
    storage = prepared(whole, selector=EXPLORES)
    process = route.begin(forks, whole, storage)
    process.join(PATIENCE_S)
    assert process.exitcode == 0
    storage = prepared(killed, selector=EXPLORES)
    for commit in (5, 18, 22, None):
        process = route.begin(
            forks, killed, storage, None if commit is None else Kill(commit=commit, after=True)
        )
        process.join(PATIENCE_S)
        assert process.exitcode == (0 if commit is None else -9)
    assert route.history(killed) == route.history(whole)
    drawn = [each for (line,) in rows(whole, "SELECT propensities FROM rounds") for each in json.loads(line)]
    assert {round(each, 9) for each in drawn} == {0.2, 0.8}
    standing = json.loads(done(whole, "status", "survivor", "--json"))["standing"]
    assert standing["single"] in EXPERTS.values()
    assert standing["advantage"]["lower"] < standing["advantage"]["estimate"] < standing["advantage"]["upper"]
    result = winnow(whole, "route", "survivor", "--export", "policy")
    assert result.returncode == 0
    assert result.stderr.startswith(
        "warning: routing was not shown to pay: its mean score is estimated to differ by "
    )


def test_without_exploring_the_export_says_that_nothing_was_shown(answered):
    assert rows(answered, "SELECT DISTINCT propensities FROM rounds") == [(None,)]
    result = winnow(answered, "route", "survivor", "--export", "policy")
    assert (result.returncode, len(result.stdout.splitlines())) == (0, 1)
    assert "it is unknown what one candidate alone would have scored" in result.stderr
