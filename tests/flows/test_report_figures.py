"""Figures of a report: their numbers are those of the rows."""

import json
import math
from dataclasses import replace

import pytest
from report_campaigns import (
    certified_campaign,
    duelled_campaign,
    figures_of,
    page_of,
    routed_campaign,
    scored_campaign,
)
from stored_campaigns import NOW, decision, generation, new_database, store_campaign

from winnow.flows.reports.html.figures.curve import allocation, curve, tokens
from winnow.flows.reports.html.figures.estimates import intervals
from winnow.flows.reports.html.figures.labels import shortened, shortened_apart
from winnow.flows.reports.html.figures.over_time import estimates_over_time
from winnow.flows.reports.html.figures.theme import GREY
from winnow.flows.reports.html.model import first_of
from winnow.flows.reports.html.objectives.best_duel import head_to_head_figure
from winnow.flows.reports.html.objectives.certify import e_value_figure, weight_figure
from winnow.flows.reports.html.objectives.route import share_figure
from winnow.flows.reports.html.sections.standard import sections_of
from winnow.flows.reports.terminal.certify import sections_of as in_a_terminal
from winnow.storage.engine.database import open_database
from winnow.storage.queries import campaign_views
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import generations as generation_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records import rounds as round_records
from winnow.tasks.campaign.look import Look
from winnow.tasks.objectives.certify import evidence
from winnow.tasks.queries.views import ask


@pytest.fixture
def scored(tmp_path):
    return scored_campaign(tmp_path)


@pytest.fixture
def duelled(tmp_path):
    return duelled_campaign(tmp_path)


@pytest.fixture
def routed(tmp_path):
    return routed_campaign(tmp_path)


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certified")
    certified_campaign(folder)
    return folder


def test_estimates_stand_with_their_intervals_and_the_unknown_are_left_out(scored):
    leader, others = figures_of(scored)["estimates"].data
    assert (leader.y, leader.x) == (("b",), (0.75,))
    assert (leader.error_x.array, leader.error_x.arrayminus) == ((0.25,), (0.25,))
    assert (others.y, others.x, others.error_x.array) == (("a",), (0.25,), (0.25,))


def test_the_curve_follows_the_leader_and_marks_where_the_lead_changed(scored):
    upper, lower, line, changes, last = figures_of(scored)["curve"].data
    assert (upper.x, upper.y) == ((3, 6), (0.5, 1.0))
    assert (lower.y, line.y) == ((0.0, 0.5), (0.25, 0.75))
    assert (changes.x, changes.y, changes.customdata) == ((3, 6), (0.25, 0.75), ("a", "b"))
    assert (last.x, last.y, last.error_y.array, last.error_y.arrayminus) == ((6,), (0.75,), (0.25,), (0.25,))


def test_a_lead_that_does_not_change_is_marked_once_and_a_gap_stays_one():
    rows = [
        {
            "comparisons": n,
            "best": best,
            "estimate": best and 0.5,
            "lower": best and 0.1,
            "upper": best and 0.9,
        }
        for n, best in ((8, None), (16, "a"), (24, "a"), (32, "b"))
    ]
    *_, line, changes, _ = curve(rows, title="t", unit="u").data
    assert line.y == (None, 0.5, 0.5, 0.5)
    assert (changes.x, changes.customdata) == ((16, 32), ("a", "b"))


def test_the_budget_is_shown_with_and_without_outcomes(scored):
    given, missing = figures_of(scored)["allocation"].data
    assert dict(zip(given.y, given.x, strict=True)) == {"b": 3, "a": 2, "c": 0}
    assert dict(zip(missing.y, missing.x, strict=True)) == {"b": 0, "a": 0, "c": 1}


def test_who_beat_whom_is_a_table_with_gaps_where_two_never_met(duelled):
    (cells,) = figures_of(duelled)["head-to-head"].data
    assert cells.x == cells.y == ("a", "b", "c")
    # a won one duel as the first, one as the second, and tied one; the fourth has no outcome.
    assert [list(line) for line in cells.z] == [[None, 2.5 / 3, None], [0.5 / 3, None, None], [None] * 3]
    assert cells.text[0][1] == "0.833<br>n = 3"


