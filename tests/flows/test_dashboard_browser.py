"""The dashboard in a real browser, beside a campaign that runs in a process of its own."""

import os
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import campaign_processes as processes
import duel_campaigns
import pytest
import scripted_engines
from browser_pages import let_axe_in, violations
from dashboard_servers import chromium, serving
from duel_campaigns import model, model_judge, write_duels
from playwright.sync_api import expect, sync_playwright
from waiting import until

ATTACK = "<script>window.harmed = 1</script><img src=x onerror='window.harmed = 1'>"
PATIENCE = 120_000
"""Milliseconds that the page may take to show what is expected, on a busy machine."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A campaign of duels, stopped in its midst, whose prompts and answers are also HTML."""
    folder = tmp_path_factory.mktemp("live")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        scripted_engines.provide_all(patch)
        spec = write_duels(
            folder,
            models=[model("one", "honest", "model-1"), model("two", "partial", "model-2")],
            prompts=[{"name": "plain", "template": f"{ATTACK} {{{{ input }}}}="}],
            judge=model_judge("reader"),
            selector={"name": "random-pair"},
            seed=12,
            stopping={"budget": 240, "delta": None},
        )
        storage = processes.store(spec)
    process = duel_campaigns.start(processes.fork_server(), folder, storage)
    while not processes.rows(folder, "SELECT 1 FROM decisions"):
        assert process.is_alive(), "the campaign ended before its first decision"
        time.sleep(0.001)
    stop_between_commits(folder, process)
    yield folder, process
    process.kill()
    process.join()


def stop_between_commits(folder, process):
    """Stop a process where it holds no lock that somebody who reads would wait for."""
    while True:
        os.kill(process.pid, signal.SIGSTOP)
        with closing(sqlite3.connect(folder / "winnow.db", timeout=0.0)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError:
                os.kill(process.pid, signal.SIGCONT)
        time.sleep(0.001)


@pytest.fixture(scope="module")
def browser(folder):
    with (
        serving(f"sqlite:///{folder[0]}/winnow.db") as (_, url),
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"]) as chrome,
    ):
        context = chrome.new_context(base_url=url, viewport={"width": 1400, "height": 1000})
        context.set_default_timeout(PATIENCE)
        let_axe_in(context)
        # The token is exchanged for a cookie, which the pages of the tests then have.
        context.new_page().goto(url)
        yield context


@pytest.fixture
def page(browser):
    """A page that does no harm, asks nothing of other machines, and ends without a fault that axe finds."""
    expect.set_options(timeout=PATIENCE)
    page = browser.new_page()
    strangers, dialogs = [], []
    page.on("request", lambda request: strangers.append(request.url))
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    yield page
    assert page.evaluate("window.harmed") is None
    assert violations(page) == []
    assert dialogs == []
    assert {url.split("/")[2].split(":")[0] for url in strangers if url.startswith("http")} == {"127.0.0.1"}
    page.close()


CURVE = "[class*='st-key-figure-curve'] .js-plotly-plot"
ZOOM = f"""() => {{
  const {{ xaxis, yaxis }} = document.querySelector("{CURVE}")._fullLayout;
  return [...xaxis.range, ...yaxis.range].map((end) => end.toFixed(6)).join();
}}"""
POINT = f"""() => {{
  const plot = document.querySelector("{CURVE}"), axes = plot._fullLayout;
  const line = plot.data.find((each) => each.name === "estimate of the leader");
  return [axes.xaxis.d2p(line.x.at(-1)), axes.yaxis.d2p(line.y.at(-1))];
}}"""
LAST = f"""() => document.querySelector("{CURVE}").data.find((each) => each.name === "interval").x.at(-1)"""
LOOK_FRAMES = 6
"""Messages from the server in which it has looked twice at least."""
HOVERED = f"""() => document.querySelector("{CURVE} .hoverlayer").textContent"""


def point_of(page):
    """Where the last point of the curve stands in the window, in pixels."""
    page.locator(CURVE).scroll_into_view_if_needed()
    box, (x, y) = page.locator(f"{CURVE} .nsewdrag").first.bounding_box(), page.evaluate(POINT)
    return box, box["x"] + x, box["y"] + y


def zoomed(page):
    """Draw a box around the last point of the curve with the mouse; what its axis then shows."""
    whole, (box, x, y) = page.evaluate(ZOOM), point_of(page)
    page.mouse.move(max(x - 150, box["x"] + 2), max(y - 40, box["y"] + 2))
    page.mouse.down()
    page.mouse.move(min(x + 150, box["x"] + box["width"] - 2), y + 40, steps=5)
    page.mouse.up()
    until(lambda: page.evaluate(ZOOM) != whole)
    return page.evaluate(ZOOM)


def hovered(page):
    """Hold the mouse over the last point of the curve; what is then told of it."""
    _, x, y = point_of(page)
    for step in (8, 4, 0):
        page.mouse.move(x - step, y)
    return until(lambda: page.evaluate(HOVERED))


def said(page, text):
    return page.get_by_test_id("stText").filter(has_text=text)


def board(page):
    """The leaderboard's cells, as the browser tells those who cannot see its canvas."""
    return page.get_by_test_id("stDataFrame").first.locator("td").all_text_contents()


def test_a_running_campaign_is_seen_to_go_on(folder, page):
    """The page stays as the reader left it while nothing is new, and what is new is drawn into it."""
    _, process = folder
    received = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: received.append(frame)))
    page.goto("/")
    expect(page.get_by_test_id("stDataFrame").locator("td", has_text="survivor")).to_have_count(1)
    assert violations(page) == []
    page.get_by_role("link", name="Campaign", exact=True).click()
    expect(said(page, "best-duel campaign, running")).to_be_visible()
    expect(page.locator(CURVE)).to_be_visible()
    expect(page.get_by_text("Engine time").first).to_be_attached()
    zoom, hover, looks = zoomed(page), hovered(page), len(received)
    # Messages are only heard of while the browser is asked something.
    until(lambda: page.evaluate("true") and len(received) > looks + LOOK_FRAMES)
    assert page.evaluate(ZOOM) == zoom
    assert page.evaluate(HOVERED)[-6:] == hover[-6:]  # two marks stand at the point, which end alike
    before, cost = board(page), said(page, "comparisons in").text_content()
    os.kill(process.pid, signal.SIGCONT)
    expect(said(page, cost)).to_have_count(0)
    expect(said(page, "240 comparisons in 30 rounds")).to_be_visible()
    expect(said(page, "best-duel campaign, winner, heuristic")).to_be_visible()
    until(lambda: page.evaluate(LAST) == 240)  # new rounds are drawn, and the zoom is the reader's still
    assert page.evaluate(ZOOM) == zoom
    until(lambda: board(page) != before)  # is drawn after the texts


