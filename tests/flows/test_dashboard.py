"""The pages of the dashboard, run without a browser, and the command that serves them."""

import math
import os
import signal
import socket
import sys
import urllib.request
from decimal import Decimal

import pandas as pd
import psutil
import pytest
from campaigns import winnow
from dashboard_servers import serving
from dashboard_tables import script
from report_campaigns import (
    certified_campaign,
    change,
    duelled_campaign,
    gated,
    routed_campaign,
    scored_campaign,
)
from stored_campaigns import judgment, new_database, store_campaign
from streamlit.testing.v1 import AppTest
from waiting import PATIENCE_S

from winnow.flows.reports.dashboard import STORAGE_VARIABLE, db, frames, widgets
from winnow.flows.reports.dashboard.screens import (
    campaign_page,
    campaigns_page,
    comparison_view,
    comparisons_page,
    sql_page,
)
from winnow.flows.reports.dashboard.screens.campaign_page import look_at
from winnow.flows.reports.html.model import Section
from winnow.storage.queries.view_columns import VIEWS
from winnow.storage.records.leases import acquire
from winnow.tasks.campaign.lease import LIFETIME, is_gone, now, this_process
from winnow.tasks.queries.status import campaign_status

pytestmark = pytest.mark.usefixtures("streamlit_once")

HOSTILE = "**b** <script>alert(1)</script> :red[x] $x$ [l](http://evil.example) `c`\x1b[2J\u202e"
NAMED = HOSTILE.partition("\x1b")[0]
"""As the name of a candidate, which is refused with what moves a cursor."""
SHOWN = "**b** <script>alert(1)</script> :red[x] $x$ [l](http://evil.example) `c`·[2J·"


@pytest.fixture(autouse=True)
def storage(tmp_path, monkeypatch):
    monkeypatch.setenv(STORAGE_VARIABLE, f"sqlite:///{tmp_path}/winnow.db")
    # A script takes the main module's place, and processes of later tests would begin by running it.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


def shown(page):
    """Run a page of the dashboard, by the name of its module."""
    return AppTest.from_string(script(page), default_timeout=PATIENCE_S).run()


def campaigns():
    return shown("campaigns_page")


def texts(page):
    assert not page.exception
    return [each.value for each in page.text]


def table(page, number=0):
    return page.dataframe[number].value


def test_the_campaigns_are_listed_newest_first(tmp_path):
    campaign = scored_campaign(tmp_path)
    store_campaign(campaign.database, "later")
    page = campaigns()
    assert list(table(page)["campaign"]) == ["later", "letters"]
    assert list(table(page)["state"]) == ["new", "undecided"]
    assert list(table(page)["of grid"]) == [0.0, 40.0]


def test_a_gate_is_listed_with_its_baseline(tmp_path):
    gated(tmp_path)
    assert list(table(campaigns())["best"]) == ["against a"]


def test_a_campaign_shows_its_answer_its_leaderboard_and_the_figures_of_its_report(tmp_path):
    scored_campaign(tmp_path)
    page = shown("campaign_page")
    said = texts(page)
    assert "best-mean campaign, undecided" in said
    assert "b" in said
    assert not [each for each in said if "sqlite:" in each]
    board = table(page)
    assert list(board["candidate"]) == ["b", "a", "c"]
    assert list(board["best"]) == ["yes", "", ""]
    titles = [each.value for each in page.header]
    assert titles[:4] == ["Leaderboard", "Estimates", "The answer over time", "Quality, cost and time"]
    assert len(page.get("bidi_component")) == 5


def test_a_title_of_a_section_is_no_markup(tmp_path, monkeypatch):
    scored_campaign(tmp_path)
    section = Section(name="tags", title="by [x](http://evil.example)", note="n", table=[{"value": 1}])
    monkeypatch.setattr(campaign_page, "sections_of", lambda *_, **__: [section])
    assert shown("campaign_page").header[-1].value == r"by \[x\]\(http\://evil\.example\)"


