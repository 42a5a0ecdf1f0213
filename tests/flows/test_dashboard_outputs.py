"""Outputs on the dashboard: filters, one row after another, links that show the same, stars and notes."""

import sys

import pytest
from campaigns import winnow
from dashboard_tables import click_on, script
from report_campaigns import change, crowded_campaign, decided_campaign, duelled_campaign, scored_campaign
from stored_campaigns import new_database, store_campaign
from streamlit.testing.v1 import AppTest
from waiting import PATIENCE_S

from winnow.flows.reports.dashboard import ALLOW_LABELS_VARIABLE, STORAGE_VARIABLE
from winnow.flows.reports.dashboard.screens import comparisons_page
from winnow.flows.reports.dashboard.screens.comparison_view import listed
from winnow.tasks.text.phrases import example_name

pytestmark = pytest.mark.usefixtures("streamlit_once")


@pytest.fixture(autouse=True)
def storage(tmp_path, monkeypatch):
    monkeypatch.setenv(STORAGE_VARIABLE, f"sqlite:///{tmp_path}/winnow.db")
    monkeypatch.delenv(ALLOW_LABELS_VARIABLE, raising=False)
    # A script takes the main module's place, and processes of later tests would begin by running it.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture
def decided(tmp_path):
    """b is right on two examples, a and c have an eliminated score of 1 and of 0."""
    return decided_campaign(new_database(tmp_path / "winnow.db"))


def opened(page="comparisons_page", **address):
    app = AppTest.from_string(script(page), default_timeout=PATIENCE_S)
    for name, value in address.items():
        app.query_params[name] = value
    return looked_at(app.run())


def looked_at(app):
    assert not app.exception, app.exception[0].value
    return app


def again(app):
    """The page at this page's address, opened by somebody else."""
    return opened(**app.query_params)


def rows(app):
    """Candidate and example of each row of the table."""
    (table,) = app.dataframe
    return list(zip(table.value["candidate"], table.value["example"], strict=True))


def open_one(app):
    (heading,) = [each.value for each in app.text if " on example " in each.value]
    return tuple(heading.split(" on example "))


def show(app, what):
    return looked_at(app.button_group[0].set_value(what).run())


def press(app, label):
    (button,) = [each for each in app.button if each.label == label]
    return looked_at(button.click().run())


def box(app, label):
    (found,) = [each for each in (*app.main.selectbox, *app.main.text_input) if each.label == label]
    return found


def test_failures_differences_and_the_eliminated_are_one_click_away(decided):
    page = opened()
    assert rows(page) == [("c", "e3"), ("b", "e2"), ("b", "e1"), ("a", "e0")]
    assert rows(show(page, "Failures")) == [("c", "e3")]
    assert rows(show(page, "Eliminated")) == [("c", "e3"), ("a", "e0")]
    show(page, "Differs")  # no example was given to two candidates
    assert not page.dataframe
    assert "No comparison matches." in [each.value for each in page.text]


def test_candidates_that_bets_eliminated_up_to_epsilon_are_among_the_eliminated(tmp_path):
    campaign = store_campaign(new_database(tmp_path / "winnow.db"))
    bets = {"wealths": [1.0, 30.0, 25.0], "levels": [20.0] * 3}
    bets |= {"out_in_round": [None, 0, None], "out_at": [None, 3, None]}
    status = ["best", "not-better", "not-better"]  # c, which was not eliminated, can equal a
    round_ = campaign.plan(0, [0, 1, 2], [0, 1, 2])
    campaign.finish(round_, [1.0, 0.0, 1.0], best=0, status=status, bets=bets, stop=True, reason="confident")
    assert rows(show(opened(), "Eliminated")) == [("b", "e1")]


def test_a_candidate_fails_the_duels_that_it_lost(tmp_path):
    duelled_campaign(tmp_path)
    page = show(opened(candidate="b"), "Failures")
    assert [example for _, example in rows(page)] == ["e3", "e1", "e0"]
    assert [example for _, example in rows(looked_at(box(page, "Candidate").select("a").run()))] == ["e3"]


