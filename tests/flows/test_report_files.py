"""Files of a report: pictures with and without a browser, and pages written whole or not at all."""

import re
import struct
import zlib
from pathlib import Path

import pyarrow
import pytest
from campaigns import winnow
from choreographer.browsers.chromium import Chromium
from plotly.graph_objects import Figure
from pyarrow import parquet
from report_campaigns import figures_of, scored_campaign

from winnow.flows.reports.html.browser_output import titled


@pytest.fixture
def scored(tmp_path):
    return scored_campaign(tmp_path)


def test_without_chrome_one_sentence_says_what_to_install_and_nothing_is_written(
    scored, tmp_path, monkeypatch
):
    monkeypatch.setattr(Chromium, "find_browser", lambda **_: None)
    result = winnow(tmp_path, "report", "letters", "--png", "figures", "--html", "page.html")
    assert result.returncode == 1
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("winnow: --png needs Chrome or Chromium")
    assert "apt-get install chromium" in line
    assert not (tmp_path / "figures").exists()
    assert not (tmp_path / "page.html").exists()


def test_a_picture_has_the_headline_above_its_figure_as_text():
    figure = Figure(layout={"height": 380, "margin": {"t": 36}})
    found = titled(figure, "letters: Use <b>: mean 0.9. " + "word " * 40, "Lead of <b>")
    assert found.layout.title.text.startswith("letters: Use &lt;b&gt;: mean 0.9. word")
    assert found.layout.title.text.endswith(">Lead of &lt;b&gt;</span>")
    n = found.layout.title.text.count("<br>") + 1
    assert n == 4
    assert (found.layout.height, found.layout.margin.t) == (380 + 20 * n + 12, 36 + 20 * n + 12)


def test_pictures_are_the_pages_figures_wherever_there_is_a_browser(scored, tmp_path):
    result = winnow(tmp_path, "report", "letters", "--png", "figures")
    figures = figures_of(scored)
    if Chromium.find_browser(skip_local=False) is None:
        assert result.returncode == 1
        assert "apt-get install chromium" in result.stderr
        return
    assert result.returncode == 0, result.stderr
    heads = [path.read_bytes()[:24] for path in sorted((tmp_path / "figures").iterdir())]
    names = [path.name for path in sorted((tmp_path / "figures").iterdir())]
    assert names == [f"{number:02}-{name}.png" for number, name in enumerate(figures, 1)]
    assert {head[:8] for head in heads} == {b"\x89PNG\r\n\x1a\n"}
    sizes = [struct.unpack(">II", head[16:24]) for head in heads]
    assert {width for width, _ in sizes} == {2 * 952}
    heights = [figure.layout.height for figure in figures.values()]
    (title,) = {height - 2 * plain for (_, height), plain in zip(sizes, heights, strict=True)}
    assert title > 0


def test_a_page_is_written_whole_or_the_one_before_it_stays(scored, tmp_path, monkeypatch):
    before = "<!doctype html>\nbefore"
    (tmp_path / "page.html").write_text(before)

    def full(*_):
        raise OSError(28, "No space left on device", "page.html")

    monkeypatch.setattr(Path, "replace", full)
    result = winnow(tmp_path, "report", "letters", "--html", "page.html")
    assert result.returncode == 1
    assert "page.html: No space left on device" in result.stderr
    assert (tmp_path / "page.html").read_text() == before
    assert not list(tmp_path.glob(".page.html.*"))


@pytest.mark.parametrize(
    ("place", "told"), [("no/page.html", "there is no folder no"), (".", "is a folder; name a file")]
)
def test_a_place_that_cannot_hold_a_page_is_named(scored, tmp_path, place, told):
    result = winnow(tmp_path, "report", "letters", "--html", place)
    assert result.returncode == 1
    assert told in result.stderr


def test_without_options_the_report_is_text(scored, tmp_path):
    assert "Leaderboard" in winnow(tmp_path, "report", "letters").stdout