def test_a_word_that_begins_several_lines_is_shown_with_each(tmp_path):
    campaign = scored_campaign(tmp_path)
    only_one = {"estimates": [0.25, 0.75, None], "status": ("dropped", "active", "dropped")}
    campaign.finish(campaign.plan(2, [1], [4]), [1.0], best=1, **only_one)
    said = texts(shown("campaign_page"))
    assert said.count("dropped") == 2
    assert any("to c" in each or "c:" in each for each in said[said.index("dropped") :])


def test_the_list_reads_a_campaign_again_only_where_something_has_changed(tmp_path, monkeypatch):
    campaign = scored_campaign(tmp_path)
    store_campaign(campaign.database, "later")
    read = []

    def counted(look):
        read.append(look.record.name)
        return campaign_status(look)

    def look(known):
        read.clear()
        with db.read_session() as session:
            return campaigns_page.campaign_rows(session, known)

    monkeypatch.setattr(campaigns_page, "campaign_status", counted)
    first = look({})
    assert read == [*first] == ["later", "letters"]
    assert look(first) == first
    assert read == []
    campaign.finish(campaign.plan(2, [0], [3]), [1.0], best=0, estimates=[0.5, 0.4, None])
    second = look(first)
    assert read == ["letters"]
    assert second["letters"].row["comparisons"] == first["letters"].row["comparisons"] + 1
    acquire(
        campaign.database, campaign.record.id, this_process(), now=now(), lifetime=LIFETIME, is_gone=is_gone
    )
    third = look(second)
    look(third)
    assert read == ["letters"]  # what runs may change from one look to the next
    change(tmp_path, "UPDATE campaigns SET name = ? WHERE name = 'later'", "renamed")
    assert list(look(second)) == ["renamed", "letters"]
    assert read == ["renamed", "letters"]


def test_a_database_that_takes_too_long_is_said_to(tmp_path, monkeypatch):
    scored_campaign(tmp_path)
    monkeypatch.setattr(campaigns_page, "PATIENCE", -1.0)
    monkeypatch.setattr("winnow.storage.engine.statements.STEPS_BETWEEN_CLOCKS", 1)
    (said,) = [each for each in texts(campaigns()) if "winnow.db" in each]
    assert said.endswith("took too long to answer, and the query was aborted")


def test_a_look_is_computed_again_only_after_a_round(tmp_path):
    campaign = duelled_campaign(tmp_path)
    first = look_at("letters", None)
    assert look_at("letters", first) is first
    campaign.plan(1, [[0, 1]], [0])
    assert look_at("letters", first) is first
    campaign.finish_duels(campaign.plan(2, [[0, 1]], [0]), [(1.0, [])], best=0)
    second = look_at("letters", first)
    assert second.status.totals["comparisons"] == first.status.totals["comparisons"] + 1


@pytest.mark.parametrize("page", ["campaign_page", "comparisons_page"])
def test_the_newest_campaign_is_shown_first_and_another_can_be_chosen(page, tmp_path):
    campaign = scored_campaign(tmp_path)
    other = store_campaign(campaign.database, "later")
    other.finish(other.plan(0, [0], [0]), [1.0])
    app = shown(page)
    assert app.sidebar.selectbox[0].value == "later"
    rows = len(table(app))
    app.sidebar.selectbox[0].select("letters").run()
    assert not app.exception
    assert (len(table(app)) != rows) == (page == "comparisons_page")
    assert app.query_params["campaign"] == "letters"


def test_the_campaign_named_in_the_address_is_shown(tmp_path):
    campaign = scored_campaign(tmp_path)
    store_campaign(campaign.database, "later")
    app = AppTest.from_string(script("campaign_page"), default_timeout=PATIENCE_S)
    app.query_params["campaign"] = "letters"
    assert "letters" in texts(app.run())
    assert not any("not a campaign of this page" in text for text in texts(app))


def test_a_campaign_that_is_asked_for_and_not_there_is_said_to_be_missing(tmp_path):
    campaign = scored_campaign(tmp_path)
    store_campaign(campaign.database, "later")
    app = AppTest.from_string(script("campaign_page"), default_timeout=PATIENCE_S)
    app.query_params["campaign"] = "deleted"
    said = "This page cannot show 'deleted'; 'later' is shown instead."
    assert said in texts(app.run())
    assert said in texts(app.run())  # until another one is chosen
    assert said not in texts(app.selectbox[0].select("letters").run())


