"""Which stored texts a campaign takes in the place of new ones, and that an interrupted round loses none."""

import datetime as dt

import pytest
from both_databases import BOTH, fresh_database
from faulty_server import faulty_server, is_canary
from served_campaigns import N_EXAMPLES, begun, die_before_judging, run, served_model, served_spec, write_data

from winnow.storage.queries import campaign_views
from winnow.tasks.errors import SpecError
from winnow.tasks.rounds import generate, plan
from winnow.tasks.setup.load import check_campaign_file

GRID = 2 * N_EXAMPLES
BEGAN = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)


@pytest.fixture(params=BOTH)
def database(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    with fresh_database(request.param, tmp_path, request) as database:
        yield database


@pytest.fixture
def server():
    """Answers every text with its number."""

    def numbered(call):
        return f"about {call.prompt}" if is_canary(call.body) else f"text {call.number}"

    with faulty_server(reply=numbered) as server:
        yield server


@pytest.fixture
def on_day(monkeypatch):
    """Sets the clock of rounds and texts."""

    def set_day(days):
        for module in (generate, plan):
            monkeypatch.setattr(module, "now", lambda: BEGAN + dt.timedelta(days=days))

    return set_day


def spec(server, name, reuse="all", **keys):
    return served_spec(served_model(server.url), name=name, reuse=reuse, **keys)


def asked(server, action, *arguments, **keys):
    """How many texts the server was asked for meanwhile."""
    before = len(server.calls)
    action(*arguments, **keys)
    return len(server.calls) - before


@pytest.mark.parametrize("reuse", ["campaign", "none"])
def test_texts_of_other_campaigns_are_left_alone_and_theirs_by_others(database, server, reuse):
    run(database, spec(server, "first"))
    assert asked(server, run, database, spec(server, "second", reuse)) == GRID
    assert asked(server, run, database, spec(server, "third", reuse)) == GRID
    assert asked(server, run, database, spec(server, "fourth")) == 0


@pytest.mark.parametrize("reuse", ["all", "campaign", "none", {"max_age": "7d"}])
def test_an_interrupted_round_finds_every_text_that_was_committed(database, server, reuse, on_day):
    on_day(0)
    run(database, spec(server, "old"))
    on_day(8)
    interrupted = spec(server, "interrupted", reuse)
    made = asked(server, die_before_judging, database, interrupted)
    assert made == (0 if reuse == "all" else 4)
    assert asked(server, die_before_judging, database, interrupted) == 0
    on_day(100)  # a round is as old as its plan, however late it is resumed
    assert asked(server, die_before_judging, database, interrupted) == 0
    record = run(database, interrupted, rounds=1)
    with database.reading() as session:
        rows = list(campaign_views.comparisons(session, record.id))
    assert len(rows) == 4
    assert len({row["text"] for row in rows}) == 4


def test_texts_are_reused_until_they_are_too_old_and_then_the_new_ones_are(database, server, on_day):
    """A nightly campaign: every eighth night asks anew, and the nights after it take what that one made."""
    for day in (0, 3, 7, 8, 9, 15, 16, 23):
        on_day(day)
        nightly = spec(server, f"night-{day}", {"max_age": "7d"})
        assert asked(server, run, database, nightly, rounds=1) == (4 if day % 8 == 0 else 0), day


def test_within_a_campaign_its_own_texts_never_are_too_old(database, server, on_day):
    models = served_model(server.url), served_model(server.url, "two")
    on_day(0)
    slow = served_spec(*models, name="slow", reuse={"max_age": "7d"})
    run(database, slow, rounds=3)
    on_day(30)
    run(database, slow)
    assert len(server.calls) == GRID


def test_a_campaign_of_its_own_texts_asks_for_each_once_and_one_without_reuse_once_a_round(database, server):
    models = served_model(server.url), served_model(server.url, "two")
    assert asked(server, run, database, served_spec(*models, name="own", reuse="campaign")) == GRID
    without = asked(server, run, database, served_spec(*models, name="without", reuse="none"))
    assert GRID < without <= 2 * GRID


def test_a_text_that_is_asked_anew_has_the_seed_of_the_old_one(database, server):
    """So that what differs is the server's doing."""
    warm = {"generate_config": {"temperature": 1.0}}
    for name, reuse in (("first", "all"), ("second", "none")):
        run(database, served_spec(served_model(server.url, **warm), name=name, reuse=reuse))
    drawn = [(call.prompt, call.body["seed"]) for call in server.calls]
    assert sorted(drawn[:GRID]) == sorted(drawn[GRID:])


def test_the_rule_may_change_from_one_run_to_the_next(database, server):
    run(database, spec(server, "first"))
    run(database, spec(server, "second", "campaign"), rounds=1)
    assert asked(server, run, database, spec(server, "second", {"max_age": "1w"})) == 0
    record, checked = begun(database, spec(server, "second", "none"))
    assert record.execution["reuse"] == checked.spec.reuse == "none"
    assert "reuse" not in record.spec


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("weekly", r"reuse: must be all, campaign, none, only or \{max_age: 7d\}"),
        ("7", "reuse: must be all, campaign, none"),
        ("{max_age: 7}", "must be a number of minutes, hours, days or weeks, such as 30m, 12h, 7d or 8w"),
        ("{max_age: 0d}", "must be a number of minutes, hours, days or weeks"),
        ("{max_age: 1.5d}", "must be a number of minutes, hours, days or weeks"),
        ("{age: 7d}", "unknown key"),
    ],
)
def test_what_is_no_rule_is_refused(campaign_file, given, sentence):
    with pytest.raises(SpecError, match=sentence):
        check_campaign_file(campaign_file(), [f"reuse={given}"])


@pytest.mark.parametrize(
    ("age", "length"),
    [("30m", dt.timedelta(minutes=30)), ("12h", dt.timedelta(hours=12)), ("8w", dt.timedelta(weeks=8))],
)
def test_an_age_is_a_number_and_a_unit(campaign_file, age, length):
    assert check_campaign_file(campaign_file(), [f"reuse={{max_age: {age}}}"]).spec.reuse.age == length
