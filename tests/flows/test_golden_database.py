"""A database that an earlier Winnow made goes on as it began: the same texts, comparisons and decisions."""

import json
import sqlite3
from contextlib import closing

import pytest
import yaml
from campaigns import winnow
from faulty_server import faulty_server

from tests.golden_database.campaigns import CAMPAIGNS, DATABASE, OUTCOMES, outcome, unpack
from winnow.tasks.engines.known_providers import PROVIDERS

STORAGE = ("--storage", f"sqlite:///{DATABASE}")
EXPECTED = json.loads(OUTCOMES.read_text())


@pytest.fixture(scope="module")
def gone_on(plain_runs, tmp_path_factory):
    """The folder, and what each campaign said when it was opened, resumed and reported; by its name."""
    folder = tmp_path_factory.mktemp("golden")
    unpack(folder)
    left = {name: outcome(folder / DATABASE, name) for name in CAMPAIGNS}
    refused = winnow(folder, "status", *STORAGE)
    assert f"run: winnow db upgrade {' '.join(STORAGE)}" in refused.stderr
    assert winnow(folder, "db", "upgrade", *STORAGE).returncode == 0
    before = {name: winnow(folder, "report", name, *STORAGE) for name in CAMPAIGNS}
    checked = winnow(folder, "db", "check", *STORAGE)
    with pytest.MonkeyPatch.context() as patch, faulty_server() as server:
        patch.setitem(PROVIDERS, "digest", "tests.faults.digest_engine:start")
        resumed = {
            name: winnow(folder, "resume", name, *STORAGE, "--trust", *golden.options_at(server.url))
            for name, golden in CAMPAIGNS.items()
        }
    return folder, left, before, checked, resumed


def test_it_opens_and_is_sound(gone_on):
    folder, _, _, checked, _ = gone_on
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "not covered: lost rows of 50 owners (datasets, campaigns and rounds)" in checked.stdout
    assert "the last decision" not in checked.stdout
    listed = json.loads(winnow(folder, "status", *STORAGE, "--json").stdout)
    assert {each["name"] for each in listed} == set(CAMPAIGNS)


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_each_campaign_goes_on_to_what_the_earlier_winnow_came_to(gone_on, name):
    folder, left, before, _, resumed = gone_on
    assert left[name] == EXPECTED[name]["left"]
    assert before[name].returncode in (0, 3), before[name].stderr
    assert before[name].stdout.startswith(name)
    assert resumed[name].returncode in (0, 3), resumed[name].stderr
    found = outcome(folder / DATABASE, name)
    assert found["comparisons"] == EXPECTED[name]["ended"]["comparisons"]
    expected = EXPECTED[name]["ended"]["decisions"]
    assert [_exact(row) for row in found["decisions"]] == [_exact(row) for row in expected]
    for row, as_before in zip(found["decisions"], expected, strict=True):
        assert _numbers(row) == pytest.approx(_numbers(as_before), rel=1e-4)


def test_it_is_sound_when_all_have_gone_on_and_each_is_reported(gone_on):
    folder, _, _, _, _ = gone_on
    checked = winnow(folder, "db", "check", *STORAGE)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "the last decision" not in checked.stdout
    for name in CAMPAIGNS:
        reported = winnow(folder, "report", name, *STORAGE)
        assert reported.returncode in (0, 3), reported.stderr
        assert reported.stdout.startswith(name)


def test_what_is_judged_again_finds_the_texts_under_the_keys_that_they_have(gone_on):
    folder = gone_on[0]
    (folder / "judge.yaml").write_text("type: exact\n")
    ran = winnow(folder, "rescore", "ended-mean", "--judge", "judge.yaml", *STORAGE, "--trust")
    assert ran.returncode in (0, 3), ran.stderr
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        query = "SELECT spec FROM campaigns WHERE name = 'ended-mean-rescored'"
        assert "text_rules" not in json.loads(connection.execute(query).fetchone()[0])
        written, judged = (
            dict(connection.execute(PAIRS, (name,)).fetchall())
            for name in ("ended-mean", "ended-mean-rescored")
        )
    both = written.keys() & judged.keys()
    assert both
    assert {pair: judged[pair] for pair in both} == {pair: written[pair] for pair in both}


def test_a_new_campaign_that_makes_no_text_finds_those_of_an_earlier_winnow(gone_on):
    folder = gone_on[0]
    spec = {**CAMPAIGNS["ended-mean"].spec, "name": "taken", "reuse": "only", "fail_on_error": 1.0}
    (folder / "taken.yaml").write_text(yaml.safe_dump({**spec, "stopping": {"budget": 60, "delta": 0.05}}))
    ran = winnow(folder, "run", "taken.yaml", "--trust")
    assert ran.returncode in (0, 3), ran.stderr
    assert outcome(folder / DATABASE, "taken")["decisions"][-1][8] > 0


def test_the_file_of_an_earlier_campaign_is_still_its_own_and_a_fork_has_the_new_rules(gone_on):
    folder = gone_on[0]
    (folder / "ended.yaml").write_text(yaml.safe_dump(dict(CAMPAIGNS["ended-mean"].spec)))
    before = outcome(folder / DATABASE, "ended-mean")
    again = winnow(folder, "run", "ended.yaml", "--trust")
    assert again.returncode in (0, 3), again.stderr
    assert outcome(folder / DATABASE, "ended-mean") == before
    forked = winnow(folder, "run", "ended.yaml", "--fork", "forked", "--trust")
    assert forked.returncode in (0, 3), forked.stderr
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        specs = dict(connection.execute("SELECT name, spec FROM campaigns").fetchall())
        read = connection.execute(READ, ("forked",)).fetchall()
    assert "text_rules" not in json.loads(specs["ended-mean"])
    assert json.loads(specs["forked"])["text_rules"] == 1
    beside_the_input = {
        candidate: {tokens for name, tokens in read if name == candidate} for candidate, _ in read
    }
    assert beside_the_input["writes/bare/warm"] == beside_the_input["writes/begun/warm"] == {len("<[]=")}


READ = """
SELECT a.name, g.input_tokens - length(json_extract(e.fields, '$.input')) FROM comparisons c
JOIN rounds r ON r.id = c.round_id
JOIN campaigns m ON m.id = r.campaign_id
JOIN examples e ON e.id = c.example_id
JOIN candidates a ON a.id = c.candidate_a_id
JOIN generations g ON g.id = c.generation_a_id
WHERE m.name = ?
"""
PAIRS = """
SELECT a.name || ' ' || e.key, c.generation_a_id FROM comparisons c
JOIN rounds r ON r.id = c.round_id
JOIN campaigns m ON m.id = r.campaign_id
JOIN examples e ON e.id = c.example_id
JOIN candidates a ON a.id = c.candidate_a_id
WHERE m.name = ?
"""


def _exact(row):
    return [None if isinstance(each, float) else each for each in row]


def _numbers(row):
    return [each for each in row if isinstance(each, float)]