def test_comparisons_are_filtered_and_found(tmp_path):
    duelled_campaign(tmp_path)
    page = shown("comparisons_page")
    assert list(table(page)["example"]) == ["e3", "e2", "e1", "e0"]
    assert list(table(page)["outcome"][1:]) == ["a tie", "a preferred", "a preferred"]
    assert not {"judge", "round"} & {*table(page)}  # the same in all rows
    search = page.main.text_input[0]
    assert list(table(search.set_value("letters-0-1-B").run())["example"]) == ["e1"]
    search.set_value("").run()
    (ending,) = [each for each in page.main.selectbox if each.label == "Outcome"]
    assert list(table(ending.select("has none").run())["example"]) == ["e3"]
    assert list(table(ending.select("none: verdict_missing").run())["example"]) == ["e3"]
    ending.select("has an outcome").run()
    assert list(table(page.main.slider[0].set_value((0.0, 0.5)).run())["example"]) == ["e2", "e1"]
    assert "No comparison matches." in texts(search.set_value("nowhere").run())


def test_a_duel_is_shown_with_both_texts_and_every_judgment(tmp_path):
    duelled_campaign(tmp_path)
    page = shown("comparisons_page")
    page.main.text_input[0].set_value("letters-0-0-a").run()
    said = texts(page)
    assert "a against b on example e0" in said
    assert "a preferred · round 1, position 1 · judge llm" in said
    assert {"text of letters-0-0-a", "text of letters-0-0-b"} <= {each.value for each in page.code}
    assert [each for each in said if each.startswith("j, ")] == [
        "j, original: a preferred",
        "j, swapped: b preferred",
    ]


def test_the_page_of_judges_tells_who_changes_sides_and_a_duel_is_a_click_away(tmp_path):
    campaign = duelled_campaign(tmp_path)
    mixed = [judgment("original", 1.0, judge="k"), judgment("original", "verdict_missing")]
    campaign.finish_duels(campaign.plan(1, [[0, 1]], [4]), [(1.0, mixed)])
    page = shown("judges_page")
    assert [each.value for each in page.header][:3] == [
        "Both orders",
        "Verdicts that could not be read",
        "Judged by models",
    ]
    judges, unread, flipped = (table(page, number) for number in range(3))
    assert judges.set_index("judge")["flip rate"]["j"] == 1.0
    assert unread.to_dict("records") == [
        {"judge": "j", "reason": "verdict_missing", "judgments": 1, "share": pytest.approx(1 / 3)}
    ]
    assert list(flipped["example"]) == ["e0"]
    page.main.selectbox[0].select("unread").run()
    assert list(table(page, 2)["example"]) == ["e4"]
    page.main.selectbox[0].select("judged").run()
    assert list(table(page, 2)["example"]) == ["e4", "e0"]
    page.main.selectbox[1].select("k").run()
    assert list(table(page, 2)["example"]) == ["e4"]


def test_without_a_judge_the_page_of_judges_says_what_would_have_one(tmp_path):
    campaign = scored_campaign(tmp_path)
    store_campaign(campaign.database, "later")
    page = shown("judges_page")
    assert any("winnow rescore" in each for each in texts(page))
    page.main.selectbox[0].select("letters").run()
    assert any("Choose a fork of this campaign" in each for each in texts(page))


LONG = [
    f"maker/a-model-with-a-long-name-of-{k}-billion-parameters/step-by-step-in-few-words" for k in range(3)
]


def test_numbers_of_a_column_are_written_alike_and_long_names_lose_their_middles(tmp_path):
    rows = [
        {"candidate": name, "estimate": 0.9 - 0.0035 * k, "seconds": None if k else 2.0}
        for k, name in enumerate(LONG)
    ]
    frame = frames.as_frame(rows)
    assert frames.number_formats(frame) == {"estimate": "%.3f"}
    assert frames.number_formats(frames.as_frame([{"x": 2_000.5}, {"x": None}])) == {"x": "%.1f"}
    assert frames.number_formats(frames.as_frame([{"x": 1e9}, {"x": 1.5e-9}])) == {"x": "%.3g"}
    styled = frames.styled(frame, frames.short_names(frame))
    shown_ = shown_cells(styled)
    assert [row[1:] for row in shown_] == [["0.900", "2"], ["0.897", ""], ["0.893", ""]]
    short = [row[0] for row in shown_]
    assert len(set(short)) == 3
    assert all("…" in name and len(name) <= frames.LONGEST_NAME for name in short)
    assert list(styled.data["candidate"]) == LONG  # is what a click opens
    plain = frames.as_frame([{"candidate": "short", "scored": 999}])
    assert frames.styled(plain, frames.short_names(plain)) is plain


