"""Errors of the results database, each with its remedy.

* StorageError
  - StorageUnavailable   it cannot be opened or did not answer      (fix the URL or the server, resume)
  - StorageLocked        another process keeps the write lock       (wake, end or await it, resume)
  - SchemaMissing        it holds no Winnow tables                  (check the URL, or run a campaign)
  - SchemaForeign        it holds another program's tables          (name an empty database, or a schema)
  - SchemaOutdated       an older Winnow wrote it                   (`winnow db upgrade`)
  - SchemaTooNew         a newer Winnow wrote it                    (upgrade Winnow)
  - SchemaDiffers        it has other tables, or some are missing   (a backup, or a new database)
  - CampaignNotFound     no campaign of that name                   (fix the name)
  - CampaignUnreadable   a stored campaign was changed outside Winnow (restore a backup)
  - SeriesNotFound       no schedule began campaigns of that name   (fix the name)
  - ConflictingRecord    a row breaks a constraint                  (a bug: report it, do not retry)
  - QueryRefused         a statement of the user did not run        (fix the statement)
  - CopyRefused          a database cannot be copied there          (name an empty database)
  - LeaseHeld            another process runs the campaign          (wait, or stop that process)
  - LeaseLost            another process took the campaign over     (stop: that process goes on)
  - CampaignDeleted      the campaign was deleted meanwhile         (run its file again)
  - TextsLost            outputs that a round uses are gone         (resume: they are generated again)
"""

import datetime as dt
import shlex
import sqlite3


class StorageError(Exception):
    """Base class of all errors of the results database."""

    def _render_traceback_(self) -> list[str]:
        """The lines that a notebook shows instead of a traceback."""
        return [f"{type(self).__name__}: {self}"]


CHECK_THE_PLACE = "check that the path or server exists and can be written, then run the command again"

OF_BROKEN_FILES = {
    sqlite3.SQLITE_CORRUPT: (
        "the file is damaged: restore a backup, or recover what is still readable: "
        "sqlite3 FILE .recover | sqlite3 NEW_FILE"
    ),
    sqlite3.SQLITE_NOTADB: (
        "name another file (--storage); if this file held results, its beginning is damaged: restore a backup"
    ),
}
"""Remedies by SQLite's primary error code."""


A_PLACE_OF_ITS_OWN = (
    "name an empty database, or with PostgreSQL a schema for Winnow alone: run CREATE SCHEMA winnow, and add "
    "options=-csearch_path%3Dwinnow after the question mark of the URL"
)


class StorageUnavailable(StorageError):
    """The database cannot be opened or did not answer."""

    def __init__(self, url: str, cause: str, remedy: str = CHECK_THE_PLACE) -> None:
        super().__init__(f"the results database {url} is unavailable: {cause}; {remedy}")
        self.url = url


class NotPermitted(StorageUnavailable):
    """The role can read, but lacks a privilege for the operation."""

    def __init__(self, url: str, why: str) -> None:
        StorageError.__init__(
            self, f"{why}: the role of {url} lacks this privilege; use a role in the URL that has it"
        )
        self.url = url


class TookTooLong(StorageUnavailable):
    """A query was aborted because it exceeded the caller's or the server's time limit."""

    def __init__(self, url: str, remedy: str = "") -> None:
        StorageError.__init__(
            self, f"the results database {url} took too long to answer, and the query was aborted{remedy}"
        )
        self.url = url


class StorageLocked(StorageUnavailable):
    """Another process holds the write lock for longer than a writer waits."""

    def __init__(self, url: str, why: str) -> None:
        StorageError.__init__(self, f"the results database {url} is locked: {why}")
        self.url = url


class SchemaMissing(StorageError):
    """The database holds no Winnow tables."""

    def __init__(self, url: str) -> None:
        super().__init__(f"{url} holds no Winnow results; check the URL (--storage), or run a campaign first")
        self.url = url


class SchemaForeign(StorageError):
    """The database belongs to another program with an Alembic revision."""

    def __init__(self, url: str, found: str) -> None:
        super().__init__(
            f"{url} holds no Winnow results, but the table alembic_version of another program (revision "
            f"{found}): {A_PLACE_OF_ITS_OWN}"
        )
        self.url = url