def test_the_address_holds_filters_and_the_open_comparison(decided):
    page = opened()
    looked_at(box(page, "Candidate").select("b").run())
    looked_at(box(page, "Outcome").select("has an outcome").run())
    looked_at(page.slider[0].set_value((0.5, 1.0)).run())
    looked_at(box(page, "Search").set_value("letters").run())
    press(page, "Next")
    looked_at(page.toggle[0].set_value(True).run())
    assert page.query_params == {
        "campaign": "letters",
        "candidate": "b",
        "outcome": "has an outcome",
        "between": "0.5-1",
        "search": "letters",
        "at": "1.2",
        "whole": "yes",
    }
    copied = again(page)
    assert rows(copied) == rows(page) == [("b", "e2"), ("b", "e1")]
    assert open_one(copied) == open_one(page) == ("b", "e1")
    assert copied.toggle[0].value is True
    looked_at(box(copied, "Search").set_value("").run())
    looked_at(box(copied, "Candidate").set_value(None).run())
    assert not {"search", "candidate"} & {*copied.query_params}


def test_the_address_holds_the_page_of_rows(decided, monkeypatch):
    monkeypatch.setattr(comparisons_page, "PAGE", 1)
    page = press(press(opened(show="eliminated"), "Next"), "Previous")
    assert open_one(page) == ("c", "e3")
    assert "before" not in page.query_params
    press(page, "Next")
    copied = again(page)
    assert rows(copied) == rows(page) == [("a", "e0")]
    assert rows(press(copied, "Previous")) == [("c", "e3")]


@pytest.mark.parametrize(
    "address",
    [
        {"show": "nonsense"},
        {"candidate": "nobody"},
        {"at": "9.9"},
        {"at": "x"},
        {"at": "9999999999999999999999.1"},
        {"before": "-1.5"},
        {"between": "2-1"},
        {"between": "nan-nan"},
        {"between": "0.3-"},
        {"outcome": "none: nothing"},
        {"whole": "1"},
    ],
)
def test_an_address_that_names_what_is_not_there_shows_the_rest(decided, address):
    assert len(rows(opened(**address))) == 4


def test_a_link_to_a_comparison_opens_it_though_newer_ones_fill_the_page(decided, monkeypatch):
    monkeypatch.setattr(comparisons_page, "PAGE", 2)
    page = opened(at="1.1")
    assert open_one(page) == ("a", "e0")
    assert rows(press(page, "Newest")) == [("c", "e3"), ("b", "e2")]


def test_rows_are_stepped_through_by_keys_and_opened_by_a_click(decided):
    page = opened()
    keys = {each.label: each.proto.shortcut for each in page.button}
    assert (keys["Next"], keys["Previous"]) == ("j", "k")
    assert open_one(press(page, "Next")) == ("b", "e2")
    (table,) = page.dataframe
    click_on(page, {table.proto.id: {"rows": [], "columns": [], "cells": [[3, "input"]]}})
    assert open_one(looked_at(page)) == ("a", "e0")
    assert [each.disabled for each in page.button if each.label == "Next"] == [True]
    assert open_one(press(page, "Previous")) == ("b", "e1")


def test_input_target_and_output_stand_side_by_side(decided):
    page = opened(at="1.2")
    labels = [each.value for each in page.text if each.value in ("input", "target", "output", "prompt")]
    assert labels == ["input", "target", "output", "prompt"]
    assert [each.value for each in page.code][:3] == ["1", "x", "text of letters-0-1"]


def test_compare_opens_the_largest_difference_and_the_address_holds_the_example(tmp_path):
    campaign = scored_campaign(tmp_path)
    campaign.finish(campaign.plan(2, [0, 0], [2, 3]), [1.0, 0.0], best=1)
    page = opened("compare_page", first="a", second="b")
    (table,) = page.dataframe
    columns = ["example", "input", "target", "first output", "second output", "first", "second", "difference"]
    assert list(table.value) == columns
    assert page.query_params["example"] == table.value["example"][0]
    press(page, "Next")
    wanted = table.value["example"][1]
    copied = opened("compare_page", **page.query_params)
    assert f"example {wanted}" in [each.value for each in copied.text]
    assert copied.query_params["example"] == wanted


