"""Files of a report: pictures with and without a browser, and pages written whole or not at all."""

import re
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from choreographer.browsers.chromium import Chromium
from report_campaigns import crowded_campaign, figures_of, scored_campaign
from stored_campaigns import NOW
from test_command_line import winnow

from winnow.flows.reports.html.answer_slide import LETTER_WIDTH, WIDTH, WORDS, AnswerSlide
from winnow.flows.reports.html.sections.sections import sections_of
from winnow.flows.reports.html.static_images import as_slide
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.answer.status_lines import status_lines
from winnow.tasks.queries.status import campaign_status


@pytest.fixture
def scored(tmp_path):
    return scored_campaign(tmp_path)


def test_without_chrome_one_sentence_says_what_to_install_and_nothing_is_written(
    scored, tmp_path, monkeypatch
):
    monkeypatch.setattr(Chromium, "find_browser", lambda **_: None)
    result = winnow(tmp_path, "report", "letters", "--png", "slides", "--html", "page.html")
    assert result.returncode == 1
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("winnow: --png needs Chrome or Chromium")
    assert "apt-get install chromium" in line
    assert not (tmp_path / "slides").exists()
    assert not (tmp_path / "page.html").exists()


def test_pictures_are_of_a_slides_size_wherever_there_is_a_browser(scored, tmp_path):
    result = winnow(tmp_path, "report", "letters", "--png", "slides")
    names = [f"{n:02}-{name}.png" for n, name in enumerate(["answer", *figures_of(scored)])]
    if Chromium.find_browser(skip_local=False) is None:
        assert result.returncode == 1
        assert "apt-get install chromium" in result.stderr
        return
    assert result.returncode == 0, result.stderr
    assert sorted(path.name for path in (tmp_path / "slides").iterdir()) == names
    for name in names:
        head = (tmp_path / "slides" / name).read_bytes()[:24]
        assert head[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", head[16:24]) == (3_200, 1_800)


def test_a_slide_has_the_title_of_its_section_and_the_figure_stays_as_it_was(scored):
    with scored.database.reading() as session:
        section = sections_of(session, scored.record)[0]
    slide = as_slide(section, "letters, n = 5")
    assert (slide.layout.title.text, slide.layout.width, slide.layout.height) == ("Estimates", 1_600, 900)
    assert slide.layout.title.subtitle.text == "letters, n = 5"
    assert slide.data[0].x == section.figure.data[0].x
    assert section.figure.layout.title.text is None


@pytest.mark.parametrize("copies", [1, 5])
def test_the_first_slide_says_what_the_block_says_and_ends_within_the_picture(tmp_path, copies):
    campaign = crowded_campaign(tmp_path, 3)
    with campaign.database.reading() as session:
        status = campaign_status(session, campaign.record, in_full=True)
    slide = AnswerSlide.of(status, NOW)
    assert slide.caption == "letters, 2026-01-02, n = 60 examples, 83 comparisons"
    figure = replace(slide, lines=slide.lines * copies).figure()
    told = [each.text.replace("<br>", " ") for each in figure.layout.annotations]
    block = status_lines(status.answer, status.totals) * copies
    assert told == [text for line in block for text in line]
    last = figure.layout.annotations[-1]
    bottom = (1.0 - last.y) * 900 + (last.text.count("<br>") + 1) * last.font.size * 1.35
    assert last.font.size >= 11
    assert copies > 1 or bottom <= 900


def test_names_that_are_longer_than_a_line_end_within_the_first_slide(tmp_path):
    with crowded_campaign(tmp_path, 3).database.reading() as session:
        status = campaign_status(session, campaign_records.get_campaign(session, "letters"), in_full=True)
    slide = replace(AnswerSlide.of(status, NOW), lines=[("winner", f"{'Long-' * 40}/plain"), ("sure", "yes")])
    name, size = slide.figure().layout.annotations[1].text, slide.figure().layout.annotations[1].font.size
    assert name.replace("<br>", "") == f"{'Long-' * 40}/plain"
    assert max(map(len, name.split("<br>"))) * size * LETTER_WIDTH <= WIDTH - WORDS


def test_a_page_is_written_whole_or_the_one_before_it_stays(scored, tmp_path, monkeypatch):
    (tmp_path / "page.html").write_text("before")

    def full(*_):
        raise OSError(28, "No space left on device", "page.html")

    monkeypatch.setattr(Path, "replace", full)
    result = winnow(tmp_path, "report", "letters", "--html", "page.html")
    assert result.returncode == 1
    assert "page.html: No space left on device" in result.stderr
    assert (tmp_path / "page.html").read_text() == "before"
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