def test_the_page_is_printed_whole_with_its_figures(scored, tmp_path):
    result = winnow(tmp_path, "report", "letters", "--pdf", "page.pdf")
    assert result.stdout == "wrote page.pdf\n", result.stderr
    made = (tmp_path / "page.pdf").read_bytes()
    assert made.startswith(b"%PDF-")
    streams = [found[1] for found in re.finditer(rb"stream\r?\n(.*?)endstream", made, re.DOTALL)]
    drawn = b"".join(map(unpacked, streams))
    assert drawn.count(b" l\n") > 20  # lines, of which only figures have many


def unpacked(stream):
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return b""


def test_a_browser_that_cannot_print_is_told_in_a_sentence(scored, tmp_path, monkeypatch):
    monkeypatch.setenv("BROWSER_PATH", "/bin/false")
    result = winnow(tmp_path, "report", "letters", "--pdf", "page.pdf")
    assert result.returncode == 1
    assert "--pdf: the browser could not print the page (it ended with 1)" in result.stderr
    assert not (tmp_path / "page.pdf").exists()


def test_without_a_browser_a_print_says_what_to_install(scored, tmp_path, monkeypatch):
    monkeypatch.setattr(Chromium, "find_browser", lambda **_: None)
    result = winnow(tmp_path, "report", "letters", "--pdf", "page.pdf")
    assert result.returncode == 1
    assert "--pdf needs Chrome or Chromium" in result.stderr


ROWS = [{"text": "my parcel", "label": "shipping"}, {"text": "a crash", "label": "bug"}]
OWN = {
    "tickets.csv": b"text,label\nmy parcel,shipping\n",
    "one-column.csv": b"text\nmy parcel\n",
    "with-bom.csv": b"\xef\xbb\xbftext,label\nmy parcel,shipping\n",
    "tickets.jsonl": b'{"text": "my parcel", "label": "shipping"}\n',
    "tickets.json": b'[\n  {"text": "my parcel", "label": "shipping"}\n]\n',
    "deep.jsonl": b'{"a": ' + b"[" * 100_000,
    "campaign.yaml": b"name: tickets\nmodels: []\n",
    "commented.yaml": b"# a campaign, with a comma\nname: tickets\n",
    "judge.py": b"def judge(output):\n    return 1.0\n",
    "prompt.txt": b"Label: {{ text }}",
    "latin.txt": b"\xe4\xf6 text",
}


@pytest.mark.parametrize("name", [*OWN, "tickets.parquet"])
def test_no_output_replaces_a_file_of_the_user(scored, tmp_path, name):
    own = tmp_path / name
    if name == "tickets.parquet":
        parquet.write_table(pyarrow.Table.from_pylist(ROWS), own)
    else:
        own.write_bytes(OWN[name])
    before = own.read_bytes()
    commands = [("query", "letters", "comparisons", "--output", name, "--format", each) for each in FORMATS]
    commands += [("query", "--sql", "SELECT 1 WHERE 0", "--output", name, "--format", "csv")]
    commands += [("report", "letters", option, name) for option in ("--html", "--model-card")]
    for command in commands:
        ran = winnow(tmp_path, *command)
        assert ran.returncode == 1, command
        assert ran.stderr == (
            f"winnow: {name} exists, and contains something else than this command writes; name another "
            "file, or remove it first\n"
        )
        assert own.read_bytes() == before, command
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(f".{name}")]


FORMATS = ("table", "csv", "json", "jsonl", "parquet")


def test_the_same_command_again_replaces_its_file_and_any_fills_an_empty_one(scored, tmp_path):
    commands = [("query", "letters", "comparisons", "--format", each, "--output") for each in FORMATS]
    commands += [("report", "letters", "--html"), ("report", "letters", "--model-card")]
    for number, command in enumerate(commands):
        (tmp_path / f"out-{number}").touch()
        for more in ((), ("--limit", "1")) if "query" in command else ((), ()):
            ran = winnow(tmp_path, *command, f"out-{number}", *more)
            assert ran.returncode == 0, (command, ran.stderr)
    assert (tmp_path / "out-1").read_text().count("\n") == 2