def test_a_comma_stands_between_thousands_as_it_does_in_a_terminal():
    frame = frames.as_frame(
        [{"n": 18_000, "mean": 1_234.56, "none": None}, {"n": -2, "mean": 0.5, "none": None}]
    )
    assert shown_cells(frames.styled(frame, {})) == [["18,000", "1,234.6"], ["-2", "0.5"]]
    few = frames.as_frame([{"n": -4_000}])
    assert shown_cells(frames.styled(few, {})) == [["-4,000"]]
    many = frames.as_frame([{"n": 4_000}] * (frames.MOST_STYLED + 1))
    assert frames.styled(many, {}) is many


def test_the_ends_of_intervals_are_rounded_outward_as_in_a_terminal():
    rows = [
        {"estimate": 0.82449, "lower": 0.73966, "upper": 0.84611},
        {"estimate": 0.5, "lower": 0.66666, "upper": 0.66666},
        {"estimate": None, "lower": None, "upper": None},
    ]
    frame = frames.as_frame(rows)
    assert shown_cells(frames.styled(frame, {})) == [
        ["0.824", "0.739", "0.847"],
        ["0.500", "0.667", "0.667"],
        ["", "", ""],
    ]


def shown_cells(styled):
    return [[cell["display_value"] for cell in row[1:]] for row in styled._translate(False, False)["body"]]


def test_a_box_shows_long_names_short_and_the_chosen_one_whole_as_text(tmp_path):
    name = "bold_" + LONG[0].replace("/", "_")
    store_campaign(new_database(tmp_path / "winnow.db"), name)
    box = shown("campaign_page").sidebar.selectbox[0]
    (label,) = box.options
    assert "…" in label
    assert box.value == name
    assert box.help.startswith(r"bold\_maker\_a\-model")


def test_pages_turn_and_stay_where_they_are_while_a_campaign_grows(tmp_path, monkeypatch):
    monkeypatch.setattr(comparisons_page, "PAGE", 2)
    campaign = duelled_campaign(tmp_path)
    page = shown("comparisons_page")
    assert opened(page) == "e3"
    assert opened(press(page, "Next")) == "e2"
    assert list(table(press(page, "Next"))["example"]) == ["e1", "e0"]
    assert opened(page) == "e1"
    campaign.finish_duels(campaign.plan(1, [[0, 2]], [4]), [(1.0, [])], best=0)
    assert list(table(press(page, "Previous"))["example"]) == ["e3", "e2"]
    assert opened(page) == "e2"
    press(press(page, "Next"), "Newest")
    assert list(table(page)["example"]) == ["e4", "e3"]
    assert opened(page) == "e4"


def press(page, label):
    (button,) = [each for each in page.button if each.label == label]
    return button.click().run()


def opened(page):
    """The example of the comparison that is open."""
    (heading,) = [each for each in texts(page) if " on example " in each]
    return heading.rpartition(" ")[2]


def test_a_long_text_is_cut_until_the_whole_is_asked_for(tmp_path):
    scored_campaign(tmp_path)
    change(tmp_path, "UPDATE generations SET text = ?", "z" * 1_000_000)
    page = shown("comparisons_page")
    assert "output, the first 20,000 of 1,000,000 characters" in texts(page)
    assert max(len(each.value) for each in page.code) == 20_000
    page.toggle[0].set_value(True).run()
    assert max(len(each.value) for each in page.code) == 1_000_000


