"""Export all results of a campaign: one file per view, and files for other tools.

The folder is written with all of its files, or not at all.
"""

import json
import os
import shutil
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

from sqlalchemy.orm import Session

from winnow.flows.reports.export import battles
from winnow.flows.reports.export.inspect_log import write_logs
from winnow.flows.reports.output import umask
from winnow.flows.reports.rows.writer import FileFormat, KindsOf, write_file
from winnow.storage.json_types import Row
from winnow.storage.objectives import traits_of
from winnow.storage.plain_files import refuse_link_elsewhere
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import SpecError, WinnowError, unknown_name
from winnow.tasks.queries.views import answered_by, ask, cells, kinds_of

BATTLES, INSPECT = "battles", "inspect"
DEFINITION = "campaign.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of an export: one file, or one subfolder."""

    name: str
    file: str | None
    """Name of the file or subfolder; None if the part is empty, so that nothing was written."""
    rows: int
    note: str = ""
    """Reason why the campaign cannot have this part; empty if the part only has no rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Export:
    session: Session
    campaign: CampaignRecord
    folder: Path
    format: FileFormat
    spreadsheet: bool

    def part(self, name: str, *, is_named: bool) -> Part:
        """Write one part.

        Raises:
            WinnowError: If the user named a view (`is_named`) that this campaign cannot have.
        """
        if name == INSPECT:
            rows = write_logs(self.session, self.campaign, self.folder / INSPECT)
            return Part(name=name, file=INSPECT if rows else None, rows=rows)
        if name == BATTLES:
            # CSV cannot hold conversations.
            format_: FileFormat = "jsonl" if self.format == "csv" else self.format
            found = battles.battles(self.session, self.campaign.id)
            return self._table(name, found, battles.kinds_of, format_)
        try:
            rows_of_view = ask(Look(self.session, self.campaign), name)
        except WinnowError as error:
            if is_named:
                raise
            return Part(name=name, file=None, rows=0, note=str(error))
        return self._table(name, cells(rows_of_view, name), partial(kinds_of, name), self.format)

    def _table(self, name: str, rows: Iterator[Row], kinds: KindsOf, format_: FileFormat) -> Part:
        file = f"{name}.{format_}"
        count = write_file(self.folder / file, rows, kinds, format_, spreadsheet=self.spreadsheet)
        return Part(name=name, file=file if count else None, rows=count)


def parts_of(objective: str) -> list[str]:
    """Names of the parts of an objective's export: its views, then files for other tools."""
    return [*answered_by(objective), BATTLES if traits_of(objective).compares_pairs else INSPECT]


def export(
    look: Look,
    folder: Path,
    *,
    format_: FileFormat,
    only: Sequence[str] = (),
    spreadsheet: bool = False,
) -> list[Part]:
    """Write a campaign's parts to a new folder, and return them; on an error, write nothing.

    Args:
        look: The campaign, in one consistent state for the whole export.
        folder: The folder, which must be new or empty.
        format_: Format of the tables. Battles are written as JSON lines instead of csv; logs of Inspect are
            always JSON.
        only: Names of the parts to write; empty for all parts.
        spreadsheet: Whether csv values that a spreadsheet would read as formulas get an apostrophe.

    Raises:
        SpecError: If a part does not exist.
        WinnowError: If the folder cannot be written, or the campaign cannot have a named part.
    """
    known = parts_of(look.record.objective)
    for name in only:
        if name not in known:
            raise SpecError(unknown_name(f"part of a {look.record.objective} campaign", name, known))
    with whole_folder(folder) as beside:
        writing = _Export(
            session=look.session, campaign=look.record, folder=beside, format=format_, spreadsheet=spreadsheet
        )
        chosen = [name for name in known if name in only] if only else known
        found = [writing.part(name, is_named=bool(only)) for name in chosen]
        _write_definition(look.record, beside / DEFINITION)
    return found


def _write_definition(campaign: CampaignRecord, path: Path) -> None:
    """Write a campaign's definition as JSON."""
    definition = {
        "name": campaign.name,
        "objective": campaign.objective,
        "seed": campaign.seed,
        "created_at": campaign.created_at.isoformat(),
        "spec": campaign.spec,
        "execution": campaign.execution,
        "versions": campaign.versions,
    }
    path.write_text(json.dumps(definition, indent=2) + "\n", encoding="utf-8")


@contextmanager
def whole_folder(folder: Path) -> Generator[Path, None, None]:
    """Yield a temporary folder, which is renamed to `folder` at the end, or deleted on any error.

    Raises:
        WinnowError: If `folder` already has files, or cannot be written.
    """
    try:
        refuse_link_elsewhere(folder)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise WinnowError(f"{folder} is not an empty folder; name a new one, or delete it first")
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        try:
            # mkdtemp makes private folders; give this one the mode of the user's other new folders.
            beside.chmod(0o777 & ~umask())
            yield beside
            os.replace(beside, folder)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
    except OSError as error:
        raise WinnowError(
            f"{error.filename or folder}: {error.strerror}; nothing was exported; name a writable folder "
            "with enough space"
        ) from error
