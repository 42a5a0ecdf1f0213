"""Every page of the dashboard, opened on every kind of campaign, with each of its controls used once."""

import re
import sys

import pytest
import scripted_engines
from campaigns import winnow
from dashboard_tables import click_on, script
from people_campaigns import write_people
from repeated_campaigns import repeated_campaigns
from report_campaigns import (
    certified_campaign,
    crowded_campaign,
    duelled_campaign,
    gated,
    routed_campaign,
    scored_campaign,
)
from stored_campaigns import judgment, new_database, store_campaign
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Dataframe, Widget
from waiting import PATIENCE_S

from winnow.flows.reports.dashboard import ALLOW_LABELS_VARIABLE, STORAGE_VARIABLE
from winnow.flows.reports.dashboard.server import PAGES

pytestmark = pytest.mark.usefixtures("plain_runs", "streamlit_once")

MODULES = {address: f"{address.replace('-', '_')}_page" for address in (*PAGES, "campaigns")}
MOST_STEPS = 400
"""More than any page has controls, rows and options."""
ROWS_OF_CELLS = 2
"""Rows of a table whose cells are clicked one by one; of tables that are clicked by row, all rows are."""
MOST_OPTIONS = 6
"""Options of a box, or cells of a row, that are chosen: the first ones and the last."""


def scored(folder):
    campaign = scored_campaign(folder)
    store_campaign(campaign.database, "later")


def duelled(folder):
    campaign = duelled_campaign(folder)
    mixed = [judgment("original", 1.0, judge="k"), judgment("original", "verdict_missing")]
    campaign.finish_duels(campaign.plan(1, [[0, 1]], [4]), [(1.0, mixed)])


def judged_by_people(folder):
    with pytest.MonkeyPatch.context() as patch:
        scripted_engines.provide_all(patch)
        write_people(folder, "best-mean")
        assert winnow(folder, "run", "campaign.yaml").returncode == 3


def alone(folder):
    campaign = store_campaign(new_database(folder / "winnow.db"), names="a")
    campaign.finish(
        campaign.plan(0, [0, 0], [0, 1]),
        [1.0, 0.0],
        best=0,
        estimates=[0.5],
        lower=[0.0],
        upper=[1.0],
        status=["best"],
        stop=True,
        reason="exhausted",
    )


DATABASES = {
    "scores": scored,
    "duels": duelled,
    "certificates": certified_campaign,
    "routes": routed_campaign,
    "a schedule": lambda folder: repeated_campaigns(folder, 2),
    "people": judged_by_people,
    "a gate": gated,
    "one candidate": alone,
    "200 candidates": lambda folder: crowded_campaign(folder, 200),
    "nothing": lambda folder: new_database(folder / "winnow.db").close(),
}
LEAST = {
    ("a schedule", "compare"): {
        "button next-example",
        "dataframe compared-#-#",
        "selectbox compare-field",
        "selectbox compare-with-nightly-#",
        "toggle compare-whole",
    },
    ("duels", "compare"): {"dataframe compared-#-#", "button star-#", "toggle compare-whole"},
    ("a gate", "compare"): {"dataframe compared-#-#", "button previous-example"},
    ("200 candidates", "compare"): {"dataframe compared-#-#", "button next-example"},
    ("one candidate", "comparisons"): {"button star-#", "text_input note-#"},
    ("duels", "judges"): {
        "button next-judged",
        "dataframe judged-#-flipped-None",
        "selectbox judges-judge-#",
        "toggle Whole texts",
    },
    ("a schedule", "comparisons"): {
        "button next-at",
        "button previous-at",
        "button star-#",
        "button_group comparisons-show-#",
        "dataframe comparisons-#-#",
        "selectbox comparisons-candidate-#",
        "selectbox comparisons-outcome-#",
        "slider comparisons-between-#",
        "text_input comparisons-search-#",
        "text_input note-#",
        "toggle comparisons-whole-#",
    },
    ("scores", "campaign"): {"dataframe leaderboard-#"},
    ("certificates", "matrix"): {"dataframe matrix-#-#-#", "toggle Whole texts"},
    ("scores", "campaigns"): {"dataframe campaigns"},
    ("scores", "sql"): {"button FormSubmitter:sql-Run", "download_button Download the answer"},
}
"""Controls that these pages have for certain, by database and page."""


@pytest.fixture(scope="module", params=DATABASES)
def database(request, tmp_path_factory, plain_runs):
    """The kind of a database and its folder."""
    folder = tmp_path_factory.mktemp("controls")
    DATABASES[request.param](folder)
    return request.param, folder