def test_a_duel_is_read_with_both_texts_and_its_judgments(page):
    page.goto("/comparisons?campaign=survivor")
    search = page.get_by_role("textbox", name="Search")
    search.fill("honest work on <SCRIPT>")
    search.press("Enter")
    candidate = page.get_by_role("combobox", name="Candidate")
    candidate.fill("two/plain/greedy")  # which is not honest: both never answer alike, so the judge was asked
    candidate.press("Enter")
    expect(
        page.get_by_test_id("stText").filter(has_text="one/plain/").filter(has_text="against")
    ).to_be_visible()
    texts = page.get_by_test_id("stCode")
    expect(texts.filter(has_text=f"honest work on {ATTACK}").first).to_be_visible()
    expect(page.get_by_text("Judgments", exact=True)).to_be_visible()
    expect(said(page, "judge, original:")).to_have_count(1)
    expect(said(page, "judge, swapped:")).to_have_count(1)
    expect(texts.filter(has_text="Hence [[")).to_have_count(2)
    search.fill("nowhere to be found")
    search.press("Enter")
    expect(said(page, "No comparison matches.")).to_be_visible()


def test_a_table_offers_no_download_in_which_a_spreadsheet_finds_formulas(page):
    page.goto("/comparisons?campaign=survivor")
    page.get_by_test_id("stDataFrame").first.hover()
    toolbar = page.get_by_test_id("stElementToolbar").first
    expect(toolbar.get_by_role("button", name="Fullscreen")).to_be_visible()
    expect(toolbar.get_by_role("button", name="Download as CSV")).to_have_count(0)


def test_another_row_is_read_once_it_is_clicked(page):
    page.goto("/comparisons?campaign=survivor")
    where = said(page, "position")
    expect(where).to_be_visible()
    first = where.text_content()
    # The table is a picture: the box of the second row is found by its place.
    page.get_by_test_id("stDataFrame").first.click(position={"x": 16, "y": 36 + 35 + 17})
    expect(said(page, first)).to_have_count(0)
    expect(where).to_be_visible()


def test_names_are_completed_and_statements_are_kept_in_the_browser(folder, page):
    page.goto("/sql")
    statement = page.get_by_label("Statement")
    expect(statement).to_have_attribute("aria-autocomplete", "list")  # what listens to the keys is there
    statement.fill("SELECT best FROM v_cam")
    expect(page.get_by_role("button", name="Delete")).to_be_hidden()  # nothing is kept yet
    names = page.locator("#winnow-sql-names").get_by_role("option")
    expect(names.first).to_have_text("v_campaigns")
    statement.press("Tab")
    expect(statement).to_have_value("SELECT best FROM v_campaigns")
    expect(statement).to_be_focused()
    statement.press_sequentially(" WHERE obj")
    expect(names).to_have_text(["objective"])
    statement.press("Escape")
    expect(names).to_have_count(0)
    statement.fill("SELECT 1 AS kept")
    page.get_by_label("Name for this query").fill(ATTACK)
    page.get_by_role("button", name="Save").click()
    page.reload()
    page.get_by_label("Saved queries").select_option(ATTACK)
    expect(page.get_by_label("Statement")).to_have_value("SELECT 1 AS kept")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_test_id("stDataFrame").first.locator("td").filter(has_text="1")).to_have_count(1)
    with page.expect_download() as file:
        page.get_by_role("button", name="Download the answer").click()
    assert Path(file.value.path()).read_text() == 'sep=,\n"kept"\n1\n'
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_label("Saved queries").locator("option")).to_have_count(1)
    assert page.evaluate("window.harmed") is None


def test_statements_are_answered_and_those_that_write_are_refused(folder, page):
    page.goto("/sql")
    statement = page.get_by_label("Statement")
    statement.fill("SELECT count(*) AS found, min(name) AS name FROM candidates")
    page.get_by_role("button", name="Run").click()
    cells = page.get_by_test_id("stDataFrame").first.locator("td")
    expect(cells.filter(has_text="one/plain/greedy")).to_have_count(1)
    statement.fill("DELETE FROM judgments")
    page.get_by_role("button", name="Run").click()
    expect(said(page, "the statement was refused")).to_be_visible()
    assert processes.rows(folder[0], "SELECT count(*) FROM judgments") != [(0,)]
