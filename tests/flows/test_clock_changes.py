"""A time of day that a change of clocks skips: schedules fire after it, and not an hour before their time."""

import asyncio
import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from prefect.server.schemas import schedules

from winnow.flows.prefect_support.clock_changes import early_firing
from winnow.flows.schedule import trigger
from winnow.flows.schedule.trigger import When


def at(*when):
    return dt.datetime(*when, tzinfo=dt.UTC)


def fired(cron, zone, start, *, n=3, end=None):
    """The times of day at which a schedule fires, as a server in this process makes them."""
    given = When(cron=cron, interval=None, timezone=zone).schedule()
    kind = schedules.CronSchedule(**given.model_dump())
    found = asyncio.run(kind.get_dates(n=n, start=start, end=end))
    return [each.astimezone(ZoneInfo(zone)).strftime("%d %H:%M") for each in found]


@pytest.mark.parametrize(
    ("cron", "zone", "start", "times"),
    [
        ("30 2 * * *", "Europe/Berlin", at(2026, 3, 28, 12), ["29 03:30", "30 02:30", "31 02:30"]),
        ("30 2 * * *", "Europe/Berlin", at(2026, 3, 29, 0, 45), ["29 03:30", "30 02:30", "31 02:30"]),
        ("30 2 * * *", "Europe/Berlin", at(2026, 3, 29, 1, 10), ["29 03:30", "30 02:30", "31 02:30"]),
        ("30 2 * * *", "Europe/Berlin", at(2026, 3, 29, 1, 40), ["30 02:30", "31 02:30", "01 02:30"]),
        ("0 2 * * *", "America/New_York", at(2026, 3, 7, 12), ["08 03:00", "09 02:00", "10 02:00"]),
        ("0 2 * * 0", "America/New_York", at(2026, 3, 7, 12), ["08 03:00", "15 02:00", "22 02:00"]),
        ("15 0 * * *", "America/Havana", at(2026, 3, 7, 12), ["08 01:15", "09 00:15", "10 00:15"]),
        ("0 2 * * *", "Australia/Lord_Howe", at(2026, 10, 3, 1), ["04 02:30", "05 02:00", "06 02:00"]),
        ("0 * * * *", "Europe/Berlin", at(2026, 3, 28, 23, 30), ["29 01:00", "29 03:00", "29 04:00"]),
        ("*/30 1-3 * * *", "Europe/Berlin", at(2026, 3, 29), ["29 01:00", "29 01:30", "29 03:00"]),
        ("0 9 * * *", "Europe/Berlin", at(2026, 3, 28, 12), ["29 09:00", "30 09:00", "31 09:00"]),
        ("30 2 * * *", "Europe/Berlin", at(2026, 10, 24, 12), ["25 02:30", "26 02:30", "27 02:30"]),
        ("30 2 * * *", "Europe/Berlin", at(2026, 10, 25, 1, 10), ["26 02:30", "27 02:30", "28 02:30"]),
        ("30 2 * * *", "UTC", at(2026, 3, 28, 12), ["29 02:30", "30 02:30", "31 02:30"]),
    ],
)
def test_a_time_that_clocks_skip_comes_as_much_later_as_they_go_forward(cron, zone, start, times):
    assert fired(cron, zone, start) == times


def test_dates_end_where_they_are_to_end():
    start, end = at(2026, 3, 28), at(2026, 3, 31)
    assert fired("30 2 * * *", "Europe/Berlin", start, n=None, end=end) == [
        "28 02:30",
        "29 03:30",
        "30 02:30",
    ]
    assert fired("* * * * *", "Europe/Berlin", start, n=2) == ["28 01:00", "28 01:01"]


@pytest.mark.parametrize(
    ("cron", "zone", "found"),
    [
        ("30 2 * * *", "Europe/Berlin", ("2026-03-29 02:30", "2026-03-29 01:30")),
        ("0 2 * * 1-5", "Europe/Berlin", None),  # clocks change on Sundays
        ("0 * * * *", "Europe/Berlin", None),  # it fires at 01:00 too
        ("0 3 * * *", "Europe/Berlin", None),
        ("30 2 * * *", "UTC", None),
        ("0 2 * * *", "Australia/Lord_Howe", ("2026-10-04 02:00", "2026-10-04 01:30")),
    ],
)
def test_users_of_another_server_are_told_when_it_fires_too_early(cron, zone, found):
    early = asyncio.run(early_firing(cron, zone, at(2026, 1, 1)))
    assert (early and tuple(f"{each:%Y-%m-%d %H:%M}" for each in early)) == found


def test_the_sentence_names_the_night_and_both_times(monkeypatch):
    when = When(cron="30 2 * * *", interval=None, timezone="Europe/Berlin")
    assert (
        "skip 02:30, and this Prefect server fires at 01:30; to avoid that, choose a time"
        in when.early_firing()
    )
    assert When(cron=None, interval=60.0, timezone=None).early_firing() is None
    monkeypatch.setattr(trigger, "early_firing", lambda *_: _nothing())
    assert when.early_firing() is None


async def _nothing():
    return None
