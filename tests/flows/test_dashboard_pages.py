"""The dashboard's pages beside one another in a browser: their addresses, and whose campaign they show."""

import re
from contextlib import closing

import pytest
from dashboard_servers import serving
from playwright.sync_api import expect
from stored_campaigns import new_database, store_campaign
from waiting import PATIENCE_S

from winnow.flows.reports.dashboard import SCRIPT
from winnow.flows.reports.dashboard.server import PAGES


@pytest.fixture(scope="module")
def reader(chrome, tmp_path_factory):
    """A reader of a database with two campaigns, who has been let in."""
    folder = tmp_path_factory.mktemp("pages")
    with closing(new_database(folder / "winnow.db")) as database:
        for name in ("earlier", "later"):
            store_campaign(database, name)
    with serving(f"sqlite:///{folder}/winnow.db") as (_, url):
        context = chrome.new_context(base_url=url)
        context.set_default_timeout(PATIENCE_S * 1_000)
        context.new_page().goto(url)
        yield context
        context.close()


@pytest.fixture
def page(reader):
    expect.set_options(timeout=PATIENCE_S * 1_000)
    page = reader.new_page()
    yield page
    page.close()


def test_a_campaign_stays_the_one_that_is_shown_from_page_to_page(page):
    page.goto("/matrix?campaign=earlier")
    for title in ("Comparisons", "Campaign", "Compare"):
        page.get_by_role("link", name=title, exact=True).click()
        expect(page).to_have_url(re.compile(f"/{title.lower()}\\?"))
        expect(page.get_by_role("combobox", name="Campaign", exact=True)).to_have_value("earlier")
        assert "campaign=earlier" in page.url


@pytest.mark.parametrize("address", ["", *(each for each in PAGES if each != "label")])
def test_a_page_asks_for_nothing_that_is_not_there(page, address):
    missing = []
    page.on("response", lambda answer: missing.append(answer.url) if answer.status >= 400 else None)
    page.goto(f"/{address}")
    expect(page.get_by_role("link", name="SQL", exact=True)).to_be_visible()
    assert missing == []


def test_every_page_but_the_first_has_an_address():
    named = re.findall('url_path="(.*?)"', SCRIPT.read_text("utf-8"))
    assert {*PAGES, "campaigns"} == set(named)
