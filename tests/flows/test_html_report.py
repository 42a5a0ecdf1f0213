"""The page of a report: what stands on it, and that nothing on it can do harm."""

import json
import re
from types import SimpleNamespace

import campaign_processes as processes
import certify_campaigns as certify
import pytest
from campaigns import winnow
from hostile_answers import HOSTILE_ANSWERS
from report_campaigns import (
    Elements,
    change,
    crowded_campaign,
    duelled_campaign,
    figures_of,
    page_of,
    provide_models,
    routed_campaign,
    scored_campaign,
)
from stored_campaigns import new_database, store_campaign

from winnow.flows.reports.html.figures.labels import readable
from winnow.flows.reports.html.page import cells, leaderboard
from winnow.flows.reports.html.sections import standard
from winnow.flows.reports.html.sections.samples import MOST_CHARACTERS, MOST_SAMPLES
from winnow.flows.reports.html.sections.standard import sections_of
from winnow.flows.reports.summary import nothing_yet
from winnow.flows.reports.terminal.sections import ELIMINATIONS
from winnow.tasks.campaign.look import Look


@pytest.fixture
def scored(tmp_path):
    return scored_campaign(tmp_path)


@pytest.fixture
def duelled(tmp_path):
    return duelled_campaign(tmp_path)


@pytest.fixture
def routed(tmp_path):
    return routed_campaign(tmp_path)


HOSTILE = '<script>alert("x")</script><img src=http://evil.example/a onerror=alert(1)>&lt;b&gt;%{x}'


LENGTH = ("span", {"class": "facts"})


def test_where_a_plain_mean_is_trusted_there_are_risks_and_nothing_is_certified(tmp_path):
    campaign = store_campaign(new_database(tmp_path / "winnow.db"), objective="certify")
    spec = {
        **campaign.record.spec,
        "certify": {"alpha": None, "drop": 0.3, "baseline": "a", "cost": "custom"},
        "selector": {"name": "eval", "params": {}},
        "candidate_costs": {"a": 3.0, "b": 2.0, "c": 1.0},
    }
    change(tmp_path, "UPDATE campaigns SET spec = ?", json.dumps(spec))
    believed = {"estimates": [0.1, 0.2, 0.9], "lower": [None] * 3, "upper": [None] * 3}
    campaign.finish(campaign.plan(0, [0, 1, 2], [0, 0, 0]), [1.0, 1.0, 0.0], best=1, stop=True, **believed)
    page = page_of(tmp_path)
    assert "No candidate is certified" in page
    assert "allowed drop = 0.3" in page
    assert not {"certificates", "e-values", "weights"} & {
        attributes["id"] for tag, attributes in Elements(page).tags if tag == "section"
    }


PAGE_SECTIONS = {
    "best-mean": [
        "estimates", "curve", "pareto", "allocation", "comparisons", "coverage", "tokens", "seconds",
    ],
    "best-duel": [
        "estimates", "head-to-head", "strengths", "judges", "curve", "allocation", "comparisons", "coverage",
        "tokens", "seconds",
    ],
    "route": ["shares", "types", "estimates", "allocation", "comparisons", "coverage", "tokens", "seconds"],
}  # fmt: skip


@pytest.mark.parametrize("objective", PAGE_SECTIONS)
def test_each_page_has_its_sections_in_order_and_a_plot_for_each_figure(objective, request, tmp_path):
    campaign = request.getfixturevalue(
        {"best-mean": "scored", "best-duel": "duelled", "route": "routed"}[objective]
    )
    found = Elements(page_of(tmp_path))
    names = [attributes["id"] for tag, attributes in found.tags if tag == "section"]
    assert names == ["leaderboard", *PAGE_SECTIONS[objective]]
    drawn = [json.loads(script) for script in found.scripts if script.startswith('{"data"')]
    assert len(drawn) == len(figures_of(campaign))
    assert sum(attributes.get("class") == "plot" for _, attributes in found.tags) == len(drawn)


@pytest.mark.parametrize("objective", ["best-mean", "best-duel"])
def test_a_campaign_without_a_round_has_a_page_that_says_so(objective, tmp_path):
    store_campaign(new_database(tmp_path / "winnow.db"), objective=objective)
    assert "No round is finished yet" in page_of(tmp_path)
    result = winnow(tmp_path, "report", "letters", "--png", "slides")
    assert (result.returncode, result.stdout) == (0, "letters has no figures yet; no PNG was written\n")


