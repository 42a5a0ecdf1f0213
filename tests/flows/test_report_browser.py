"""The page in a browser: on a phone and on a desk, sorted by its headings, and read without JavaScript."""

import json
from itertools import pairwise

import pytest
from browser_pages import DRAWN, let_axe_in, violations
from report_campaigns import crowded_campaign, page_of

from winnow.flows.reports.html.objectives.best_duel import head_to_head_figure
from winnow.flows.reports.html.objectives.certify import e_value_figure, weight_figure

N_CANDIDATES = 30

MARKS = """() => [...document.querySelectorAll("figure[aria-label='Estimates'] .point")].map((mark) => {
  const box = mark.getBoundingClientRect();
  return [box.left, box.right];
})"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crowded")
    crowded_campaign(folder, N_CANDIDATES)
    page_of(folder)
    return folder


def opened(chrome, folder, width, **options):
    context = chrome.new_context(viewport={"width": width, "height": 844}, **options)
    let_axe_in(context)
    page = context.new_page()
    page.said = []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.goto(f"file://{folder}/page.html")
    return page


@pytest.fixture(scope="module")
def pages(chrome, folder):
    """The page, drawn on a phone and on a desk, by the width in pixels; each test leaves it as it was."""
    pages = {width: opened(chrome, folder, width, color_scheme="light") for width in (390, 1280)}
    for page in pages.values():
        page.wait_for_function(DRAWN)
    yield pages
    for page in pages.values():
        page.context.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_a_page_fits_and_every_mark_can_be_seen(pages, width):
    page = pages[width]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    marks = page.evaluate(MARKS)
    assert len(marks) == N_CANDIDATES
    assert all(0 <= left < right <= width for left, right in marks)
    assert len({round(left) for left, _ in marks}) > N_CANDIDATES / 2  # and are not heaped up at an edge
    assert page.said == []
    assert violations(page) == []


BEHIND = "[...document.querySelectorAll(\"figure[aria-label='Estimates'] .annotation .bg\")]"
FILLS = f"{BEHIND}.map((each) => getComputedStyle(each).fill)"
PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 25, 29)"}


def test_on_a_phone_rows_of_tables_are_records_whose_values_say_what_they_are(pages):
    page = pages[390]
    cells = page.locator("table.records td")
    assert cells.count()
    for box in cells.evaluate_all("cells => cells.map((each) => each.getBoundingClientRect().toJSON())"):
        assert 0 <= box["left"] <= box["right"] <= 390
    said = (
        page.locator("table.records")
        .first.locator("tbody tr")
        .first.locator("td")
        .evaluate_all("cells => cells.map((each) => getComputedStyle(each, '::before').content)")
    )
    assert said == ["none", '"from comparisons "', '"estimate "']


def test_no_line_runs_through_a_name_above_its_mark_in_light_or_in_dark(pages):
    page = pages[390]
    assert page.evaluate(FILLS) == [PAPER["light"]] * N_CANDIDATES
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"() => {FILLS}.every((each) => each === '{PAPER['dark']}')")
    assert page.evaluate(FILLS) == [PAPER["dark"]] * N_CANDIDATES
    page.emulate_media(color_scheme="light")


def test_a_click_on_a_heading_sorts_by_its_column_and_another_one_turns_it_round(pages):
    page = pages[1280]
    cells = page.locator("table.sortable tbody td.estimate")
    before = cells.all_text_contents()
    assert before == sorted(before, reverse=True)
    button = page.get_by_role("columnheader", name="estimate").get_by_role("button")
    button.click()
    assert cells.all_text_contents() == before[::-1]
    assert button.locator("..").get_attribute("aria-sort") == "ascending"
    button.click()
    assert cells.all_text_contents() == before


def test_without_javascript_the_answer_and_the_table_can_be_read(chrome, folder):
    page = opened(chrome, folder, 1280, java_script_enabled=False)
    assert page.locator("dl.answer").first.inner_text().startswith("leading")
    assert page.locator("table.sortable tbody tr").count() == N_CANDIDATES
    assert page.locator("table.sortable button").count() == 0
    page.context.close()


PRINTED = """() => {
  dispatchEvent(new Event("beforeprint"));
  const heights = [...document.querySelectorAll(".plot")].map((plot) => plot.getBoundingClientRect().height);
  const buttons = [...document.querySelectorAll("th button")].map((each) => getComputedStyle(each).display);
  dispatchEvent(new Event("afterprint"));
  return {heights, buttons};
}"""
"""How high figures are on paper, and how what is in the headings of tables is laid out."""


def test_on_paper_no_figure_is_higher_than_a_page_and_headings_stand_on_each_page_of_a_table(chrome, folder):
    page = opened(chrome, folder, 1280)
    page.wait_for_function(DRAWN)
    page.emulate_media(media="print")
    # Chrome repeats a heading on each page unless something in it is laid out as a box of its own.
    assert set((found := page.evaluate(PRINTED))["buttons"]) == {"contents"}
    assert max(found["heights"]) <= 820  # of the 970 pixels of a letter page, beside title and note
    page.context.close()


AXIS = """async ({data, layout}) => {
  const plot = document.body.appendChild(document.createElement("div"));
  await Plotly.newPlot(plot, data, layout);
  const found = {range: plot._fullLayout.yaxis.range, ticks: plot.querySelectorAll(".ytick").length};
  plot.remove();
  return found;
}"""


def test_extremes_do_not_flatten_the_e_values_around_the_line(pages):
    rows = [
        {"candidate": name, "labels": label, "log_e_value": slope * label, "needed": 10.0}
        for name, slope in (("a", 0.2), ("b", -2.0))
        for label in range(1, 40)
    ]
    figure = e_value_figure(rows, certified={"a"}, line_as="1/δ = 10")
    found = pages[1280].evaluate(AXIS, json.loads(figure.to_json()))
    low, high = found["range"]
    assert -3.5 < low < -2.5  # in powers of ten, as all that follows
    assert 3.0 < high < 4.0
    assert 3 <= found["ticks"] <= 10


PLACED = """async ({data, layout}) => {
  const plot = document.body.appendChild(document.createElement("div"));
  const narrow = fitted({data, layout}, 350);
  await Plotly.newPlot(plot, narrow.data, {...narrow.layout, width: 350});
  const {_size: area, yaxis} = plot._fullLayout, boxes = [...plot.querySelectorAll(".xtick text")];
  const found = {
    cell: area.h / yaxis.ticktext.length - plot.data[0].ygap,
    labels: boxes.filter((each) => each.textContent).map((each) => each.getBoundingClientRect().toJSON()),
  };
  plot.remove();
  return found;
}"""
"""The height of a heat map's cells where it is drawn on a phone, and where the labels below it are."""


@pytest.mark.parametrize("candidates", [2, 3, 12])
def test_cells_can_be_seen_on_a_phone_however_few_rows_there_are(pages, candidates):
    rows = [
        {"candidate": f"model-{number}/plain", "rho": rho / 10, "weight": 0.1}
        for number in range(candidates)
        for rho in range(10)
    ]
    found = pages[390].evaluate(PLACED, json.loads(weight_figure(rows).to_json()))
    assert 8 <= found["cell"] <= 40


def test_numbers_of_many_opponents_stand_apart_on_a_phone(pages):
    names = [f"model-{number}/plain" for number in range(40)]
    met = [
        {"candidate": name, "opponent": names[0], "win_rate": 0.5, "wins": 1, "ties": 0, "losses": 1}
        for name in names[1:]
    ]
    labels = pages[390].evaluate(PLACED, json.loads(head_to_head_figure(met, names).to_json()))["labels"]
    assert len(labels) >= 10
    assert all(one["right"] < other["left"] for one, other in pairwise(labels))
