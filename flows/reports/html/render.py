"""The report's files: written whole, beside their place, and then put there; never half a file."""

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

from sqlalchemy.orm import Session

from winnow.flows.reports.html.answer_slide import AnswerSlide
from winnow.flows.reports.html.leaderboard import leaderboard
from winnow.flows.reports.html.page import page
from winnow.flows.reports.html.printed import printed
from winnow.flows.reports.html.sections.sections import sections_of
from winnow.flows.reports.html.static_images import pictures
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.values import CampaignRecord
from winnow.tasks.errors import WinnowError
from winnow.tasks.queries.status import campaign_status


def write_report(
    session: Session,
    campaign: CampaignRecord,
    *,
    html: Path | None = None,
    png: Path | None = None,
    pdf: Path | None = None,
) -> list[Path]:
    """Write a page, pictures, a print, or several, in the place of earlier ones; what was written.

    Nothing is written before all of it is made.

    Args:
        session: Reads the results.
        campaign: Whose report it is.
        html: File of the page.
        png: Folder of the pictures; is made if it is not there.
        pdf: File of the page as it is printed.

    Raises:
        WinnowError: If pictures cannot be drawn, the page cannot be printed, or a file cannot be written.
    """
    sections, status = sections_of(session, campaign), campaign_status(session, campaign, in_full=True)
    made = {}
    if png is not None:
        decision = outcome_records.latest_decision(session, campaign.id)
        slide = AnswerSlide.of(status, decision.decided_at if decision else campaign.created_at)
        made = {png / name: drawn for name, drawn in pictures(sections, slide).items()}
    if html is not None or pdf is not None:
        board = leaderboard(session, campaign)
        whole = page(campaign, status, board, sections).encode("utf-8")
        made |= {} if html is None else {html: whole}
        made |= {} if pdf is None else {pdf: printed(whole)}
    if png is not None:
        try:
            png.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WinnowError(f"{png}: {error.strerror}; name a place that can be written to") from error
    write_files(made)
    return list(made)


def write_files(made: Mapping[Path, bytes]) -> None:
    """Write files, each whole, in the place of earlier ones.

    Raises:
        WinnowError: If one cannot be written.
    """
    try:
        for path, content in made.items():
            _write(path, content)
    except OSError as error:
        raise WinnowError(
            f"{error.filename or ', '.join(map(str, made))}: {error.strerror}; name a place that can be "
            "written to"
        ) from error


def _write(path: Path, content: bytes) -> None:
    if not path.parent.is_dir():
        raise WinnowError(f"{path}: there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise WinnowError(f"{path} is a folder; name a file")
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        beside = Path(file.name)
        try:
            file.write(content)
            file.flush()
            # Temporary files are private; a report is as public as the user's files are.
            beside.chmod(0o666 & ~_umask())
            os.replace(beside, path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
