"""A schedule's times, parsed from user input and refused in one sentence if invalid."""

import asyncio
import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, available_timezones

from winnow.flows.prefect_support.clock_changes import early_firing, fire_after_skipped_hours
from winnow.tasks.errors import SpecError

if TYPE_CHECKING:
    from prefect.client.schemas.schedules import CronSchedule, IntervalSchedule


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """A schedule as entered: a cron expression or an interval."""

    cron: str | None
    interval: float | None
    """Interval in seconds."""
    timezone: str | None

    def __str__(self) -> str:
        if self.cron is None:
            return f"every {self.interval:g} s"
        return f"cron {self.cron} ({self.zone})"

    @property
    def zone(self) -> str:
        """The IANA name of the time zone."""
        return self.timezone or "UTC"

    def schedule(self) -> "CronSchedule | IntervalSchedule":
        """The schedule as a Prefect object.

        Raises:
            SpecError: If not exactly one of the two times is given, or Prefect cannot parse it.
        """
        from prefect.client.schemas.schedules import CronSchedule, IntervalSchedule

        if self.cron is None and self.interval is None:
            raise SpecError('say when: give --cron EXPR, such as "0 2 * * *", or --interval SECONDS')
        if self.cron is not None and self.interval is not None:
            raise SpecError("--cron and --interval each say when; give one of them")
        self._require_zone()
        if self.interval is not None:
            if not 1 <= self.interval <= 10 * 365 * 86_400:
                raise SpecError(
                    f"--interval {self.interval:g} is not a number of seconds from 1 to ten years"
                )
            return IntervalSchedule(interval=dt.timedelta(seconds=self.interval), timezone=self.timezone)
        assert self.cron is not None, "one of the two is given"
        fire_after_skipped_hours()
        try:
            return CronSchedule(cron=self.cron, timezone=self.zone)
        except ValueError as error:
            raise SpecError(
                f"--cron {self.cron!r} is not a cron expression: give minute, hour, day, month and weekday, "
                'such as "0 2 * * *" for two at night'
            ) from error

    def next_run(self) -> dt.datetime:
        """The next time at which the schedule fires, in its time zone.

        Raises:
            SpecError: If the schedule never fires.
        """
        from prefect.server.schemas import schedules

        given = self.schedule()
        kind = getattr(schedules, type(given).__name__)
        try:
            found = asyncio.run(kind(**given.model_dump()).get_dates(n=1, start=dt.datetime.now(dt.UTC)))
        except ValueError:  # croniter's, once it has looked for decades
            found = []
        if not found:
            raise SpecError(f"--cron {self.cron!r} never comes; correct its day or month")
        return dt.datetime.fromtimestamp(found[0].timestamp(), ZoneInfo(self.zone))

    def early_firing(self) -> str | None:
        """A sentence on the next clock change at which a user's server would fire too early, or None."""
        if self.cron is None:
            return None
        found = asyncio.run(early_firing(self.cron, self.zone, dt.datetime.now(dt.UTC)))
        if found is None:
            return None
        asked, fires = found
        return (
            f"on {asked:%Y-%m-%d} clocks in {self.zone} skip {asked:%H:%M}, and this Prefect server fires at "
            f"{fires:%H:%M}; choose a time of day that is never skipped to avoid that"
        )

    def _require_zone(self) -> None:
        # Prefect takes those that are listed; ZoneInfo reads others as well, such as posix/Europe/Berlin.
        if self.zone not in available_timezones():
            raise SpecError(
                f"--timezone {self.timezone!r} is not a time zone: give an IANA name, such as Europe/Berlin"
            )
