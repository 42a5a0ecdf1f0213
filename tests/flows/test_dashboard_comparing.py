"""Pages that hold things against each other: candidates, campaigns, factors, and campaigns over time."""

import sys

import numpy as np
import pytest
from dashboard_tables import click_on, script
from repeated_campaigns import repeated_campaigns
from report_campaigns import change, duelled_campaign, routed_campaign, scored_campaign
from stored_campaigns import store_campaign
from streamlit.testing.v1 import AppTest
from test_dashboard import NAMED
from waiting import PATIENCE_S

from winnow.algorithms.bounds.mean_interval import mean_interval
from winnow.flows.reports.dashboard import STORAGE_VARIABLE
from winnow.flows.reports.dashboard.screens import factors_page, over_time_page
from winnow.flows.reports.dashboard.screens.comparison_view import MOST_WORDS, word_diff
from winnow.flows.reports.html.figures.estimates import parallel
from winnow.flows.reports.html.figures.over_time import costs_over_time, estimates_over_time
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.record_types import NewCandidate
from winnow.tasks.answer.new_examples import by_chance
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries import comparing, factors, schedule_history
from winnow.tasks.queries.comparing import Side, by_field, difference_of, grouping_fields, paired_examples
from winnow.tasks.queries.factors import factor_tables, factors_of
from winnow.tasks.queries.schedule_history import all_series, over_time, tracks

pytestmark = pytest.mark.usefixtures("streamlit_once")

A, B = "large/asked/greedy", "large/asked/warm"


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """Three campaigns of a schedule; nobody writes to their database."""
    folder = tmp_path_factory.mktemp("nights")
    return folder, repeated_campaigns(folder)


@pytest.fixture(autouse=True)
def storage(tmp_path, monkeypatch):
    monkeypatch.setenv(STORAGE_VARIABLE, f"sqlite:///{tmp_path}/winnow.db")
    # A script takes the main module's place, and processes of later tests would begin by running it.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture
def at_night(nights, monkeypatch):
    monkeypatch.setenv(STORAGE_VARIABLE, f"sqlite:///{nights[0]}/winnow.db")
    return nights[1]


def shown(page, **address):
    app = AppTest.from_string(script(page), default_timeout=PATIENCE_S)
    for name, value in address.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def clicked(page, *, row):
    """The page once this row of its last table was clicked."""
    (table,) = [each for each in page.dataframe if (each.key or "").startswith("compared-")]
    click_on(page, {table.proto.id: {"rows": [row], "columns": [], "cells": []}})
    assert not page.exception
    return page


@pytest.mark.parametrize(
    ("first", "second", "html"),
    [
        ("it is 4.", "it is 5.", "it is <del>4</del><ins>5</ins>."),
        ("<b>no</b>", "<b>yes</b>", "&lt;b&gt;<del>no</del><ins>yes</ins>&lt;/b&gt;"),
        ("a", "a b", "a<ins> b</ins>"),
        ("\x1b[31mred", "red", "<del>"),
    ],
)
def test_words_that_differ_are_marked_and_nothing_of_a_text_is_markup(first, second, html):
    shown = word_diff(first, second)
    assert html in shown
    assert "\x1b" not in shown


def test_two_endless_outputs_are_compared_as_far_as_it_is_quick():
    shown = word_diff("a " * 50_000, "b " * 50_000)
    assert shown.count("a") < MOST_WORDS + 100


def texts(page):
    return [each.value for each in page.text]


def outcomes(campaign, name):
    """A candidate's score on each example, straight from the tables."""
    statement = (
        "SELECT e.key, k.outcome FROM comparisons k JOIN examples e ON e.id = k.example_id "
        "JOIN candidates c ON c.id = k.candidate_a_id WHERE c.campaign_id = ? AND c.name = ?"
    )
    with campaign.database.reading() as session:
        return dict(session.connection().exec_driver_sql(statement, (campaign.record.id, name)).fetchall())


