"""The report's files: written beside their destination and then moved there, so that none is incomplete."""

from collections.abc import Mapping
from pathlib import Path

from winnow.flows.reports.html.browser_output import pictures, printed
from winnow.flows.reports.html.page import leaderboard, page
from winnow.flows.reports.html.sections.standard import sections_of
from winnow.flows.reports.output import in_place_of
from winnow.storage.plain_files import make_folder
from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import WinnowError
from winnow.tasks.queries.status import campaign_status


def write_report(
    look: Look,
    *,
    html: Path | None = None,
    png: Path | None = None,
    pdf: Path | None = None,
) -> list[Path]:
    """Write a page, pictures, a PDF, or several of these, replacing earlier ones; return the written files.

    All contents are complete before the first file is written.

    Args:
        look: The campaign of the report.
        html: File of the page.
        png: Folder of the pictures; is created if it is missing.
        pdf: File of the page as it is printed.

    Raises:
        WinnowError: If pictures cannot be drawn, the page cannot be printed, or a file cannot be written.
    """
    sections, made = sections_of(look), {}
    status = campaign_status(look, in_full=html is not None or pdf is not None)
    if png is not None:
        title = f"{status.name}: {status.headline_sentences()[0]}"
        made = {png / name: drawn for name, drawn in pictures(sections, title).items()}
    if html is not None or pdf is not None:
        board = leaderboard(look)
        whole = page(look.record, status, board, sections).encode("utf-8")
        made |= {} if html is None else {html: whole}
        made |= {} if pdf is None else {pdf: printed(whole)}
    if png is not None:
        try:
            make_folder(png)
        except OSError as error:
            raise WinnowError(f"{png}: {error.strerror}; name a writable path") from error
    write_files(made)
    return list(made)


def write_files(made: Mapping[Path, bytes]) -> None:
    """Write complete files in place of earlier ones.

    Raises:
        WinnowError: If one cannot be written.
    """
    for path, content in made.items():
        with in_place_of(path) as beside:
            beside.write_bytes(content)
