"""Every page and report as axe-core sees it, and what its first screen tells somebody who moves no mouse."""

import pytest
import scripted_engines
from browser_pages import DRAWN, first_screen, let_axe_in, violations
from campaigns import winnow
from dashboard_servers import serving
from people_campaigns import write_people
from playwright.sync_api import expect
from repeated_campaigns import nightly
from report_campaigns import (
    certified_campaign,
    decided_campaign,
    duelled_campaign,
    routed_campaign,
    scored_campaign,
)
from stored_campaigns import NOW

from winnow.flows.reports.html.bundle import write_bundle
from winnow.storage.engine.database import open_database

pytestmark = pytest.mark.usefixtures("plain_runs")

PATIENCE = 120_000
"""Milliseconds that a page may take on a busy machine."""

AT_THE_END = {
    "over-time": "Cost",
    "campaign": "Engine time",
    "matrix": "1 to 40",
    "compare": "By tag",
    "factors": "Prompt × sampling",
    "judges": "Another judge on the same outputs",
    "label": "left to judge",
}
"""Page -> what is drawn last on it. The other pages are left to axe by test_dashboard_browser."""
WAITS = "survivor"
"""The campaign that people are to judge."""

TOLD = (
    "winner b",
    "runner-up a: b is ahead by 0.300",
    "between 0.100 and 0.500",
    "(at most 5% risk of error)",
    "cost 4 comparisons in 1 round: 26.7% of the full grid of 15 (73.3% saved)",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, plain_runs):
    """A database of campaigns of a schedule, one that is decided, and one that waits for people."""
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        scripted_engines.provide_all(patch)
        write_people(folder, "best-mean")
        assert winnow(folder, "run", "campaign.yaml").returncode == 3
    database = open_database(f"sqlite:///{folder}/winnow.db")
    decided_campaign(database, "decided")
    for number in range(2):
        nightly(database, number)
    return folder


@pytest.fixture(scope="module")
def dashboard(folder, chrome):
    """The address of a dashboard on which people may judge, and a context that it lets in."""
    storage = f"sqlite:///{folder}/winnow.db"
    with serving(storage, "--allow-labels") as (_, url):
        context = chrome.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(PATIENCE)
        let_axe_in(context)
        context.new_page().goto(url)  # the token is exchanged for a cookie
        yield url.partition("?")[0], context


def opened(dashboard, name, campaign):
    """A page of the dashboard, drawn to its end."""
    address, context = dashboard
    page = context.pages[0]
    page.emulate_media(color_scheme="light")
    page.goto(f"{address}{name}?campaign={campaign}")
    if name == "label":
        page.get_by_label("Your name").fill("Ann")
        page.get_by_label("Your name").press("Enter")
    expect(page.get_by_text(AT_THE_END[name]).first).to_be_attached(timeout=PATIENCE)
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0, timeout=PATIENCE)
    if name == "label":  # the field moves, and for a moment there are two of it
        expect(page.get_by_label("Your name")).to_have_count(1, timeout=PATIENCE)
    return page


def both_schemes(page):
    """What axe finds in light, and of the colours in dark."""
    light = violations(page)
    page.emulate_media(color_scheme="dark")
    return {"light": light, "dark": violations(page, "color-contrast")}


@pytest.mark.parametrize("name", AT_THE_END)
def test_a_page_of_the_dashboard_breaks_no_rule_of_axe(dashboard, name):
    page = opened(dashboard, name, WAITS if name == "label" else "nightly-1")
    assert both_schemes(page) == {"light": [], "dark": []}


def test_two_outputs_are_side_by_side_where_there_is_room_and_else_one_below_the_other(dashboard):
    page = opened(dashboard, "compare", "nightly-1")
    table = page.get_by_test_id("stDataFrame").last
    # The table is a picture: the box of the second row is found by its place.
    table.click(position={"x": 16, "y": 36 + 35 + 17})
    target = page.get_by_test_id("stCode").nth(1)
    first, second = (
        page.get_by_test_id("stCode").filter(has_text="text of nightly").nth(number) for number in (0, 1)
    )
    expect(second).to_be_visible(timeout=PATIENCE)
    page.wait_for_function("document.querySelectorAll('[data-testid=stExpander]').length === 3")
    assert both_schemes(page) == {"light": [], "dark": []}
    under, left, right = (each.bounding_box() for each in (target, first, second))
    assert under["y"] + under["height"] < left["y"] == right["y"]
    assert left["x"] + left["width"] < right["x"]
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("window.innerWidth === 390")
    left, right = (each.bounding_box() for each in (first, second))
    page.set_viewport_size({"width": 1280, "height": 900})
    assert left["y"] + left["height"] < right["y"]
    assert left["x"] + left["width"] <= 390


def test_whoever_has_written_a_name_judges_by_keys_at_once(dashboard):
    page = opened(dashboard, "label", WAITS)
    page.keyboard.press("s")
    expect(page.get_by_label("Your name")).to_have_value("Ann")
    assert page.evaluate("document.activeElement.tagName") != "INPUT"


def test_axe_finds_what_is_wrong(dashboard):
    page = dashboard[1].new_page()
    page.goto("about:blank")
    page.set_content("<title>t</title><main><h1>h</h1><p style='color: #ccc'>pale</p></main>")
    assert [each.partition(" ")[0] for each in violations(page)] == ["color-contrast", "html-has-lang"]
    page.close()


def test_the_first_screen_of_the_dashboard_tells_the_answer(dashboard):
    page = opened(dashboard, "campaign", "decided")
    said = first_screen(page)
    assert [told for told in TOLD if told not in said] == []


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Reports of every objective, each in a bundle of its own."""
    folder = tmp_path_factory.mktemp("site")
    makers = {
        "best-mean": scored_campaign,
        "best-duel": duelled_campaign,
        "certify": certified_campaign,
        "route": routed_campaign,
    }
    for objective, make in makers.items():
        (folder / objective).mkdir()
        make(folder / objective)
    decided_campaign(open_database(f"sqlite:///{folder}/best-mean/winnow.db"), "decided")
    for objective in makers:
        database = open_database(f"sqlite:///{folder}/{objective}/winnow.db")
        with database.reading() as session:
            write_bundle(session, folder / objective / "site", NOW)
    return folder


@pytest.fixture(scope="module")
def reader(chrome):
    """A page for reports, one after the other."""
    context = chrome.new_context(viewport={"width": 1280, "height": 900})
    let_axe_in(context)
    yield context.new_page()
    context.close()


def drawn(reader, file):
    """A file of a bundle, with all its figures, in light."""
    reader.emulate_media(color_scheme="light")
    reader.goto(file.as_uri())
    reader.wait_for_function(DRAWN)
    return reader


DECIDED = "*-decided.html"


@pytest.mark.parametrize("objective", ["best-mean", "best-duel", "certify", "route"])
def test_a_report_and_an_index_break_no_rule_of_axe(reader, site, objective):
    for file in sorted((site / objective / "site").iterdir()):
        if not file.match(DECIDED):
            assert both_schemes(drawn(reader, file)) == {"light": [], "dark": []}


def test_the_report_of_a_decided_campaign_breaks_none_and_its_first_screen_tells_the_answer(reader, site):
    (file,) = (site / "best-mean" / "site").glob(DECIDED)
    said = first_screen(drawn(reader, file))
    assert both_schemes(reader) == {"light": [], "dark": []}
    assert [told for told in TOLD if told not in said] == []
