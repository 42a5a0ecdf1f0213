"""A run checks its campaign once, and opens its database and looks the campaign up once in each way."""

import sys
import threading
from collections import Counter

import pytest
import scripted_engines
import typer
from campaign_processes import rows, store
from scored_campaigns import run_here, write_scored

from winnow.algorithms import registry
from winnow.flows.cli import campaigns
from winnow.flows.run import launch
from winnow.storage.engine import database
from winnow.storage.records import campaigns as records
from winnow.tasks.setup import check, load

COUNTED = {
    "checks": check.check_campaign,
    "selectors": registry.create_selector,
    "opens": database.open_database,
    "looks up": records.find_campaign,
}
ALIEN = tuple(f"/objectives/{each}/" for each in ("certify", "best_duel", "route"))


@pytest.fixture
def counted(monkeypatch):
    """How often each of these functions was called, in any thread, and the modules of other objectives."""
    calls, names = Counter(), {function.__code__: name for name, function in COUNTED.items()}

    def count(frame, event, _):
        if event == "call":
            calls[names.get(frame.f_code)] += 1
            is_function = bool(frame.f_code.co_flags & 1)
            if is_function and any(each in frame.f_code.co_filename for each in ALIEN):
                calls[frame.f_code.co_filename] += 1

    yield lambda: (threading.setprofile(count), sys.setprofile(count)) and calls
    sys.setprofile(None)
    threading.setprofile(None)


def ran(*settings):
    with pytest.raises(typer.Exit) as ended:
        campaigns.run("campaign.yaml", [*settings])
    return ended.value.exit_code


@pytest.fixture
def stored_texts(tmp_path, monkeypatch):
    """A folder with a campaign that has run, whose texts are stored."""
    monkeypatch.chdir(tmp_path)
    write_scored(tmp_path, ["knows", "guesses"], {"name": "row-mean"}, epsilon=0.0, delta=None)
    scripted_engines.provide_all(monkeypatch)
    run_here(monkeypatch, store(tmp_path / "campaign.yaml"))
    return tmp_path


def test_a_run_on_stored_texts_does_everything_once_and_without_prefect(stored_texts, counted, monkeypatch):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setattr(launch, "has_own_server", lambda: False)
    for name in ("early_server", "prefect_server"):
        monkeypatch.setattr(launch, name, lambda: pytest.fail("Prefect was started"))
    calls = counted()
    assert ran("name=again", "reuse=only") == 0
    assert {name: calls[name] for name in COUNTED} == {"checks": 1, "selectors": 1, "opens": 1, "looks up": 2}
    assert [each for each in calls if each not in (None, *COUNTED)] == []
    assert rows(
        stored_texts,
        "SELECT count(*) FROM generations WHERE round_id IN (SELECT id FROM rounds WHERE campaign_id = 2)",
    ) == [(0,)]


def test_the_selector_of_the_check_is_used_once_and_only_for_the_campaign_it_was_made_for(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    write_scored(tmp_path, ["knows", "slips", "guesses"], {"name": "champion"}, epsilon=0.0, delta=0.05)
    scripted_engines.provide_all(monkeypatch)

    def checked():
        return load.check_campaign_file("campaign.yaml")

    found = checked()
    assert found.unused_selector(None) is not found.unused_selector(None)
    limited = checked()
    limited.unused_selector(7)
    assert limited.tried  # that one has no limit of 7
    names = [each.name for each in limited.candidates]
    grown = checked().arranged(names, [0, 0, 1])
    assert len(grown.unused_selector(None).decision().status) == 2
    assert checked().arranged(names[::-1], [0, 0, 0]).tried