@pytest.fixture
def kind(database):
    return database[0]


@pytest.fixture(autouse=True)
def storage(database, monkeypatch):
    monkeypatch.setenv(STORAGE_VARIABLE, f"sqlite:///{database[1]}/winnow.db")
    monkeypatch.setenv(ALLOW_LABELS_VARIABLE, "1")
    # A script takes the main module's place, and processes of later tests would begin by running it.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


def opened(page):
    """A page of the dashboard, by its address."""
    module = MODULES[page]
    return AppTest.from_string(script(module), default_timeout=PATIENCE_S).run()


def options_of(element):
    """The actions that a reader can take on a control, by a name; of a table, clicks on its rows or cells."""
    match element.type:
        case "button":
            return {} if element.disabled else {"press": element.click}
        case "toggle" | "checkbox":
            return {"turn": lambda: element.set_value(not element.value)}
        case "selectbox":
            return {each: lambda each=each: element.select(each) for each in few(element.options)}
        case "multiselect":
            return {each: lambda each=each: element.select(each) for each in few(element.options)}
        case "button_group":
            return {each: lambda each=each: element.set_value(each) for each in few(element.options)}
        case "text_input" | "text_area":
            return {"write": lambda: element.set_value("SELECT 1 AS one")}
        case "slider":
            low, high = element.min, element.max
            between = (low + (high - low) / 4, high) if isinstance(element.value, (tuple, list)) else low
            return {"move": lambda: element.set_value(between)}
        case "download_button":
            return {"press": element.click}
        case "dataframe":
            return {str(place): place for place in clicks(element)}
    raise AssertionError(f"this test has no action for a {element.type}: add it")


def few(options):
    """The first options and the last, where there are many."""
    return [*options] if len(options) <= MOST_OPTIONS else [*options[: MOST_OPTIONS - 1], options[-1]]


def clicks(table):
    """The selections that a click on each row or cell of a table makes; none where clicks do nothing."""
    modes, frame = list(table.proto.selection_mode), table.value
    if not modes:
        return []
    if table.proto.SelectionMode.SINGLE_ROW in modes:
        return [{"rows": [row], "columns": [], "cells": []} for row in range(len(frame))]
    return [
        {"rows": [], "columns": [], "cells": [[row, column]]}
        for row in range(min(ROWS_OF_CELLS, len(frame)))
        for column in few(list(frame.columns))
    ]


class Reader:
    """Somebody with a page of the dashboard open, whose clicks on tables stay as they were."""

    def __init__(self, page):
        self._app, self._clicked = opened(page), {}
        self.look()

    def act(self, element, action):
        if isinstance(element, Dataframe):
            self._clicked[element.proto.id] = action
        else:
            action()
        click_on(self._app, self._clicked)
        self.look()

    def look(self):
        assert not self._app.exception, self._app.exception[0].value

    def controls(self):
        """All controls that can be used, each with a name that is the same later; what empties pages last."""
        found = [
            each
            for place in (self._app.main, self._app.sidebar)
            for each in place
            if isinstance(each, Widget | Dataframe)
        ]
        for element in sorted(found, key=lambda each: ORDER.index(each.type)):
            name = element.key or getattr(element, "label", "")
            yield f"{element.type} {re.sub('[0-9]+', '#', name)}", element


ORDER = (
    "dataframe",
    "toggle",
    "checkbox",
    "button_group",
    "download_button",
    "button",
    "selectbox",
    "multiselect",
    "slider",
    "text_area",
    "text_input",
)


def walk(page):
    """Use each control of a page once, with each of its options; return the controls that were used.

    What is left of a page may lack controls that were there at first: it is opened anew until none is new.
    """
    done, found = set(), 1
    while found:
        reader, found = Reader(page), 0
        while (step := next_step(reader, done)) is not None:
            done.add(step[0])
            assert len(done) < MOST_STEPS, f"there is no end of controls: {step[0]}"
            reader.act(*step[1:])
            found += 1
    return {name for name, _ in done}


def next_step(reader, done):
    steps = (
        ((name, option), element, action)
        for name, element in reader.controls()
        for option, action in options_of(element).items()
        if (name, option) not in done
    )
    return next(steps, None)


@pytest.mark.parametrize("page", MODULES)
def test_every_row_and_control_of_a_page_can_be_used(kind, page):
    used = walk(page)
    assert LEAST.get((kind, page), set()) <= used