class SchemaOutdated(StorageError):
    """An older Winnow wrote the database."""

    def __init__(self, url: str, found: str, expected: str) -> None:
        super().__init__(
            f"{url} has schema revision {found}, this Winnow needs {expected}; "
            f"run: winnow db upgrade --storage {shlex.quote(url)}"
        )
        self.found = found
        self.expected = expected


class SchemaTooNew(StorageError):
    """A newer Winnow wrote the database."""

    def __init__(self, url: str, found: str, expected: str) -> None:
        super().__init__(
            f"{url} has schema revision {found}, unknown to this Winnow (its newest: {expected}): "
            "install the Winnow that wrote the database, or a newer one"
        )
        self.found = found
        self.expected = expected


class SchemaDiffers(StorageError):
    """The database has this schema's revision, but not its tables."""

    def __init__(self, url: str, gone: list[str], lacking: list[str], unknown: list[str]) -> None:
        self.url = url
        if gone and not (lacking or unknown):
            which = f"its table {gone[0]} is" if len(gone) == 1 else f"its tables {', '.join(gone)} are"
            super().__init__(
                f"{url} is damaged: {which} missing; restore a backup, or name a new database (--storage)"
            )
            return
        lacking = [*gone, *lacking]
        found = [f"lacks {', '.join(lacking)}"] if lacking else []
        found += [f"has {', '.join(unknown)}, unknown to this Winnow"] if unknown else []
        super().__init__(
            f"{url} has this Winnow's schema revision, but other tables: it {' and '.join(found)}; an "
            "unreleased version of Winnow wrote it: read it with that version, or name a new database "
            "(--storage)"
        )


class CampaignNotFound(StorageError):
    """No campaign has this name."""

    def __init__(self, name: str, known: list[str]) -> None:
        there = f"there are: {', '.join(known)}" if known else "this database has none"
        super().__init__(f"no campaign is named '{name}'; {there}")
        self.name = name


class CampaignUnreadable(StorageError):
    """The stored data of a campaign were not written by Winnow."""

    def __init__(self, id_: int, what: str) -> None:
        super().__init__(
            f"campaign {id_} of this database {what}: its data were changed outside Winnow, so the campaign "
            "cannot be shown; run winnow db check for more, or restore a backup"
        )


class SeriesNotFound(StorageError):
    """No schedule began campaigns of this name."""

    def __init__(self, series: str, known: list[str]) -> None:
        there = f"there are: {', '.join(known)}" if known else "this database has none"
        super().__init__(f"no series of campaigns is named '{series}'; {there}")
        self.series = series


class ConflictingRecord(StorageError):
    """A row breaks a constraint of the schema."""


class NotStorable(StorageError):
    """No database can hold a value."""


class QueryRefused(StorageError):
    """A user's statement did not run; the connection is read-only."""


class CopyRefused(StorageError):
    """A database cannot be copied to that place, or the copy differs."""


class LeaseHeld(StorageError):
    """Another process runs the campaign."""

    def __init__(self, campaign: str, holder: str, heartbeat_at: dt.datetime, lifetime: dt.timedelta) -> None:
        super().__init__(
            f"campaign '{campaign}' is being run by {holder} "
            f"(last heartbeat {heartbeat_at:%Y-%m-%d %H:%M:%S} UTC); stop that process, or wait: "
            f"after {lifetime.total_seconds():g} s without a heartbeat another process can take over"
        )
        self.campaign = campaign
        self.holder = holder


class LeaseLost(StorageError):
    """Another process took the campaign over; this process must not write any more."""

    def __init__(self, campaign: str) -> None:
        super().__init__(
            f"this process lost its lease on campaign '{campaign}': another process, or another "
            "run in this one, took it over and continues; nothing was written since"
        )
        self.campaign = campaign


class CampaignDeleted(StorageError):
    """The campaign was deleted while this process was about to write to it."""

    def __init__(self, campaign_id: int) -> None:
        super().__init__(
            f"campaign {campaign_id} was deleted meanwhile; nothing was written; "
            "to start it again, run its file: winnow run FILE"
        )
        self.campaign_id = campaign_id


class TextsLost(StorageError):
    """Outputs that a round uses were deleted from the database, or replaced."""

    def __init__(self, count: int) -> None:
        super().__init__(
            f"{count} of the outputs that this round uses were deleted or replaced in the database before "
            "the round was recorded; nothing of it was stored; resume the campaign to generate them again"
        )
        self.count = count
