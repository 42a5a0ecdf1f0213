"""`make pictures`: those of docs/, made again from the quick demo and two forks of its campaign.

It also says what axe-core finds on these pages, in light and in dark.
"""

import argparse
import io
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser_pages import DRAWN, let_axe_in, violations
from tests.campaigns import winnow
from tests.flows.dashboard_servers import chromium, serving
from winnow.flows.reports.default_database import reading
from winnow.flows.reports.html.page import write_report
from winnow.storage.errors import StorageError
from winnow.storage.records.campaigns import get_campaign
from winnow.tasks.campaign.look import Look


class Picture(NamedTuple):
    """A page, and the part of it that is shown."""

    page: str
    campaign: str
    width: int
    height: int
    below: str | None = None
    """The heading at its top; None for the top of the page."""


PICTURES = {
    "report.png": Picture("report", "quick", 1280, 860),
    "page.png": Picture("campaign", "quick", 1280, 900),
    "phone.png": Picture("campaign", "quick", 390, 844),
    "matrix.png": Picture("matrix", "quick", 1280, 860),
    "compare.png": Picture("compare", "quick", 1280, 900, "Examples"),
    "factors.png": Picture("factors", "quick", 1280, 860),
    "duels.png": Picture("campaign", "duels", 1280, 620, "Head to head"),
    "over-time.png": Picture("over-time", "quick", 1280, 860),
}
"""Picture of docs/assets -> what it shows."""

FORKS = {
    "release": ("gate", "--baseline", "skilled/asked/warm", "--set", "stopping.epsilon=0.05"),
    "duels": (
        "run",
        *("--set", "objective=best-duel", "--set", "selector.name=llm-po", "--set", "stopping.budget=300"),
        *("--set", "judge={type: rules, scorer: {type: exact}, both_right: tie, both_wrong: tie}"),
    ),
}
"""Campaign -> the command that makes it of the quick demo's file, as docs/gallery.md shows it."""

COLOURS = 128
"""Colours of a picture, which has few, and so a third of its bytes."""

SETTLED = """() => !document.querySelector('[data-testid=stStatusWidget]')
    && document.querySelector('[data-testid=stDataFrame] canvas, .js-plotly-plot .main-svg')"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--storage", default="sqlite:///.winnow/demo/winnow.db")
    parser.add_argument("--file", default=".winnow/demo/quick.yaml")
    parser.add_argument("--out", type=Path, default=Path("docs/assets"))
    options = parser.parse_args()
    for name, (command, *rest) in FORKS.items():
        if not _is_stored(options.storage, name):
            winnow(Path(), command, options.file, "--fork", name, *rest, "--storage", options.storage)
    with (
        TemporaryDirectory() as folder,
        serving(options.storage) as (_, url),
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"]) as browser,
    ):
        report = Path(folder) / "report.html"
        with reading(options.storage) as session:
            write_report(Look(session, get_campaign(session, "quick")), html=report)
        places = {"report": report.as_uri(), "": url}
        for file, picture in PICTURES.items():
            for scheme, page in _pages(browser, places, picture):
                if scheme == "light":
                    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
                    shot.quantize(COLOURS, dither=Image.Dither.NONE).save(options.out / file, optimize=True)
                print(file, scheme, violations(page))


def _is_stored(storage: str, name: str) -> bool:
    try:
        with reading(storage) as session:
            get_campaign(session, name)
    except StorageError:
        return False
    return True


def _pages(browser: Browser, places: dict[str, str], picture: Picture) -> Iterator[tuple[str, Page]]:
    """A page in both colour schemes, drawn."""
    size = {"width": picture.width, "height": picture.height}
    for scheme in ("light", "dark"):
        context = browser.new_context(viewport=size, color_scheme=scheme)
        let_axe_in(context)
        page = context.new_page()
        if picture.page in places:
            page.goto(places[picture.page])
            page.wait_for_function(DRAWN)
        else:
            page.goto(places[""])  # the token is exchanged for a cookie
            page.goto(f"{places[''].partition('?')[0]}{picture.page}?campaign={picture.campaign}")
            page.wait_for_function(SETTLED)
            page.wait_for_load_state("networkidle")
            page.wait_for_timeout(1_000)  # until tables have faded in
        if picture.below is not None:
            page.get_by_role("heading", name=picture.below, exact=True).evaluate(
                "(heading) => heading.scrollIntoView({block: 'start'})"
            )
            page.wait_for_timeout(2_000)  # figures are drawn once they are near the window
        yield scheme, page
        context.close()


if __name__ == "__main__":
    main()