def test_two_candidates_differ_by_the_mean_over_the_examples_of_both(nights):
    first, second, _ = nights[1]
    with first.database.reading() as session:
        own = paired_examples(session, Side(first.record, A), Side(first.record, "small/plain/greedy"))
        across = paired_examples(session, Side(first.record, A), Side(second.record, A))
    a, b = outcomes(first, A), outcomes(first, "small/plain/greedy")
    differences = np.array([a[key] - b[key] for key in a if key in b])
    assert len(own) == len(differences) == 24
    found = difference_of(own)
    assert found.mean == pytest.approx(differences.mean())
    lower, upper = mean_interval((by_chance(differences) + 1.0) / 2.0, 0.05)
    assert (found.lower, found.upper) == pytest.approx((2.0 * lower - 1.0, 2.0 * upper - 1.0))
    assert (found.first_higher, found.second_higher) == ((differences > 0).sum(), (differences < 0).sum())
    assert [each.second for each in across] == list(outcomes(second, A).values())
    assert difference_of([]) is None


def test_examples_are_grouped_by_fields_that_repeat(nights):
    first = nights[1][0]
    with first.database.reading() as session:
        found = paired_examples(session, Side(first.record, A), Side(first.record, B))
    assert grouping_fields(found) == ["tag"]  # every input is another one
    groups = by_field(found, "tag")
    assert {value: each.n for value, each in groups.items()} == {"sums": 20, "carries": 20}
    whole = difference_of(found).mean
    assert sum(each.mean for each in groups.values()) / 2 == pytest.approx(whole)


def test_in_duels_a_difference_is_how_much_more_often_one_is_preferred(tmp_path):
    campaign = duelled_campaign(tmp_path)
    with campaign.database.reading() as session:
        found = paired_examples(session, Side(campaign.record, "a"), Side(campaign.record, "b"))
        assert paired_examples(session, Side(campaign.record, "a"), Side(campaign.record, "c")) == []
    # a won the first as the first, the second as the second; the third is a tie, the fourth has no outcome.
    assert [(each.key, each.difference) for each in found] == [("e0", 1.0), ("e1", 1.0), ("e2", 0.0)]
    page = shown("compare_page", first="a", second="c")
    assert texts(page)[-1] == "These candidates have no duel with an outcome. Choose two others."


def test_the_best_two_are_compared_first_and_an_address_names_others(at_night):
    page = shown("compare_page")
    (said,) = [each for each in texts(page) if each.startswith("On 40 examples")]
    assert said.startswith(f"On 40 examples, {A} minus {B}: ")
    assert [each.value for each in page.header] == ["Difference", "By tag", "Examples"]
    assert any("nothing here is certified" in each.value for each in page.caption)
    assert len(page.dataframe[0].value) == 40
    other = shown("compare_page", campaign="nightly-1", first="small/plain/greedy", second=A)
    assert [each for each in texts(other) if f"small/plain/greedy minus {A}" in each]


def test_a_row_shows_both_outputs_under_the_input_and_target_that_they_share(at_night):
    page = clicked(shown("compare_page", campaign="nightly-1", first=A, second=B), row=3)
    key = page.dataframe[0].value["example"][3]
    first, second = page.main.columns[-2:]
    shared = [each.value for each in page.code[:2]]
    assert shared == [f"{key[1:]} + {key[1:]}", str(2 * int(key[1:]))]  # the input and the target
    for column, name in ((first, A), (second, B)):
        assert column.text[0].value == name
        assert column.code[0].value.startswith("text of nightly-1-0-")
        assert column.expander[0].label == "Prompt"
    across = {"campaign": "nightly-1", "with": "nightly-0", "first": A, "second": A}
    page = clicked(shown("compare_page", **across), row=0)
    assert [each.text[0].value for each in page.main.columns[-2:]] == [
        f"{A} of nightly-1",
        f"{A} of nightly-0",
    ]


def test_a_row_of_duels_shows_one_comparison_with_both_outputs(tmp_path):
    duelled_campaign(tmp_path)
    page = clicked(shown("compare_page", first="a", second="b"), row=0)
    assert "a against b on example e0" in texts(page)


def test_two_campaigns_stand_beside_each_other_with_the_difference_of_estimates(at_night):
    page = shown("compare_page", **{"campaign": "nightly-2", "with": "nightly-1", "first": A, "second": A})
    assert [each.value for each in page.header][:2] == ["Campaigns", "Difference"]
    assert list(page.dataframe[0].value["state"]) == ["winner, proven"] * 2
    difference = page.dataframe[1].value.set_index("candidate")["difference of estimates"]
    assert difference[A] == pytest.approx(0.74 - 0.8)
    assert not [each for each in texts(page) if "drift" in each]
    assert [each for each in texts(page) if f"{A} of nightly-2 minus {A} of nightly-1" in each]


