"""db: upgrade, check, copy and prune a results database, and count its content."""

import datetime as dt
import re
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.flows.cli.options import DEFAULT_STORAGE, Json, Storage
from winnow.storage.text import url_in_home
from winnow.tasks.errors import SpecError

if TYPE_CHECKING:
    from winnow.tasks.queries.check_decisions import DecisionFinding
    from winnow.tasks.queries.check_texts import Finding

app = typer.Typer(
    name="db",
    help="Check, copy, upgrade and prune a results database.",
    no_args_is_help=True,
    add_completion=False,
)

UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@app.command()
def upgrade(storage: Storage = DEFAULT_STORAGE) -> None:
    """Create the tables, or upgrade an older database to this release's schema."""
    from winnow.storage.admin.schema import upgrade as upgrade_schema
    from winnow.storage.engine.database import open_database

    with closing(open_database(storage)) as database:
        before, after = upgrade_schema(database)
        shown = database.url
    if before == after:
        print(f"{shown} is at revision {after}, the newest")
    else:
        print(f"{shown} was upgraded from {before or 'no tables'} to revision {after}")


@app.command()
def check(storage: Storage = DEFAULT_STORAGE) -> None:
    """Check a database: its file, its references, every comparison's outputs, every decision.

    The prompts of each comparison are rendered again from its candidates and its example, and the prompts of
    each judge call from the answers shown to the judge. Both are compared with the stored outputs. The last
    decision of each campaign is computed again from its stored outcomes, if this release's selectors use the
    same rules. The exit code is 1 if something is wrong or could not be checked.
    """
    from winnow.flows.reports.default_database import reading
    from winnow.storage.admin.check import problems, unreadable
    from winnow.storage.admin.integrity import uncovered_rounds, unreadable_values
    from winnow.storage.engine.database import shown_url
    from winnow.storage.records.campaigns import UNREADABLE
    from winnow.storage.records.row_counts import uncounted
    from winnow.tasks.queries.check_decisions import decision_findings
    from winnow.tasks.queries.check_texts import findings
    from winnow.tasks.text.phrases import count_of
    from winnow.tasks.text.printable import printable

    wrong, unchecked, older = 0, Unchecked(), list[str]()
    with reading(storage) as session:
        values = unreadable_values(session)
        for problem in values or problems(session):
            wrong += 1
            print(printable(problem))
        uncovered = 0 if values else uncovered_rounds(session)
        without_count = 0 if values else uncounted(session)
        try:
            for finding in () if values else findings(session):
                if finding.is_wrong:
                    wrong += 1
                    print(printable(str(finding)))
                else:
                    unchecked.add(finding)
            for decided in () if values else decision_findings(session):
                if decided.is_wrong:
                    wrong += 1
                    print(printable(str(decided)))
                elif decided.is_older:
                    older.append(str(decided))
                else:
                    unchecked.add_decision(decided)
        except UNREADABLE as error:
            wrong += 1
            print(printable(unreadable(error)))
    for line in unchecked.lines():
        print(printable(line))
    if values:
        print("nothing else was checked, because these values cannot be read")
    if uncovered:
        print(f"not covered: {count_of(uncovered, 'round')} that an older Winnow stored without digests")
    if without_count:
        print(
            f"not covered: lost rows of {count_of(without_count, 'owner')} (datasets, campaigns and rounds) "
            "that an older Winnow stored without a count of them"
        )
    for line in older:
        print(printable(f"not covered, because an older Winnow began it: {line}"))
    if wrong:
        were = "was" if wrong == 1 else "were"
        print(f"{shown_url(storage)} is not sound: {count_of(wrong, 'problem')} {were} found{COUNTED}")
    elif unchecked.count:
        print(f"no problem was found in {shown_url(storage)}, but parts of it could not be checked{COUNTED}")
    if wrong or unchecked.count:
        raise typer.Exit(1)
    print(f"{shown_url(storage)} is sound")


COUNTED = " (rounds and positions are counted from 1, and from 0 in views such as v_comparisons)"
"""Appended to results of a check, for users who look up the rounds and positions in SQL."""


