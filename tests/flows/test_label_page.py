"""The page on which people judge: it asks, stores and goes back, and writes nothing unless it was allowed."""

import re
import sys
from hashlib import sha256
from types import SimpleNamespace

import pytest
import scripted_engines
from campaign_processes import rows
from campaigns import winnow
from people_campaigns import judged_to_the_end, opinion, tasks, write_people
from report_campaigns import change
from streamlit.testing.v1 import AppTest
from waiting import PATIENCE_S

from winnow.flows.cli.annotating import question_lines
from winnow.flows.reports.dashboard import ALLOW_LABELS_VARIABLE, STORAGE_VARIABLE, widgets
from winnow.storage.records.record_types import ShownTask

pytestmark = pytest.mark.usefixtures("plain_runs", "streamlit_once")

ANNOTATIONS = "SELECT verdict, reason, annotator, source FROM annotations"


@pytest.fixture(params=["best-duel", "best-mean"])
def folder(request, tmp_path, monkeypatch):
    """A campaign that waits, and the environment of a page that may be written on."""
    with pytest.MonkeyPatch.context() as patch:
        scripted_engines.provide_all(patch)
        write_people(tmp_path, request.param)
        assert winnow(tmp_path, "run", "campaign.yaml").returncode == 3
    monkeypatch.setenv(STORAGE_VARIABLE, f"sqlite:///{tmp_path}/winnow.db")
    monkeypatch.setenv(ALLOW_LABELS_VARIABLE, "1")
    # A script takes the main module's place, and processes of later tests would begin by running it.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    return tmp_path


def opened(name="Ann"):
    code = "from winnow.flows.reports.dashboard.screens import label_page; label_page.show()"
    page = AppTest.from_string(code, default_timeout=PATIENCE_S).run()
    return page.text_input[0].set_value(name).run()


def said(page):
    assert not page.exception
    return [each.value for each in page.text]


def press(page, label):
    (button,) = [each for each in page.button if each.label == label]
    return button.click().run()


def test_a_person_judges_goes_back_skips_and_comes_to_the_end(folder):
    wanted = [row for row in tasks(folder) if row["state"] == "wanted"]
    of_pairs = "first" in wanted[0]
    page = opened()
    assert page.title[0].value == f"{len(wanted)} left to judge"
    assert not [each for each in said(page) if "plain" in each]  # of which candidate it is
    labels = ["first", "second", "tie"] if of_pairs else ["wrong", "half right", "right"]
    assert [each.label for each in page.button] == [*labels, "Back", "Skip", "Unclear"]
    page = press(page, labels[0])
    assert page.title[0].value == f"{len(wanted) - 1} left to judge"
    page = press(page, "Back")
    assert f"Ann said: {labels[0]}" in said(page)
    page = press(page, "Unclear")
    assert rows(folder, ANNOTATIONS) == [(None, "unclear", "Ann", "page")]
    page = press(page, "Skip")
    by_example = {row["example"]: opinion(row) for row in wanted}
    for _ in range(len(wanted) - 1):
        (example,) = [each for each in said(page) if each.startswith("example ")]
        page = press(page, by_example[example.removeprefix("example ")] if of_pairs else "right")
    assert any(each.startswith("No tasks are left for you") for each in said(page))
    assert "winnow resume survivor" in page.code[0].value
    assert any(each.startswith("Ann said: ") for each in said(press(page, "Back")))
    assert len(rows(folder, ANNOTATIONS)) == len(wanted)
    code = "from winnow.flows.reports.dashboard.screens import judges_page; judges_page.show()"
    (people,) = AppTest.from_string(code, default_timeout=PATIENCE_S).run().dataframe
    assert people.value[["annotator", "labels", "unclear"]].values.tolist() == [["Ann", len(wanted), 1]]