def test_judges_and_strengths_stand_on_the_page_of_duels(duelled):
    with duelled.database.reading() as session:
        found = {section.name: section for section in sections_of(Look(session, duelled.record))}
        assert found["judges"].table == ask(Look(session, duelled.record), "judges")
        assert found["judges"].table[0]["flip_rate"] == 1.0
        rows = {row["candidate"]: row for row in ask(Look(session, duelled.record), "strengths")}
    (dots,) = found["strengths"].figure.data
    assert dict(zip(dots.y, dots.x, strict=True)) == {name: rows[name]["strength"] for name in dots.y}
    assert "a" in dots.y


def paths(*logs, name="a", needed=10.0):
    return [
        {"candidate": name, "labels": n, "log_e_value": log, "needed": needed}
        for n, log in enumerate(logs, 1)
    ]


def test_e_values_are_drawn_against_labels_with_a_star_where_the_line_was_first_reached():
    rows = [*paths(1.0, 2.5, 0.5, 3.0), *paths(-1.0, 2.5, name="b")]
    a, star, b = e_value_figure(rows, certified={"a"}, line_as="1/δ = 10").data
    assert (a.x, a.y) == ((1, 2, 3, 4), tuple(math.exp(log) for log in (1.0, 2.5, 0.5, 3.0)))
    assert (star.x, star.y) == ((2,), (math.exp(2.5),))
    assert a.name == "a: certified"
    assert (b.y, b.name) == ((math.exp(-1.0), math.exp(2.5)), "b: not certified")


def test_the_line_of_e_values_stands_at_what_is_needed_on_a_logarithmic_axis():
    figure = e_value_figure(paths(1.0, needed=60.0), certified=(), line_as="3/δ = 60")
    (line,) = figure.layout.shapes
    (words,) = figure.layout.annotations
    assert (line.y0, line.y1, figure.layout.yaxis.type) == (60.0, 60.0, "log")
    assert (words.text, words.y) == ("3/δ = 60", math.log10(60.0))


def test_e_values_beyond_all_floats_are_drawn_and_the_line_stays_in_view():
    figure = e_value_figure(paths(-2_000.0, 0.0, 3_000.0), certified={"a"}, line_as="")
    assert all(0.0 < value < math.inf for value in figure.data[0].y)
    shown = figure.layout.yaxis.autorangeoptions
    assert 1e-4 < shown.clipmin < 0.1  # in values, which are above 0
    assert 1e12 < shown.clipmax < 1e20
    json.dumps(figure.to_plotly_json(), allow_nan=False, default=str)


def test_weights_are_a_table_of_candidates_and_factors():
    rows = [
        {"candidate": name, "rho": rho, "weight": weight}
        for name, shares in {"b": (0.25, 0.75), "a": (0.5, 0.5)}.items()
        for rho, weight in zip((0.0, 1.0), shares, strict=True)
    ]
    (cells,) = weight_figure(rows).data
    assert (cells.y, cells.x) == (("b", "a"), ("0.00", "1.00"))
    assert [list(line) for line in cells.z] == [[0.25, 0.75], [0.5, 0.5]]