def test_scores_that_are_not_read_are_told(nights, monkeypatch):
    campaign = nights[1][0]
    sides = [Side(campaign.record, name) for name in (A, B)]
    with campaign.database.reading() as session:
        assert not comparing.are_cut(session, *sides)
        monkeypatch.setattr(comparing, "MOST_EXAMPLES", 39)
        assert comparing.are_cut(session, *sides)
        assert len(paired_examples(session, *sides)) == 39


def test_the_same_twice_and_a_campaign_of_one_candidate_say_what_to_choose(tmp_path):
    campaign = scored_campaign(tmp_path)
    page = shown("compare_page", first="a", second="a")
    assert texts(page)[-1].startswith("Both candidates are the same. Choose another")
    assert "No example has scores of both" in texts(shown("compare_page", first="a", second="c"))[-1]
    store_campaign(campaign.database, "alone", names="a")
    assert texts(shown("compare_page"))[-1].startswith("This campaign has only one candidate. Choose another")


def test_factors_are_the_choices_that_candidates_differ_in(nights):
    campaign = nights[1][0]
    with campaign.database.reading() as session:
        found = factor_tables(Look(session, campaign.record))
    assert [(each.name, list(each.levels)) for each in found.factors] == [
        ("model", ["large", "small"]),
        ("prompt", ["plain", "asked"]),
        ("sampling", ["greedy", "temperature 0.7"]),
    ]
    large, small = (each for each in found.effects if each.factor == "model")
    assert large.lower > 0.0 > small.upper  # 0.15 each way in truth
    assert large.estimate == pytest.approx(-small.estimate)
    assert (found.scores, found.examples, found.is_cut) == (large.scores + small.scores, 40, False)
    cells = {each.levels: each for each in found.cells["model", "prompt"]}
    scores = [value for name in (A, B) for value in outcomes(campaign, name).values()]
    assert cells["large", "asked"].mean == pytest.approx(np.mean(scores))
    assert cells["large", "asked"].scores == len(scores)


def test_each_candidate_is_a_line_through_its_choices_to_its_mean(nights):
    campaign = nights[1][0]
    with campaign.database.reading() as session:
        found = factor_tables(Look(session, campaign.record))
    (lines,) = parallel(found.factors, found.candidates).data
    *axes, mean = lines.dimensions
    assert [axis.label for axis in axes] == ["model", "prompt", "sampling"]
    for number, each in enumerate(found.candidates):
        said = [axis.ticktext[int(axis["values"][number])] for axis in axes]
        levels = zip(found.factors, each.levels, strict=True)
        assert said == [factor.levels[level] for factor, level in levels]
        scores = [value for value in outcomes(campaign, each.name).values() if value is not None]
        assert mean["values"][number] == pytest.approx(np.mean(scores))
        assert each.scores == len(scores)


def test_effects_that_nobody_can_tell_apart_are_left_open_and_few_examples_give_no_interval(tmp_path):
    campaign = scored_campaign(tmp_path)
    with campaign.database.writing() as session:
        session.connection().exec_driver_sql(
            "UPDATE candidates SET model = json_object('name', name), prompt = json_object('name', name)"
        )
    with campaign.database.reading() as session:
        found = factor_tables(Look(session, campaign.record))
    assert all(each.estimate is None for each in found.effects)
    page = shown("factors_page")
    assert "The scores cannot separate the effects of these from other factors: a, b, c." in texts(page)
    assert any("has 20 or more examples" in each.value for each in page.caption)
    assert "Too few of these combinations were scored to estimate interactions." in texts(page)


def test_ways_of_sampling_that_read_alike_stay_apart_and_guardrails_count():
    made = [
        NewCandidate(
            name=str(n), model={"name": "m"}, prompt={"name": "p", **guard}, sampling={"max_tokens": n}
        )
        for n, guard in enumerate(({}, {"guardrail": {"name": "safe"}}))
    ]
    found, chosen = factors_of(made)
    assert [(each.name, list(each.levels)) for each in found] == [
        ("guardrail", ["none", "safe"]),
        ("sampling", ["greedy", "greedy (2)"]),
    ]
    assert chosen == [[0, 0], [1, 1]]