def test_names_and_texts_of_others_are_never_markdown_or_html(tmp_path):
    scored_campaign(tmp_path)
    change(tmp_path, "UPDATE candidates SET name = ? WHERE name = 'b'", NAMED)
    for change_ in (
        "UPDATE examples SET key = ? WHERE key = 'e2'",
        "UPDATE generations SET text = ?",
        "UPDATE prompts SET text = ?",
        "UPDATE comparisons SET judge = ?",
    ):
        change(tmp_path, change_, HOSTILE)
    pages = [campaigns(), shown("campaign_page"), shown("comparisons_page")]
    pages[2].main.selectbox[0].select_index(1).run()
    for page in pages:
        assert not page.exception
        marked = [*page.markdown, *page.caption, *page.title, *page.header, *page.get("html")]
        assert not [each.value for each in marked if "evil.example" in each.value]
    assert f"{NAMED} on example {SHOWN}" in texts(pages[2])
    assert {SHOWN} <= {each.value for each in pages[2].code}


@pytest.mark.parametrize("page", ["campaign_page", "comparisons_page", "sql_page"])
def test_a_database_that_is_not_there_is_a_sentence(page):
    said = texts(shown(page))
    assert len([each for each in said if "is unavailable" in each and "check its path" in each]) == 1


def test_a_database_of_a_newer_release_is_a_sentence(tmp_path):
    scored_campaign(tmp_path)
    change(tmp_path, "UPDATE alembic_version SET version_num = '9999'")
    for page in (campaigns(), shown("campaign_page"), shown("comparisons_page")):
        (said,) = texts(page)
        assert "install the Winnow that wrote the database" in said


@pytest.mark.parametrize("page", ["campaign_page", "comparisons_page"])
def test_a_database_without_campaigns_is_a_sentence(page, tmp_path):
    new_database(tmp_path / "winnow.db").close()
    for app in (shown(page), campaigns()):
        assert texts(app) == [widgets.NO_CAMPAIGNS]
        assert len(app.title) == 1
        assert app.code[0].value.splitlines()[0] == "winnow init campaign.yaml"
        assert app.code[0].value.endswith(f"--storage sqlite:///{tmp_path}/winnow.db")


def test_a_campaign_without_a_round_says_so(tmp_path):
    store_campaign(new_database(tmp_path / "winnow.db"))
    assert any("To continue, run winnow resume letters." in each for each in texts(shown("campaign_page")))
    assert "No comparison matches." in texts(shown("comparisons_page"))


def asked(statement):
    page = shown("sql_page")
    page.text_area[0].set_value(statement)
    page.button[0].click().run()
    assert not page.exception
    return page


def test_a_statement_is_answered(tmp_path):
    scored_campaign(tmp_path)
    found = table(asked("SELECT name, position AS name FROM candidates WHERE name <> ':x' ORDER BY 2"))
    assert found.to_dict("list") == {"name": ["a", "b", "c"], "name (2)": [0, 1, 2]}


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM comparisons",
        "PRAGMA query_only = OFF",
        "ATTACH '/tmp/other.db' AS other",
        "SELECT nothing FROM nowhere",
    ],
)
def test_a_statement_that_would_write_is_refused_in_a_sentence(statement, tmp_path):
    campaign = scored_campaign(tmp_path)
    assert any("the statement was refused" in each for each in texts(asked(statement)))
    with campaign.database.reading() as session:
        assert look_at("letters", None).status.totals["comparisons"] == 6, session


def test_the_documented_views_are_listed_with_what_their_columns_mean(tmp_path):
    scored_campaign(tmp_path)
    page = shown("sql_page")
    assert [each.label.partition(":")[0] for each in page.expander][:-1] == list(VIEWS)
    meanings = {each.value.columns[0]: each for each in page.dataframe}
    assert set(meanings) == {"column", "table"}
    wins = [each.value for each in page.dataframe if "wins" in list(each.value.get("column", ()))]
    assert list(wins[0].columns) == ["column", "meaning"]
    tables = set(page.dataframe[-1].value["table"])
    assert "comparisons" in tables
    assert not [name for name in tables if name.startswith(("v_", "search_"))]