def test_the_page_of_certificates_shows_what_the_views_answer(certified):
    with open_database(f"sqlite:///{certified}/winnow.db").reading() as session:
        campaign = campaign_records.get_campaign(session, "survivor")
        found = {section.name: section for section in sections_of(Look(session, campaign))}
        rows = {
            view: list(ask(Look(session, campaign), view)) for view in ("e-values", "weights", "leaderboard")
        }
    assert list(found)[:4] == ["certificates", "e-values", "weights", "risks"]
    lines = [trace for trace in found["e-values"].figure.data if trace.mode == "lines"]
    drawn = [value for line in lines for value in line.y]
    assert drawn == pytest.approx([row["e_value"] for row in rows["e-values"]])
    stars = [trace for trace in found["e-values"].figure.data if trace.mode == "markers"]
    assert len(stars) == 2
    assert all(star.y[0] >= 10.0 for star in stars)
    assert found["e-values"].figure.layout.annotations[0].text == "1/δ = 10"
    (cells,) = found["weights"].figure.data
    assert [value for line in cells.z for value in line] == [row["weight"] for row in rows["weights"]]
    passed, failed = found["risks"].figure.data
    assert (set(passed.y), set(failed.y)) == ({"large/plain", "medium/plain"}, {"small/plain"})
    risks = {row["candidate"]: row["estimate"] for row in rows["leaderboard"]}
    assert dict(zip(passed.y + failed.y, passed.x + failed.x, strict=True)) == risks
    assert found["risks"].figure.layout.shapes[0].x0 == 0.15
    assert [row["certified"] for row in found["certificates"].table] == [True, True, False]
    assert "certified" in page_of(certified, "survivor")


def test_where_a_drop_is_allowed_the_risks_are_said_to_be_drops(certified):
    with open_database(f"sqlite:///{certified}/winnow.db").reading() as session:
        campaign = campaign_records.get_campaign(session, "survivor")
        allowed = {**campaign.spec["certify"], "alpha": None, "drop": 0.15, "baseline": "large/plain"}
        campaign = replace(campaign, spec={**campaign.spec, "certify": allowed})
        found = {section.name: section for section in sections_of(Look(session, campaign))}["risks"]
    assert found.note.startswith("The mean drop below large/plain against human labels, lowest first")
    assert found.figure.layout.xaxis.title.text == "mean drop"
    titles = [title for title, _ in in_a_terminal(campaign)]
    assert "Risks: mean drop below large/plain against human labels, lowest first, with intervals" in titles


def test_weights_of_one_factor_alone_are_no_table(monkeypatch):
    rows = [{"candidate": name, "rho": 0.0, "weight": 1.0} for name in "ab"]
    monkeypatch.setattr(evidence, "weights", lambda *_: rows)
    assert evidence.weight_table(Look(None, None)) == []
    rows.append({"candidate": "a", "rho": 0.5, "weight": 0.0})
    assert evidence.weight_table(Look(None, None))[0] == {"candidate": "a", "0.00": 1.0, "0.50": 0.0}


def test_shares_of_prompts_stand_by_window_and_by_type(routed):
    figures = figures_of(routed)
    lines = {line.name: (line.x, line.y) for line in figures["shares"].data}
    assert lines == {"a": ((3, 4), (2 / 3, 0.0)), "b": ((3, 4), (1 / 3, 1.0))}
    (cells,) = figures["types"].data
    # The last quarter of the prompts is the last one, of type "3".
    assert (cells.x, cells.y, list(cells.z[0])) == (("3",), ("b",), [1.0])


def test_costs_add_up_and_count_what_this_campaign_paid_for(tmp_path):
    database = new_database(tmp_path / "winnow.db")
    first, second = store_campaign(database), store_campaign(database, "again")
    told = first.plan(0, [0, 1, 1], [0, 0, 1])
    a, b, other = first.comparisons(told, [1.0, 1.0, 0.0])
    with database.writing() as session:
        # Candidates a and b share the first text; the second was made and is shown nowhere.
        shared = replace(b, generation_a_id=a.generation_a_id)
        outcome_records.add_outcomes(session, told.id, [a, shared, other], decision(), NOW)
        reply = generation("reply", model="judge", input_tokens=40, output_tokens=7, seconds=2.0)
        round_ = round_records.add_round(session, first.record.id, number=1, arms=[2], examples=[0], now=NOW)
        generation_records.add_generations(session, round_.id, [reply], NOW)
    with database.reading() as session:
        rows = ask(Look(session, first.record), "costs")
        totals = campaign_views.totals(session, first.record.id)
        assert ask(Look(session, second.record), "costs") == []
    assert [(row["candidate"], row["model"], row["generations"]) for row in rows] == [
        ("a", "m", 1),
        ("b", "m", 1),
        (None, "judge", 1),
        (None, "m", 1),
    ]
    for key in ("generations", "input_tokens", "output_tokens"):
        assert sum(row[key] for row in rows) == totals[key]
    assert sum(row["seconds"] for row in rows) == totals["engine_seconds"]


