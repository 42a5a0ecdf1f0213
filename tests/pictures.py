"""`make pictures`: those of docs/how-to/results.md, made again from the campaign that the quick demo leaves.

It also says what axe-core finds on these pages, in light and in dark.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser_pages import DRAWN, let_axe_in, violations
from tests.flows.dashboard_servers import chromium, serving
from winnow.flows.reports.html.render import write_report
from winnow.flows.reports.open_readonly import reading
from winnow.storage.records.campaigns import get_campaign
from winnow.tasks.campaign.look import Look

PICTURES = {
    "report.png": ("report", 1280, 860),
    "page.png": ("campaign", 1280, 900),
    "phone.png": ("campaign", 390, 844),
    "matrix.png": ("matrix", 1280, 860),
}
"""File -> page, width and height."""

SETTLED = """() => !document.querySelector('[data-testid=stStatusWidget]')
    && document.querySelector('[data-testid=stDataFrame] canvas, .js-plotly-plot .main-svg')"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--storage", default="sqlite:///.winnow/demo/winnow.db")
    parser.add_argument("--campaign", default="quick")
    parser.add_argument("--out", type=Path, default=Path("docs/assets"))
    options = parser.parse_args()
    with (
        TemporaryDirectory() as folder,
        serving(options.storage) as (_, url),
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"]) as browser,
    ):
        report = Path(folder) / "report.html"
        with reading(options.storage) as session:
            write_report(Look(session, get_campaign(session, options.campaign)), html=report)
        places = {"report": report.as_uri(), "": url}
        for file, (name, width, height) in PICTURES.items():
            for scheme, page in _pages(browser, places, name, options.campaign, width, height):
                if scheme == "light":
                    page.screenshot(path=options.out / file)
                print(file, scheme, violations(page))


def _pages(
    browser: Browser, places: dict[str, str], name: str, campaign: str, width: int, height: int
) -> Iterator[tuple[str, Page]]:
    """A page in both colour schemes, drawn."""
    for scheme in ("light", "dark"):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        let_axe_in(context)
        page = context.new_page()
        if name in places:
            page.goto(places[name])
            page.wait_for_function(DRAWN)
        else:
            page.goto(places[""])  # the token is exchanged for a cookie
            page.goto(f"{places[''].partition('?')[0]}{name}?campaign={campaign}")
            page.wait_for_function(SETTLED)
            page.wait_for_load_state("networkidle")
            page.wait_for_timeout(1_000)  # until tables have faded in
        yield scheme, page
        context.close()


if __name__ == "__main__":
    main()