def test_an_example_without_an_id_is_shown_by_its_number(folder):
    change(folder, "UPDATE examples SET key = printf('%016x', id)")
    (example,) = [each for each in said(opened()) if each.startswith("example ")]
    assert re.fullmatch(r"example #\d+", example)
    shown = ShownTask(
        example="b1946ac92492d234", example_number=6, question="?", targets=(), texts=("output",)
    )
    unclear = SimpleNamespace(name="unclear")
    question = SimpleNamespace(
        shown=shown,
        text="Is it right?",
        left=3,
        titles=["Output"],
        said=None,
        said_by=None,
        choices=[unclear],
    )
    assert "[3 left] example #7" in question_lines(question)


def test_of_a_campaign_that_has_ended_nobody_is_told_to_go_on(folder, monkeypatch):
    scripted_engines.provide_all(monkeypatch)
    judged_to_the_end(folder)
    page = opened()
    assert "survivor has ended and waits for no judgments." in said(page)
    assert not page.code


def test_two_readers_are_given_different_tasks_and_the_later_answer_is_refused(folder):
    first, same = opened("Ann"), opened("Ann")
    shown = [each for each in said(first) if each.startswith("example ")]
    assert [each for each in said(same) if each.startswith("example ")] == shown
    one, *_ = [each.label for each in first.button]
    press(first, one)
    same = press(same, "Unclear")
    assert any("already exists, from Ann (page), and is kept" in each for each in said(same))
    assert len(rows(folder, ANNOTATIONS)) == 1


def test_nothing_is_written_where_nobody_allowed_it(folder, monkeypatch):
    page = opened()
    monkeypatch.delenv(ALLOW_LABELS_VARIABLE)
    before = sha256((folder / "winnow.db").read_bytes()).hexdigest()
    page = press(page, "Unclear")
    assert any(
        "this page is read-only; to write, start it with winnow view --allow-labels" in each
        for each in said(page)
    )
    fresh = opened()
    assert any("this page is read-only" in each for each in said(fresh))
    assert not fresh.button
    assert sha256((folder / "winnow.db").read_bytes()).hexdigest() == before
    assert "Label" not in navigation()
    monkeypatch.setenv(ALLOW_LABELS_VARIABLE, "1")
    assert "Label" in navigation()


def navigation():
    """The titles of the pages that the whole app offers."""
    from winnow.flows.reports.dashboard import SCRIPT

    with pytest.MonkeyPatch.context() as patch:
        import streamlit as st

        offered = []
        navigate = st.navigation
        patch.setattr(st, "navigation", lambda pages: (offered.extend(pages), navigate(pages))[1])
        assert not AppTest.from_file(str(SCRIPT), default_timeout=PATIENCE_S).run().exception
    return [each.title for each in offered]


def test_a_name_is_asked_for_first(folder):
    page = opened("")
    assert not page.button
    assert any(each.startswith("Enter your name") for each in said(page))


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("**b** *i* `c`", "<strong>b</strong> <em>i</em> <code>c</code>"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a <img src=x onerror=alert(1)>", "a &lt;img src=x onerror=alert(1)&gt;"),
        ("[l](javascript:alert(1))", "[l](javascript:alert(1))"),
        ("![i](http://evil.example/i.png)", "![i](http://evil.example/i.png)"),
        ("<http://evil.example>", "&lt;http://evil.example&gt;"),
        ("[r]\n\n[r]: http://evil.example", "<p>[r]: http://evil.example</p>"),
        ("&lt;b&gt; &#x202e;", "&amp;lt;b&amp;gt; &amp;#x202e;"),
        ("\x1b[2J\u202eabc\u2066", "·[2J·abc·"),
        ("# Title", '<p class="heading">Title</p>'),
        ("```<b>\n</code><script>\n```", "&lt;/code&gt;&lt;script&gt;"),
    ],
)
def test_markdown_of_others_can_do_nothing(written, shown):
    html = widgets.as_html(written)
    assert shown in html
    tags = {part.split(">")[0].split()[0].strip("/") for part in html.split("<")[1:]}
    assert tags <= {"div", "p", "strong", "em", "code", "pre"}
    assert "href" not in html
    assert " src=" not in html.replace("&lt;img src=x", "")