def test_tokens_stand_by_candidate_and_by_what_was_read_and_written():
    rows = [{"candidate": "a", "input_tokens": 30, "output_tokens": 4}]
    read, written = tokens(rows).data
    assert (read.y, read.x, written.x) == (("a",), (30,), (4,))


def test_names_that_look_like_numbers_or_are_shortened_alike_stay_apart():
    names = ["7", "70", *(f"{'m' * 40}{number}{'p' * 40}" for number in range(2))]
    rows = [{"candidate": name, "scored": 1, "unscored": 0} for name in names]
    figure = allocation(rows, unit="u")
    assert figure.layout.yaxis.type == "category"
    assert len(set(figure.layout.yaxis.tickvals)) == len(names)
    assert all(len(text) < 50 for text in figure.layout.yaxis.ticktext)
    assert shortened('<b>"' * 3) == '&lt;b&gt;"' * 3


def test_names_that_would_look_alike_lose_what_all_share():
    assert shortened_apart(["a" * 50 + "1" + "b" * 50, "a" * 50 + "22" + "b" * 50]) == ["…1…", "…22…"]
    assert shortened_apart(["model/<p>", "model/q"]) == ["model/&lt;p&gt;", "model/q"]


def leader_rows(*leaders):
    return [
        {"comparisons": 8 * n, "best": best, "estimate": 0.5, "lower": None, "upper": None}
        for n, best in enumerate(leaders, 1)
    ]


def test_a_line_says_how_many_candidates_are_left():
    rows = leader_rows("a", "a", "b")
    end = rows[-1]["comparisons"]
    figure = curve(rows, title="t", unit="u", candidates=4, out_at=[end, 1])
    left = figure.data[-1]
    assert (left.name, left.yaxis) == ("candidates not eliminated", "y2")
    assert (list(left.x), list(left.y)) == ([0, 1, end, end], [4, 3, 2, 2])
    assert figure.layout.yaxis2.range[0] == 0
    assert figure.layout.yaxis2.dtick == 1
    plain = curve(rows, title="t", unit="u", candidates=4)
    assert [each.name for each in plain.data] == [each.name for each in figure.data[:-1]]


def test_leaders_are_named_above_the_curve_where_there_is_room_and_the_last_one_always_is():
    few = curve(leader_rows("a", "a", "b"), title="t", unit="u").layout.annotations
    assert [(each.text, each.x, each.y, each.yref) for each in few] == [
        ("b", 24, 1.0, "paper"),
        ("a", 8, 1.0, "paper"),
    ]
    long = [letter * 30 for letter in "abcdefgh"]
    many = curve(leader_rows(*long), title="t", unit="u").layout.annotations
    assert many[0].text == long[-1]
    assert 1 < len(many) < len(long)


def test_two_hundred_candidates_are_cut_to_what_can_be_read():
    rows = [{"candidate": f"c{n}", "estimate": 0.5, "lower": 0.4, "upper": 0.6} for n in range(30)]
    assert first_of(range(200), "nightly", "leaderboard") == (
        range(40),
        " The first 40 of 200 are shown; winnow query nightly leaderboard shows all.",
    )
    tall = intervals(rows, title="t").layout.height
    assert tall > intervals(rows[:5], title="t").layout.height
    met = [{"candidate": "c0", "opponent": "c1", "win_rate": 0.5, "wins": 1, "ties": 0, "losses": 1}]
    crowded = head_to_head_figure(met, [row["candidate"] for row in rows]).data[0]
    assert crowded.texttemplate is None
    assert crowded.z[0][1] == 0.5