def test_an_answer_is_a_file_that_no_spreadsheet_calculates():
    rows = [["=1+1", 2, None], ["a\x1b", Decimal("0.5"), b"x"]]
    assert sql_page.as_csv(["x", "x", "y"], rows) == 'sep=,\n"x","x (2)","y"\n"\'=1+1",2,\n"a·",0.5,"78"\n'


def test_names_of_views_come_before_those_of_tables():
    known = [{"table": "comparisons", "column": "id"}, {"table": "v_curve", "column": "round"}]
    found = sql_page.by_table(known)
    assert found["comparisons"] == ["id"]
    assert list(found) == [*VIEWS, "comparisons"]
    assert "" not in found["v_curve"]


def test_an_endless_statement_is_broken_off(tmp_path, monkeypatch):
    scored_campaign(tmp_path)
    monkeypatch.setattr(db, "PATIENCE", 0.2)
    page = asked("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")
    assert any("took longer than 0.2 s and was stopped" in each for each in texts(page))


def test_a_frame_holds_whatever_a_database_holds(monkeypatch):
    monkeypatch.setattr(frames, "LONGEST_CELL", 3)
    found = frames.table_frame(["x", "x", "y"], [[1, None, b"abc"], ["long", 2**60, {"a": 1}]])
    assert found.fillna("").to_dict("list") == {
        "x": ["1", "lon… (4 characters)"],
        "x (2)": ["", str(2**60)],
        "y": ["3 bytes", '{"a… (8 characters)'],
    }


def test_numbers_of_postgresql_are_numbers():
    given = [[Decimal("43.0000"), Decimal("0.25")], [Decimal(0), Decimal("Infinity")]]
    found = frames.table_frame(["sum", "mean"], given)
    assert found.to_dict("list") == {"sum": [43, 0], "mean": [0.25, math.inf]}


def test_numbers_stay_numbers_and_empty_columns_go():
    found = frames.as_frame([{"a_b": 1, "c": None, "d": 0.5}, {"a_b": 2, "c": None, "d": None}])
    assert list(found.columns) == ["a b", "d"]
    assert pd.api.types.is_numeric_dtype(found["a b"])
    assert pd.api.types.is_numeric_dtype(found["d"])


def test_the_command_without_streamlit_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr("winnow.tasks.plugins.extras.find_spec", lambda name: None)
    result = winnow(tmp_path, "view")
    assert result.returncode == 2
    assert "pip install 'winnow-llm[view]'" in result.stderr


def test_a_port_that_is_taken_is_a_sentence(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = winnow(tmp_path, "view", "--port", str(taken.getsockname()[1]), "--no-browser")
    assert result.returncode == 1
    assert "choose another port with --port" in result.stderr


CTRL_C = {"kill": os.killpg, "number": signal.SIGINT}
TERMINATE = {"kill": os.kill, "number": signal.SIGTERM}


@pytest.mark.parametrize("way", [CTRL_C, TERMINATE], ids=["ctrl-c", "terminate"])
def test_the_server_answers_and_ends_without_a_traceback(tmp_path, way):
    storage = f"sqlite:///{tmp_path}/winnow.db"
    with serving(storage) as (server, url):
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(url.replace("?", "_stcore/health?"), timeout=PATIENCE_S) as answer:
            assert answer.read() == b"ok"
        way["kill"](server.pid, way["number"])
        said, complaints = server.communicate(timeout=PATIENCE_S)
    told = f"there is no database {storage}; the page stays empty until a campaign is stored there\n"
    assert (server.returncode, complaints) == (0, told)
    assert set(said.split()) <= {"Stopping..."}
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url, timeout=PATIENCE_S)


def test_a_killed_command_leaves_no_server_behind(tmp_path):
    with serving(f"sqlite:///{tmp_path}/winnow.db") as (command, _):
        (server,) = psutil.Process(command.pid).children()
        command.kill()
        command.communicate()
        psutil.wait_procs([server], timeout=PATIENCE_S)
        assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE


UNSCORED = "no score: no_answer · text of letters-1-2"


