"""A campaign keeps the rules that it began with: one of each objective, left by a Winnow that stored none."""

import json
import sqlite3
from contextlib import closing

import pytest
import yaml
from campaigns import winnow

from tests.golden_database.unfinished import (
    CAMPAIGNS,
    DATABASE,
    OUTCOMES,
    STORAGE,
    budget_of,
    found_of,
    unpack,
)
from winnow.tasks.engines.providers import PROVIDERS

PLACE = ("--storage", STORAGE)
EXPECTED = json.loads(OUTCOMES.read_text())


@pytest.fixture(scope="module")
def resumed(plain_runs, tmp_path_factory):
    """The folder, and what each campaign said when it was resumed."""
    folder = tmp_path_factory.mktemp("unfinished")
    unpack(folder)
    assert {name: found_of(folder / DATABASE, name) for name in CAMPAIGNS} == {
        name: each["left"] for name, each in EXPECTED.items()
    }
    winnow(folder, "db", "upgrade", *PLACE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROVIDERS, "digest", "tests.faults.digest_engine:start")
        ran = {
            name: winnow(folder, "resume", name, *PLACE, "--trust", *budget_of(name)) for name in CAMPAIGNS
        }
    return folder, ran


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_an_unfinished_campaign_comes_to_the_decision_of_the_rules_it_began_with(resumed, name):
    folder, ran = resumed
    assert ran[name].returncode in (0, 3), ran[name].stderr
    found, expected = found_of(folder / DATABASE, name), EXPECTED[name]["ended"]
    assert found["comparisons"] == expected["comparisons"]
    assert found["claim"] == expected["claim"]
    for row, as_before in zip(found["decisions"], expected["decisions"], strict=True):
        assert row == [
            pytest.approx(each, rel=1e-4) if isinstance(each, float) else each for each in as_before
        ]


def test_its_decisions_follow_from_what_is_stored(resumed):
    folder, _ = resumed
    checked = winnow(folder, "db", "check", *PLACE)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "the last decision" not in checked.stdout


def test_its_file_may_name_the_rule_that_it_keeps_and_no_other(resumed, monkeypatch):
    monkeypatch.setitem(PROVIDERS, "digest", "tests.faults.digest_engine:start")
    folder, _ = resumed
    values = dict(CAMPAIGNS["all-right"], stopping={"budget": 240, "delta": 0.05, "ties": "resolve"})
    (folder / "same.yaml").write_text(yaml.safe_dump(values))
    assert winnow(folder, "run", "same.yaml", "--trust").returncode == 0
    values["stopping"]["ties"] = "open"
    (folder / "other.yaml").write_text(yaml.safe_dump(values))
    ran = winnow(folder, "run", "other.yaml", "--trust")
    assert ran.returncode == 2
    assert "stopping.ties: None -> 'open'" in ran.stderr


def _stored(folder, name):
    with closing(sqlite3.connect(folder / DATABASE)) as database:
        query = "SELECT spec FROM campaigns WHERE name = ?"
        return json.loads(database.execute(query, (name,)).fetchone()[0])


def test_a_new_campaign_ends_with_open_ties_and_stores_that(resumed, monkeypatch):
    monkeypatch.setitem(PROVIDERS, "digest", "tests.faults.digest_engine:start")
    folder, _ = resumed
    for name, ties, goes_on in (
        ("new", None, False),
        ("written", "open", False),
        ("resolved", "resolve", True),
    ):
        stopping = {"budget": 240, "delta": 0.05, **({"ties": ties} if ties else {})}
        values = dict(CAMPAIGNS["all-right"], name=name, stopping=stopping)
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(values))
        ran = winnow(folder, "run", f"{name}.yaml", "--trust")
        assert ran.returncode == 0, ran.stderr
        assert _stored(folder, name)["stopping"]["ties"] == (ties or "open")
        n_asked = sum(row[7] for row in found_of(folder / DATABASE, name)["decisions"])
        assert (n_asked == 240) == goes_on
        again = winnow(folder, "run", f"{name}.yaml", "--trust")
        assert again.returncode == 0, again.stderr
    checked = winnow(folder, "db", "check", *PLACE)
    assert "the last decision" not in checked.stdout