def test_a_campaign_that_waits_for_its_first_labels_has_a_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    provide_models(monkeypatch)
    processes.store(certify.write_certify(tmp_path))
    assert "No round is finished yet" in page_of(tmp_path, "survivor")


@pytest.mark.parametrize(
    ("state", "by_program", "is_named"),
    [
        ("new", None, True),
        ("interrupted", None, True),
        ("waiting", None, False),
        ("running", None, False),
        ("new", "the judge", False),
    ],
)
def test_a_page_without_a_round_names_the_command_where_that_goes_on(state, by_program, is_named):
    answer = SimpleNamespace(is_of_program=False, named_by_program=by_program)
    said = nothing_yet(SimpleNamespace(name="letters", state=state, answer=answer))
    assert said.startswith("No round is finished yet")
    assert ("winnow resume letters" in said) == is_named


def test_hostile_names_keys_prompts_and_texts_are_shown_and_do_nothing(scored, tmp_path):
    change(tmp_path, "UPDATE candidates SET name = ? WHERE name = 'b'", HOSTILE)
    change(tmp_path, "UPDATE examples SET key = ? WHERE key = 'e0'", f"key {HOSTILE}")
    change(tmp_path, "UPDATE generations SET text = ?", f"text {HOSTILE}")
    change(tmp_path, "UPDATE prompts SET text = ?", f"prompt {HOSTILE}")
    change(tmp_path, "UPDATE comparisons SET detail = ? WHERE reason IS NOT NULL", f"detail {HOSTILE}")
    page = page_of(tmp_path)
    found = Elements(page)
    for what in ("key", "text", "prompt", "detail"):
        assert f"{what} {HOSTILE}" in found.text
    assert "<script>alert" not in page
    assert "img" not in {tag for tag, _ in found.tags}
    assert not [name for _, attributes in found.tags for name in attributes if name.startswith("on")]
    # Plotly reads a part of HTML, and turns &lt; back into a sign that it shows.
    figures = [json.loads(script) for script in found.scripts if script.startswith('{"data"')]
    assert all("<script" not in json.dumps(figure) for figure in figures)
    assert "&lt;script&gt;" in json.dumps(figures)


def test_all_hostile_answers_can_be_read_and_add_no_element(scored, tmp_path):
    may_come = (LENGTH, ("dt", {}), ("dd", {}))  # a note of its length, and a warning that it is empty
    plain = [tag for tag in Elements(page_of(tmp_path)).tags if tag not in may_come]
    answers = [answer.replace("\0", "").replace("\ud800", "") for answer in HOSTILE_ANSWERS.values()]
    for start in range(0, len(answers), 4):
        # The texts of the leader's three comparisons and of the one without an outcome.
        for number, answer in enumerate(answers[start : start + 4], 3):
            change(tmp_path, "UPDATE generations SET text = ? WHERE id = ?", answer, number)
        page = page_of(tmp_path)
        found = Elements(page)
        assert [tag for tag in found.tags if tag not in may_come] == plain
        assert all(readable(answer[:MOST_CHARACTERS]) in found.text for answer in answers[start : start + 4])
        assert not {"\0", "\x1b", "\x07", "\u202e", "\u2066"} & set(page)


def test_what_cannot_be_printed_becomes_a_dot_and_lines_stay():
    assert readable("a\0\x1b[31m\ud800\u202eb\r\nc\td") == "a\u00b7\u00b7[31m\u00b7\u00b7b\nc   d"


def test_a_long_text_is_cut_and_its_length_told(scored, tmp_path):
    change(tmp_path, "UPDATE generations SET text = ?", "z" * 1_000_000)
    page = page_of(tmp_path)
    assert f"the first {MOST_CHARACTERS:,} of 1,000,000 characters" in page
    assert "z" * MOST_CHARACTERS in page
    assert "z" * (MOST_CHARACTERS + 1) not in page


def test_few_comparisons_of_each_kind_are_shown_as_seen_by_the_best(duelled, tmp_path):
    with duelled.database.reading() as session:
        found = {section.name: section for section in sections_of(Look(session, duelled.record))}
    groups = {group.title: [each.heading for each in group.samples] for group in found["comparisons"].groups}
    assert groups == {
        "Won: a": ["a against b on example e0", "b against a on example e1"],
        "Tied: a": ["a against b on example e2"],
        "Without an outcome": ["a against b on example e3"],
    }
    assert all(len(samples) <= MOST_SAMPLES for samples in groups.values())