def test_the_lines_that_a_legend_names_are_drawn_above_the_grey_ones():
    names = [f"model-{number}" for number in range(7)]
    picks = [{"until": 10, "candidate": name, "picks": 1} for name in names]
    bets = [{"candidate": name, "labels": 1, "log_e_value": 3.0, "needed": 10.0} for name in names]
    for figure in (share_figure(picks), e_value_figure(bets, certified=names, line_as="1/δ = 10")):
        named = {trace.line.color for trace in figure.data if trace.showlegend}
        above = [trace.zorder for trace in figure.data if {trace.line.color, trace.marker.color} & named]
        below = [trace.zorder for trace in figure.data if GREY in (trace.line.color, trace.marker.color)]
        assert min(above) > max(below)


def test_an_axis_of_equal_means_shows_little_more_than_the_mean():
    rows = [{"candidate": name, "estimate": 1.0, "lower": None, "upper": None} for name in "ab"]
    axis = {"minallowed": 0.95, "maxallowed": 1.05}
    assert intervals(rows, title="mean").layout.xaxis.autorangeoptions.to_plotly_json() == axis
    track = [{"campaign": name, "estimate": 1.0, "lower": 1.0, "upper": 1.0} for name in "cd"]
    led = [{"campaign": name, "created_at": NOW, "best": "a", "estimate": 1.0} for name in "cd"]
    over_time = estimates_over_time({"a": track}, led, title="mean").layout.yaxis.autorangeoptions
    assert over_time.to_plotly_json() == axis
    others = [*rows, {"candidate": "c", "estimate": 0.5, "lower": 0.25, "upper": 0.75}]
    assert intervals(others, title="mean").layout.xaxis.autorangeoptions.minallowed is None


def test_candidates_of_one_campaign_stand_apart_and_only_a_schedule_joins_its_campaigns():
    tracks = {
        name: [{"campaign": each, "estimate": 0.5, "lower": 0.4, "upper": 0.6} for each in "cd"]
        for name in "ab"
    }
    led = [{"campaign": each, "created_at": NOW, "best": "b", "estimate": 0.5} for each in "cd"]
    first, second, leaders = estimates_over_time(tracks, led, title="mean").data
    assert first.x[0] < 0.0 < second.x[0] < 0.5 < first.x[1]
    assert (first.mode, leaders.x) == ("lines+markers", second.x)
    apart = estimates_over_time(tracks, led, title="mean", are_repeated=False)
    assert apart.data[0].mode == "markers"
    assert apart.layout.xaxis.ticktext == ("c", "d")


def test_the_smallest_lead_comes_first_however_wide_its_interval_is(tmp_path):
    campaign = store_campaign(new_database(tmp_path / "winnow.db"))
    campaign.finish(
        campaign.plan(0, [0, 1, 2], [0, 0, 0]),
        [1.0, 1.0, 0.0],
        best=0,
        estimates=[0.9, 0.8, 0.3],
        lower=[0.8, 0.7, 0.0],
        upper=[1.0, 0.9, 0.95],
        status=["best", "active", "active"],
        differences={
            "against": 0,
            "delta": 0.05,
            "estimates": [None, -0.1, -0.6],
            "lower": [None, -0.2, -1.0],
            "upper": [None, -0.05, 0.1],
        },
    )
    (open_,) = figures_of(campaign)["lead"].data
    assert (open_.y, open_.x) == (("b", "c"), (0.1, 0.6))


def test_nothing_is_drawn_of_duels_of_which_none_was_judged(tmp_path):
    campaign = store_campaign(new_database(tmp_path / "winnow.db"), "letters", objective="best-duel")
    campaign.finish_duels(campaign.plan(0, [(0, 1)], [0]), [(None, [])])
    with campaign.database.reading() as session:
        assert list(ask(Look(session, campaign.record), "head-to-head"))
    assert "head-to-head" not in figures_of(campaign)