class Unchecked:
    """Counts comparisons and decisions that could not be checked, and collects the reasons."""

    def __init__(self) -> None:
        self.count = 0
        self._counts: Counter[str] = Counter()
        self._reasons: dict[str, str] = {}
        self._decisions: list[str] = []
        self._last: tuple[str, int, int] | None = None

    def add(self, finding: "Finding") -> None:
        """Count the comparison of a finding; several findings in a row count once."""
        place = (finding.campaign, finding.round_number, finding.position)
        if place == self._last:
            return
        self._last = place
        self.count += 1
        self._counts[finding.campaign] += 1
        self._reasons.setdefault(finding.campaign, str(finding))

    def add_decision(self, finding: "DecisionFinding") -> None:
        """Count the decision of a finding."""
        self.count += 1
        self._decisions.append(str(finding))

    def lines(self) -> list[str]:
        """One line for the comparisons of each campaign, and one for each decision."""
        return [
            f"campaign '{name}': {count:,} comparisons could not be checked; the first: {self._reasons[name]}"
            for name, count in self._counts.items()
        ] + self._decisions


@app.command()
def stats(storage: Storage = DEFAULT_STORAGE, json: Json = False) -> None:
    """Count the rows and bytes of each table, in total and per comparison."""
    from winnow.flows.reports.default_database import reading
    from winnow.flows.reports.output import print_json
    from winnow.flows.reports.rows.writer import print_rows
    from winnow.storage.admin.maintenance import size_in_bytes, table_sizes

    with reading(storage) as session:
        rows, size = table_sizes(session), size_in_bytes(session)
    comparisons = next(row["rows"] for row in rows if row["table"] == "comparisons")
    for row in rows:
        known = comparisons and row["bytes"] is not None
        row["bytes_per_comparison"] = row["bytes"] / comparisons if known else None
    if json:
        print_json({"tables": rows, "bytes": size})
        return
    print_rows(rows, "table")
    each = f", {size / comparisons:,.0f} bytes per comparison" if comparisons else ""
    print(f"{size / 2**20:.1f} MiB in total{each}")


@app.command()
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="URL of the database to copy.")],
    target: Annotated[
        str, typer.Argument(metavar="TO", help="URL of an empty database; sqlite:///FILE creates one.")
    ],
) -> None:
    """Copy a database to another place, from SQLite to PostgreSQL or back, and verify every row."""
    from winnow.storage.admin.maintenance import copy_database
    from winnow.storage.admin.schema import damage_named
    from winnow.storage.engine.database import open_database

    with closing(open_database(source, read_only=True)) as old, closing(open_database(target)) as new:
        with damage_named(old):
            copy_database(
                old,
                new,
                report=lambda name, found: print(f"  {name:12} {found.rows:>10,}  {found.digest[:16]}"),
            )
        print(f"{new.url} is a copy of {old.url}; every table was read back and is equal")


@app.command()
def index(storage: Storage = DEFAULT_STORAGE) -> None:
    """Index prompts, outputs and keys of examples, so that winnow view finds words among millions fast.

    Rounds do not update the index, so that they do not become slower. To add new rows, run the command again.
    Rows that are not in the index are also found, but more slowly. If the command is interrupted, it
    continues from there at the next call.
    """
    from winnow.storage.admin.schema import existing
    from winnow.storage.records.text_index import build

    with existing(storage) as database:
        count = build(database, lambda done, of: print(f"  {done:>12,} of {of:,} comparisons", flush=True))
        print(f"{database.url}: the first {count:,} comparisons are indexed")


@app.command()
def allow(
    database: Annotated[str, typer.Argument(metavar="URL", help="URL of a SQLite file, sqlite:///FILE.")],
) -> None:
    """Allow writing to a SQLite file that Winnow refuses because it may have other names or writers.

    Winnow refuses a file on a file system that other machines may use, and a file with a second name. If two
    processes use such a file, rows can be lost, and no lock prevents that. Reading and copying are always
    allowed.
    """
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    from winnow.storage.engine.sqlite_files import allow as allow_writing

    database = url_in_home(database)
    try:
        path = make_url(database).database if database.startswith("sqlite:///") else None
    except ArgumentError:
        path = None
    if not path:
        raise SpecError(f"{database!r} is not the URL of a SQLite file; give sqlite:///FILE")
    kept = allow_writing(path)
    print(
        f"{database} can be written to from now on, even if other users can write to it (recorded in {kept})"
    )