def test_a_candidate_of_the_leaderboard_has_links_to_its_failures_and_to_compare(decided):
    page = opened("campaign_page")
    table = page.dataframe[0]
    assert list(table.value["candidate"]) == ["b", "a", "c"]
    click_on(page, {table.proto.id: {"rows": [], "columns": [], "cells": [[2, "status"]]}})
    links = [each.value for each in looked_at(page).text if each.value.endswith("}")]
    assert links == [
        "Failures of c {'campaign': 'letters', 'candidate': 'c', 'show': 'failures'}",
        "b minus c {'campaign': 'letters', 'first': 'b', 'second': 'c'}",
    ]
    assert rows(opened(campaign="letters", candidate="c", show="failures")) == [("c", "e3")]


def test_who_may_write_stars_and_notes_an_output_and_all_others_see_it(tmp_path, decided, monkeypatch):
    monkeypatch.setenv(ALLOW_LABELS_VARIABLE, "1")
    page = press(opened(at="1.2"), "☆ Star")
    looked_at(box(page, "Note").set_value("  <b>odd</b>  ").run())
    assert list(page.dataframe[0].value["note"][2:3]) == ["★ <b>odd</b>"]
    assert rows(show(page, "Starred or noted")) == [("b", "e1")]
    monkeypatch.delenv(ALLOW_LABELS_VARIABLE)
    other = opened(at="1.2")
    assert "★ <b>odd</b>" in [each.value for each in other.text]
    assert not [each for each in other.button if "Star" in each.label]
    monkeypatch.setenv(ALLOW_LABELS_VARIABLE, "1")
    page = press(opened(at="1.2"), "★ Starred")
    looked_at(box(page, "Note").set_value("").run())
    assert not opened(show="starred").dataframe
    assert "no problem was found" in winnow(tmp_path, "db", "check").stdout


def test_a_note_is_not_stored_once_nobody_may_write(decided, monkeypatch):
    monkeypatch.setenv(ALLOW_LABELS_VARIABLE, "1")
    page = opened(at="1.2")
    monkeypatch.delenv(ALLOW_LABELS_VARIABLE)
    press(page, "☆ Star")
    assert [each for each in page.text if "this page is read-only" in each.value]
    assert not opened(show="starred").dataframe


def test_an_example_without_an_id_is_known_by_its_number(tmp_path, decided):
    change(tmp_path, "UPDATE examples SET key = ? WHERE key = 'e1'", "b1946ac92492d234")
    page = opened(at="1.2")
    assert open_one(page) == ("b", "#2")
    assert [each for each in page.text if "id b1946ac92492d234" in each.value]
    assert ("b", "#2") in rows(page)
    assert example_name("b1946ac92492d234-2", 6) == "#7"
    page = opened("matrix_page", example="b1946ac92492d234", candidate="b")
    assert page.dataframe[0].value["example"].tolist() == ["#2", "e2", "e3"]
    assert open_one(page) == ("b", "#2")
    table = winnow(tmp_path, "query", "letters", "comparisons", "--columns", "candidate,example")
    assert table.stdout.splitlines()[1:3] == ["a          e0", "b          #2"]
    for format_ in ("csv", "json", "jsonl"):
        assert (
            "b1946ac92492d234"
            in winnow(tmp_path, "query", "letters", "comparisons", "--format", format_).stdout
        )


def test_the_matrix_says_how_many_candidates_it_shows_and_shows_all_by_one_click(tmp_path):
    crowded_campaign(tmp_path, 10)
    page = opened("matrix_page")
    said = "8 of 10 candidates. The best 8 are shown at first."
    assert said in [each.value for each in page.caption]
    assert len(page.dataframe[0].value.columns) == 2 + 8
    page = press(page, "Show all candidates")
    assert len(page.dataframe[0].value.columns) == 2 + 10
    assert said not in [each.value for each in page.caption]


def test_a_table_leaves_out_what_is_the_same_in_all_rows():
    row = {
        "candidate": "a",
        "candidate_b": None,
        "example": "e",
        "example_number": 0,
        "input": '{"q": "caf\\u00e9"',
        "target": "t",
        "more_targets": 2,
        "text": "x",
        "text_b": None,
        "outcome": 1.0,
        "reason": None,
        "judge": "exact",
        "round": 0,
        "noted": None,
        "note": None,
    }
    (one, other) = listed([row, {**row, "judge": "f1"}])
    assert {name: one[name] for name in ("input", "target", "score")} == {
        "input": '{"q": "café"',
        "target": "t (+2)",
        "score": 1.0,
    }
    assert other["judge"] == "f1"
    assert not {"round", "note", "candidate_b"} & {*one}
