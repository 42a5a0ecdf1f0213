"""Work around clock changes: Prefect fires a schedule too early if its time of day is skipped.

In Berlin there is no 02:30 in the night in which clocks go forward, because 02:00 becomes 03:00. Prefect then
fires a schedule of 02:30 at 01:30. Winnow's temporary server fires it at 03:30, like cron; users of another
server are warned when they create the schedule.
"""

import datetime as dt
from collections.abc import Generator
from functools import cache
from zoneinfo import ZoneInfo

WALL = "UTC"
"""Time zone in which Prefect computes times of day, because its clocks never change."""

MOST_ASKED = 1_000
"""Maximum number of times of day that Prefect returns in one call."""

LONGEST_GAP = dt.timedelta(hours=2)
"""Upper bound on the time that a clock change skips."""

AHEAD_H = 366 * 24
"""Number of coming hours that are searched for skipped times of day."""

HOUR = dt.timedelta(hours=1)


@cache
def fire_after_skipped_hours() -> None:
    """Change Prefect's server in this process, so that cron schedules fire after a skipped time, not before.

    They fire later by as much as clocks go forward.
    """
    from prefect.server.schemas.schedules import CronSchedule
    from prefect.types._datetime import create_datetime_instance

    original = CronSchedule._get_dates_generator

    def dates(
        schedule: CronSchedule,
        n: int | None = None,
        start: dt.datetime | None = None,
        end: dt.datetime | None = None,
    ) -> Generator[dt.datetime, None, None]:
        zone = ZoneInfo(schedule.timezone or WALL)
        begin = _in_zone(start or dt.datetime.now(dt.UTC), zone)
        until = None if end is None else _in_zone(end, zone)
        # Just after clocks went forward, schedules with a skipped time of day still have to fire.
        wall = begin.replace(tzinfo=dt.UTC) - _put_forward(begin)
        plain = schedule.model_copy(update={"timezone": WALL})
        most = n or (1 if end is None else MOST_ASKED)
        found: set[dt.datetime] = set()
        for each in original(plain, MOST_ASKED, wall):
            # For a skipped time, Python uses the offset before the change; Prefect's datetimes do not.
            moment = _without_zone(each).replace(tzinfo=zone).astimezone(dt.UTC)
            if until is not None and moment > until:
                return
            if begin <= moment and moment not in found:
                found.add(moment)
                yield create_datetime_instance(moment.astimezone(zone))
            if len(found) >= most:
                return

    CronSchedule._get_dates_generator = dates


async def early_firing(cron: str, zone: str, start: dt.datetime) -> tuple[dt.datetime, dt.datetime] | None:
    """The first time of a schedule that a clock change skips within a year, and when Prefect fires instead.

    Args:
        cron: Cron expression.
        zone: IANA name of the schedule's time zone.
        start: Beginning of the search.

    Returns:
        Both as times of day in the zone. None if no time is skipped, or if the schedule also fires at the
        second time.
    """
    from prefect.server.schemas.schedules import CronSchedule

    wall_clock, place = CronSchedule(cron=cron, timezone=WALL), ZoneInfo(zone)
    for hours in range(AHEAD_H):
        before, after = (
            (start.astimezone(dt.UTC) + (hours + more) * HOUR).astimezone(place) for more in (0, 1)
        )
        gap = _offset(after) - _offset(before)
        if gap <= dt.timedelta():
            continue
        first, last = (each.replace(tzinfo=dt.UTC) for each in (before, after))
        for found in await wall_clock.get_dates(start=first, end=last):
            asked = _without_zone(found)
            if _exists(asked, place):
                continue
            fires = asked - gap
            at_that_time = await wall_clock.get_dates(n=1, start=fires.replace(tzinfo=dt.UTC))
            return None if _without_zone(at_that_time[0]) == fires else (asked, fires)
    return None


def _exists(time_of_day: dt.datetime, zone: ZoneInfo) -> bool:
    moment = time_of_day.replace(tzinfo=zone).astimezone(dt.UTC)
    return moment.astimezone(zone).replace(tzinfo=None) == time_of_day


def _without_zone(given: dt.datetime) -> dt.datetime:
    """A time of day as a plain `datetime` without a zone."""
    return dt.datetime.combine(given.date(), given.time())


def _in_zone(given: dt.datetime, zone: ZoneInfo) -> dt.datetime:
    """Convert a time to a zone; a time without a zone is read as a time of day in the zone."""
    if given.tzinfo is None:
        return given.replace(tzinfo=zone)
    return dt.datetime.fromtimestamp(given.timestamp(), zone)


def _put_forward(moment: dt.datetime) -> dt.timedelta:
    """How much clocks were moved forward in the last `LONGEST_GAP` before a moment."""
    earlier = (moment.astimezone(dt.UTC) - LONGEST_GAP).astimezone(moment.tzinfo)
    return max(_offset(moment) - _offset(earlier), dt.timedelta())


def _offset(moment: dt.datetime) -> dt.timedelta:
    offset = moment.utcoffset()
    assert offset is not None, "the moment is in a zone"
    return offset
