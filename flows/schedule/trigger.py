"""Parse and check the times of a schedule."""

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
    """The times of a schedule as the user gave them: a cron expression or an interval."""

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
        """Convert to a schedule of Prefect.

        Raises:
            SpecError: Unless exactly one of cron and interval is given and valid, and the time zone exists.
        """
        from prefect.client.schemas.schedules import CronSchedule, IntervalSchedule

        if self.cron is None and self.interval is None:
            raise SpecError('no time is given: add --cron EXPR, such as "0 2 * * *", or --interval SECONDS')
        if self.cron is not None and self.interval is not None:
            raise SpecError("--cron and --interval exclude each other; give one of them")
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
        except ValueError:  # croniter raises it if no time is found within decades
            found = []
        if not found:
            raise SpecError(f"--cron {self.cron!r} never fires; correct its day or month")
        return dt.datetime.fromtimestamp(found[0].timestamp(), ZoneInfo(self.zone))

    def early_firing(self) -> str | None:
        """A warning about the next clock change at which Prefect's server fires too early, or None."""
        if self.cron is None:
            return None
        found = asyncio.run(early_firing(self.cron, self.zone, dt.datetime.now(dt.UTC)))
        if found is None:
            return None
        asked, fires = found
        return (
            f"on {asked:%Y-%m-%d} clocks in {self.zone} skip {asked:%H:%M}, and this Prefect server fires at "
            f"{fires:%H:%M}; to avoid that, choose a time of day that is never skipped"
        )

    def _require_zone(self) -> None:
        # Prefect accepts only listed zones; ZoneInfo also reads others, such as posix/Europe/Berlin.
        if self.zone not in available_timezones():
            raise SpecError(
                f"--timezone {self.timezone!r} is not a time zone: give an IANA name, such as Europe/Berlin"
            )