def test_a_page_asks_nothing_of_the_network_and_lets_no_other_script_run(scored, tmp_path):
    found = Elements(page_of(tmp_path))
    links = [
        attributes[name] for _, attributes in found.tags for name in ("src", "href") if name in attributes
    ]
    assert links
    assert all(link.startswith("#") for link in links)
    assert "link" not in {tag for tag, _ in found.tags}
    (policy,) = [attributes["content"] for _, attributes in found.tags if "http-equiv" in attributes]
    assert "default-src 'none'" in policy
    assert len(re.findall("'sha256-", policy)) == 2
    assert not re.search(r"@import|url\(", (tmp_path / "page.html").read_text().split("</style>")[0])
    assert "sqlite:" not in found.text


def test_samples_show_targets_and_mark_what_is_right_and_what_is_wrong(scored):
    with scored.database.reading() as session:
        found = {section.name: section for section in sections_of(Look(session, scored.record))}
    samples = [each for group in found["comparisons"].groups for each in group.samples]
    assert {(each.mark, each.facts[0]) for each in samples} == {
        ("right", "score 1"),
        (None, "score 0.5"),
        (None, "no outcome: no_answer"),
    }
    assert len({(each.heading, *each.facts) for each in samples}) == len(samples)  # each is shown once
    for each in samples:
        assert [passage.label for passage in each.side_by_side] == ["input", "target", "output"]
        assert each.side_by_side[1].text == "x"
        assert [passage.label for passage in each.passages] == ["prompt"]
    assert {each.heading for each in samples if each.mark == "right"} == {"example e0", "example e2"}
    places = {each.facts[1] for each in samples}  # counted as the lines of a run count rounds
    assert places == {
        "round 1, position 3",
        "round 2, position 1",
        "round 2, position 2",
        "round 2, position 3",
    }


def test_the_table_has_all_candidates_with_their_numbers_and_no_column_that_says_nothing(scored):
    with scored.database.reading() as session:
        board = leaderboard(Look(session, scored.record))
    headings = [column.heading for column in board.columns]
    assert headings == ["rank", "candidate", "estimate", "interval", "scored", "status"]
    assert [[cell.text for cell in row] for row in board.rows] == [
        ["1", "b", "0.750", "0.500 to 1.000", "3", "active"],
        ["2", "a", "0.250", "0.000 to 0.500", "2", "active"],
        ["–", "c", "–", "–", "0 of 1", "active"],
    ]
    assert board.best == [True, False, False]


def test_a_page_of_many_candidates_and_examples_is_small(tmp_path):
    crowded_campaign(tmp_path, 200, 10_000)
    assert len(page_of(tmp_path).encode()) < 3_000_000


def test_numbers_of_a_column_are_written_alike():
    rows = [{"x": 0.9, "n": 3, "t": "a", "u": None}, {"x": 0.8965, "n": 1_200, "t": "b", "u": 2.0}]
    assert [[text for text, _ in row] for row in cells(rows)] == [
        ["0.900", "3", "a", ""],
        ["0.896", "1,200", "b", "2.000"],
    ]
    assert [is_number for _, is_number in cells(rows)[0]] == [True, True, False, False]


def test_evidence_that_reached_the_level_says_why_a_tied_candidate_is_not_eliminated(tmp_path):
    campaign = store_campaign(new_database(tmp_path / "winnow.db"))
    bets = {"wealths": [6.14e7, 1.0, 30.0], "levels": [20.0] * 3}
    bets |= {"out_in_round": [None, None, 0], "out_at": [None, None, 3]}
    status = ["tied", "tied", "not-better"]
    campaign.finish(campaign.plan(0, [0, 1, 2], [0, 1, 2]), [1.0, 1.0, 0.0], best=1, status=status, bets=bets)
    with campaign.database.reading() as session:
        look = Look(session, campaign.record)
        section = standard.eliminations(look)
        terminal = ELIMINATIONS[1](look)
    said = {
        "a": "not eliminated: part of the answer (tied)",
        "b": "",
        "c": "eliminated in round 1, after 3 comparisons",
    }
    assert {row["candidate"]: row["since"] for row in section.table} == said
    assert {row["candidate"]: row["since"] or "" for row in terminal} == said
    assert "whatever the evidence" in section.note


def test_a_printed_page_does_not_ask_for_clicks(scored, tmp_path):
    page = page_of(tmp_path)
    assert '<span class="screen"> Click a heading to sort by its column.</span>' in page
    printed = page.partition("@media print {")[2]
    assert ".screen { display: none; }" in printed
    assert "Click" not in re.sub(r'<span class="screen">.*?</span>', "", page.partition("<body")[2])