@app.command()
def vacuum(storage: Storage = DEFAULT_STORAGE) -> None:
    """Release the space of deleted rows; no other process may use the database at the same time."""
    from winnow.storage.admin.maintenance import vacuum as vacuum_database
    from winnow.storage.admin.schema import existing

    with existing(storage) as database:
        before, after = vacuum_database(database)
    print(f"{before / 2**20:.1f} MiB before, {after / 2**20:.1f} MiB now")


@app.command()
def prune(
    older_than: Annotated[
        str, typer.Option(metavar="AGE", help="Minimum time without activity, such as 30d, 12h or 8w.")
    ],
    campaign: Annotated[str | None, typer.Option(metavar="NAME", help="Delete only this campaign.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Delete campaigns without recent activity; outputs that other campaigns use stay.

    An output stays if a comparison of another campaign refers to it, or if a round of another campaign uses
    it, finished or not. If a campaign to delete is running, the command ends with an error that names the
    process. A campaign is kept while an unfinished campaign uses it as history. Other campaigns may run at
    the same time.

    Datasets and labels stay. The deleted campaign's question and its examples are also kept, so that answers
    of other campaigns can still name it if it matters for them.
    """
    from winnow.storage.admin import prune as pruning
    from winnow.storage.admin.schema import existing
    from winnow.storage.engine.database import storage_option
    from winnow.storage.records import campaigns as campaign_records
    from winnow.tasks.answer.earlier_campaigns import seen_by
    from winnow.tasks.campaign.lease import is_gone, now, watch
    from winnow.tasks.queries.status import taking_history
    from winnow.tasks.text.phrases import count_of

    before = now() - age(older_than)
    with existing(storage) as database:
        with database.reading() as session:
            if campaign is not None:
                campaign_records.get_campaign(session, campaign)
            found = pruning.prunable(session, before=before, name=campaign)
            needed = taking_history(session, [each.name for each in found])
            if needed:
                found = pruning.prunable(session, before=before, name=campaign, staying=needed)
        for name, by in needed.items():
            print(f"{name}: kept, because {by} has not ended and uses it as history")
        if not found:
            if not needed:
                which = "no campaign has" if campaign is None else f"{campaign} has not"
                print(f"nothing to delete: {which} been idle since {before:%Y-%m-%d %H:%M} UTC")
            return
        for each in found:
            people = f", {count_of(each.judgments, 'human judgment')}" if each.judgments else ""
            print(
                f"{each.name}: idle since {each.last_active:%Y-%m-%d %H:%M} UTC; "
                f"deletes {count_of(each.comparisons, 'comparison')}{people} and "
                f"{count_of(each.generations, 'output')}, keeps {count_of(each.kept, 'output')} that other "
                "campaigns use"
            )
        if not yes and not typer.confirm("Delete these campaigns permanently?"):
            print("nothing was deleted")
            return
        for each in found:
            watch(database, each.id, now=now())
        with database.writing() as session:
            # Looked up again under the write lock: a campaign may have been resumed during the question.
            idle = {each.id for each in pruning.prunable(session, before=before, name=campaign)}
            chosen = [each for each in found if each.id in idle]
            pruning.prune(session, chosen, is_gone=is_gone, seen_by=seen_by)
    vacuum_command = f"winnow db vacuum {storage_option(storage)}"
    print(
        f"deleted {len(chosen)} of {count_of(len(found), 'campaign')}; to release the space, run: "
        f"{vacuum_command}"
    )


def age(text: str) -> dt.timedelta:
    """Parse a duration such as "30d", "12h" or "8w".

    Raises:
        SpecError: If the text is not a number of at most five digits and a unit.
    """
    found = re.fullmatch(r"(\d{1,5})([hdw])", text.strip())
    if found is None:
        raise SpecError(
            f"--older-than {text!r} is not an age: give hours, days or weeks, such as 12h, 30d or 8w"
        )
    return dt.timedelta(**{UNITS[found[2]]: int(found[1])})
