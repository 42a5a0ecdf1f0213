"""Everything a model may write, through run, query, report, export and the page, on both databases."""

import csv
import json
import sys

import pandas as pd
import pytest
from both_databases import BOTH
from campaign_processes import STORAGE
from campaigns import winnow
from duel_campaigns import model, write_duels
from hostile_texts import HOSTILE_TEXTS
from report_campaigns import Elements
from scripted_engines import ScriptedEngine
from streamlit.testing.v1 import AppTest
from waiting import PATIENCE_S

from winnow.flows.reports.dashboard import STORAGE_VARIABLE
from winnow.flows.reports.html.figures.labels import readable
from winnow.storage.text import storable
from winnow.tasks.engines.known_providers import PROVIDERS

MEGABYTE = "<script>alert(1)</script>" * 40_000
TEXTS = [*HOSTILE_TEXTS[:-1], "nul \0 and half a pair \ud83d", MEGABYTE]
KEPT = [storable(text) for text in TEXTS]
"""What is left of them: of a NUL and of half a character a sign that there was one."""
KEYS = [f"{number} <b>'); DROP TABLE judgments; --\x1b[31m\u202e%s" for number in range(len(TEXTS))]


def start_sayer(model, settings):
    """Answers prompt number i with the i-th text."""
    return ScriptedEngine(lambda prompt: TEXTS[int(prompt.rpartition(" ")[2])])


def start_echo(model, settings):
    """Answers with the number it is asked."""
    return ScriptedEngine(lambda prompt: prompt.rpartition(" ")[2])


@pytest.fixture(scope="module", params=BOTH)
def folder(request, plain_runs, tmp_path_factory):
    """A campaign whose answers are all of TEXTS, whose examples are called as no one should be."""
    folder = tmp_path_factory.mktemp("hostile")
    storage = None
    if request.param == "postgresql":
        storage = request.getfixturevalue("postgresql").new_database()
    write_duels(
        folder,
        objective="best-mean",
        storage=storage,
        models=[model("sayer", "sayer", "model-1"), model("echo", "echo", "model-2")],
        generate_configs=None,
        prompts=[{"name": "bare", "template": "<script>harm()</script> {{ input }}"}],
        judge={"type": "contains"},
        selector={"name": "row-mean"},
        batch_size=len(TEXTS),
        stopping={"budget": 2 * len(TEXTS)},
    )
    with (folder / "data.jsonl").open("w") as file:
        for number, key in enumerate(KEYS):
            file.write(json.dumps({"id": key, "input": f"{number}", "target": f"{number}"}) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("sayer", "echo"):
            patch.setitem(PROVIDERS, name, f"test_hostile_content:start_{name}")
        result = winnow(folder, "run", "campaign.yaml")
    assert result.returncode in (0, 3), result.stderr
    return folder


@pytest.fixture
def ask(folder):
    """Run a command on the campaign's database; what it prints."""
    storage = (folder / STORAGE).read_text() if (folder / STORAGE).exists() else "sqlite:///winnow.db"

    def run(*arguments):
        result = winnow(folder, *arguments, "--storage", storage)
        assert (result.returncode, result.stderr) == (0, "")
        return result.stdout

    return run


def said(rows):
    """The answers of the candidate that says TEXTS, by example."""
    found = {row["example"]: row["text"] for row in rows if row["candidate"] == "sayer/bare"}
    return [found[key] for key in KEYS]


def from_csv(path):
    before = csv.field_size_limit(10_000_000)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    finally:
        csv.field_size_limit(before)


READERS = {
    "csv": from_csv,
    "json": lambda path: json.loads(path.read_text("utf-8")),
    "jsonl": lambda path: [json.loads(line) for line in path.read_text("utf-8").split("\n") if line],
    "parquet": lambda path: pd.read_parquet(path).to_dict("records"),
}


@pytest.mark.parametrize("format_", READERS)
def test_every_answer_is_read_back_from_a_query_as_it_was(ask, folder, format_):
    path = folder / f"asked.{format_}"
    ask("query", "survivor", "comparisons", "--format", format_, "--output", str(path))
    assert said(READERS[format_](path)) == KEPT


@pytest.mark.parametrize("format_", ["csv", "jsonl", "parquet"])
def test_every_answer_is_read_back_from_an_export_as_it_was(ask, folder, format_):
    ask("export", "survivor", f"out-{format_}", "--format", format_)
    assert said(READERS[format_](folder / f"out-{format_}" / f"comparisons.{format_}")) == KEPT
    (log,) = (folder / f"out-{format_}" / "inspect").glob("*sayer*")
    samples = {each["id"]: each for each in json.loads(log.read_text("utf-8"))["samples"]}
    assert [samples[key]["output"]["completion"] for key in KEYS] == KEPT


def test_what_is_printed_for_people_moves_no_cursor_and_turns_no_line(ask):
    for arguments in (
        ["query", "survivor", "comparisons"],
        ["report", "survivor"],
        ["status", "survivor"],
        ["query", "--sql", "SELECT text FROM generations"],
    ):
        printed = ask(*arguments)
        assert [
            character for character in set(printed) if not (character.isprintable() or character == "\n")
        ] == []
    assert "DROP TABLE" in ask("query", "survivor", "comparisons")


def test_a_report_shows_hostile_answers_and_has_no_element_of_theirs(ask, folder):
    ask("report", "survivor", "--html", str(folder / "page.html"))
    page = Elements((folder / "page.html").read_text("utf-8"))
    assert "<script>harm()</script>" in page.text
    assert "img" not in {tag for tag, _ in page.tags}
    assert not [script for script in page.scripts if "harm()" in script or "alert(1)" in script]


@pytest.mark.usefixtures("streamlit_once")
def test_the_page_shows_each_answer_as_text(ask, folder, monkeypatch):
    storage = (
        (folder / STORAGE).read_text() if (folder / STORAGE).exists() else f"sqlite:///{folder}/winnow.db"
    )
    monkeypatch.setenv(STORAGE_VARIABLE, storage)
    # A script takes the main module's place, and processes of later tests would begin by running it.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    page = AppTest.from_string(
        "from winnow.flows.reports.dashboard.screens import comparisons_page; comparisons_page.show()",
        default_timeout=PATIENCE_S,
    ).run()
    for word, number in {
        "onerror": 0,
        "TABLE comparisons": 1,
        "%(x)s": 2,
        "]0;title": 3,
        "to left": 6,
    }.items():
        page.main.text_input[0].set_value(word).run()
        assert not page.exception
        assert readable(KEPT[number]) in {each.value for each in page.code}
        marked = [*page.markdown, *page.caption, *page.title, *page.header, *page.get("html")]
        assert not [each.value for each in marked if "harm()" in each.value or "alert(1)" in each.value]


def test_the_database_is_sound_afterwards(ask):
    ask("db", "check")
    counted = json.loads(ask("query", "--sql", "SELECT count(*) AS n FROM comparisons", "--json"))
    assert counted == [{"n": 2 * len(TEXTS)}]