def test_the_matrix_shows_each_score_with_its_output_and_finds_examples_by_how_candidates_did(tmp_path):
    scored_campaign(tmp_path)
    page = shown("matrix_page")
    assert list(table(page).columns) == ["example", "target", "b", "a", "c"]
    assert table(page).to_numpy()[:, [0, 2, 3, 4]].tolist() == [
        ["e0", "1 · text of letters-0-2", "0 · text of letters-0-0", UNSCORED],
        ["e1", "0.500 · text of letters-1-0", "1 · text of letters-0-1", ""],
        ["e2", "1 · text of letters-1-1", "", ""],
    ]
    (outputs,) = [each for each in page.toggle if each.label == "Outputs in the cells"]
    page = outputs.set_value(False).run()
    assert table(page).to_numpy()[0, 2:].tolist() == ["1", "0", "no score: no_answer"]
    assert {each.label for each in page.toggle} == {"Outputs in the cells", "Whole texts"}
    found = {}
    for pattern in ("disagreements", "all wrong", "all right", "unscored"):
        page = page.main.selectbox[0].select(pattern).run()
        found[pattern] = list(table(page)["example"]) if page.dataframe else texts(page)[-1]
    assert found == {
        "disagreements": ["e0", "e1"],
        "all wrong": "No example matches.",
        "all right": ["e1", "e2"],
        "unscored": ["e0"],
    }


def test_the_matrix_finds_examples_by_reason_tag_and_regular_expression(tmp_path):
    scored_campaign(tmp_path)
    change(tmp_path, "UPDATE campaigns SET execution = json_set(execution, '$.tags', json('[\"input\"]'))")
    page = shown("matrix_page")
    _, reason, tag = page.main.selectbox
    assert tag.options == [f"input: {value}" for value in range(5)]
    assert list(table(reason.select("no_answer").run())["example"]) == ["e0"]
    page.main.selectbox[1].set_value(None).run()
    assert list(table(page.main.selectbox[2].select_index(1).run())["example"]) == ["e1"]
    page.main.selectbox[2].set_value(None).run()
    page.main.checkbox[0].check().run()
    assert list(table(page.main.text_input[0].set_value(r"^e[12]\n").run())["example"]) == ["e1", "e2"]
    page.main.text_input[0].set_value("(").run()
    assert any("'(' is not a regular expression" in each for each in texts(page))


def test_two_candidates_of_the_matrix_are_compared_on_the_examples_of_both(tmp_path):
    scored_campaign(tmp_path)
    page = shown("matrix_page")
    page.main.multiselect[0].set_value(["a", "b"]).run()
    assert [each for each in texts(page) if each.startswith("On 2 examples with scores of both")] == [
        "On 2 examples with scores of both: a is higher on 1, b on 1, and they are equal on 0;"
        " mean difference -0.250."
    ]
    page.main.multiselect[0].set_value(["a", "c"]).run()
    assert "No example has scores of both candidates." in texts(page)


def test_an_address_that_names_an_example_and_a_candidate_opens_their_texts(tmp_path):
    scored_campaign(tmp_path)
    code = "from winnow.flows.reports.dashboard.screens import matrix_page; matrix_page.show()"
    app = AppTest.from_string(code, default_timeout=PATIENCE_S)
    for name, value in {"campaign": "letters", "example": "e1", "candidate": "b"}.items():
        app.query_params[name] = value
    assert "b on example e1" in texts(app.run())
    assert list(table(app)["example"]) == ["e1", "e2"]


@pytest.mark.parametrize("stored", [certified_campaign, routed_campaign])
def test_certified_and_routed_candidates_have_a_matrix_too(stored, tmp_path):
    stored(tmp_path)
    page = shown("matrix_page")
    assert not page.exception
    assert len(table(page).columns) > 3


def test_duels_have_no_matrix(tmp_path):
    duelled_campaign(tmp_path)
    assert texts(shown("matrix_page"))[-1].startswith("Duels do not score single candidates")


def test_what_was_said_for_a_metric_is_shown_under_its_name():
    row = {"candidate": "a", "candidate_b": None}
    said = {"metric": None, "judge": "j", "presentation_order": "original", "attempt": 0, "verdict": 0.5}
    lines = [comparison_view.judgment_line(row, said | {"metric": name}) for name in (None, "tone")]
    assert lines == ["j: score 0.5", "metric tone, j: score 0.5"]