def test_the_page_of_factors_draws_each_and_says_that_nothing_is_certified(at_night, monkeypatch):
    page = shown("factors_page", campaign="nightly-0")
    titles = [each.value for each in page.header]
    assert titles == [
        "Candidates",
        "Model",
        "Prompt",
        "Sampling",
        "Model × prompt",
        "Model × sampling",
        "Prompt × sampling",
    ]
    assert len(page.get("bidi_component")) == 7
    assert any("nothing here is certified" in each.value for each in page.caption)
    means = page.dataframe[0].value
    assert list(means.columns) == ["candidate", "model", "prompt", "sampling", "scores", "mean"]
    assert list(means["mean"]) == sorted(means["mean"], reverse=True)
    assert list(page.dataframe[1].value["model"]) == ["large", "small"]
    monkeypatch.setattr(factors, "MOST_SCORES", 50)
    cut = shown("factors_page", campaign="nightly-0")
    assert any("the first ones" in each for each in texts(cut))


def test_duels_have_no_factors_no_matrix_and_nothing_over_time(tmp_path):
    duelled_campaign(tmp_path)
    assert texts(shown("factors_page"))[-1].startswith("Duels do not score single candidates")
    assert "Duels do not score single candidates. To read" in " ".join(texts(shown("matrix_page")))
    assert shown("compare_page").main.selectbox[0].label == "First candidate"
    assert any("No campaign was repeated yet" in each for each in texts(shown("over_time_page")))


def test_without_factors_the_page_says_what_would_help(tmp_path):
    scored = scored_campaign(tmp_path)
    assert texts(shown("factors_page"))[-1].startswith("All candidates have the same model")
    with scored.database.reading() as session:
        record = campaign_records.get_campaign(session, "letters")
        tables = factor_tables(Look(session, record))
    assert factors_page.why_nothing(record, None).startswith("This campaign has more than 60 models")
    assert tables.effects == []


def test_routed_campaigns_have_differences_and_factors_too(tmp_path):
    routed_campaign(tmp_path)
    shown("factors_page")
    assert (
        texts(shown("compare_page"))[-1]
        == "No prompt has scores of both candidates, because each prompt is routed to one candidate."
    )


def test_names_of_others_are_text_on_these_pages_too(tmp_path):
    repeated_campaigns(tmp_path, 2)
    change(tmp_path, "UPDATE candidates SET name = name || ?", NAMED)
    change(
        tmp_path, "UPDATE candidates SET model = json_object('name', name), prompt = '{}', sampling = '{}'"
    )
    for name in ("compare_page", "factors_page", "over_time_page"):
        page = shown(name)
        marked = [*page.markdown, *page.caption, *page.title, *page.header, *page.get("html")]
        assert not [each.value for each in marked if "evil.example" in each.value]
    page = shown("compare_page")
    assert [each for each in texts(page) if f"{NAMED} minus " in each], texts(page)


def test_campaigns_over_time_say_who_led_and_what_it_cost(nights, monkeypatch):
    campaigns = nights[1]
    with campaigns[0].database.reading() as session:
        (series,) = all_series(session)
        rows = over_time(session, series)
        lines = tracks(session, series, [A])
    assert series.title == "schedule nightly"
    assert [(row["best"], row["changed"]) for row in rows] == [(A, None), (B, True), (A, True)]
    assert [row["estimate"] for row in lines[A]] == [0.8, 0.74, 0.8]
    assert sum(row["generated"] for row in rows) > 300
    said = over_time_page.summary(rows, 3)
    assert said.startswith("3 campaigns: the winner changed 2 times; ")
    track, leaders = estimates_over_time(lines, rows, title="mean").data
    assert (track.y, leaders.customdata) == ((0.8, 0.74, 0.8), (A, B, A))
    (made,) = costs_over_time(rows).data
    assert list(made.y) == [row["generated"] for row in rows]
    monkeypatch.setattr(schedule_history, "MOST_CAMPAIGNS", 2)
    with campaigns[0].database.reading() as session:
        assert len(over_time(session, series)) == 2


def test_the_page_over_time_shows_a_schedule_or_says_how_to_begin_one(at_night, tmp_path, monkeypatch):
    page = shown("over_time_page")
    assert page.selectbox[0].value == 0
    assert list(page.dataframe[0].value["campaign"]) == ["nightly-2", "nightly-1", "nightly-0"]
    assert len(page.get("bidi_component")) == 2
    monkeypatch.setenv(STORAGE_VARIABLE, f"sqlite:///{tmp_path}/winnow.db")
    campaign = scored_campaign(tmp_path)
    assert texts(shown("over_time_page")) == [over_time_page.NOTHING_YET]
    store_campaign(campaign.database, "later")
    again = shown("over_time_page")
    assert again.selectbox[0].options == ["best-mean on the data of later"]
