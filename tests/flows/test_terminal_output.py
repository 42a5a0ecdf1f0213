"""What others wrote cannot command a terminal; files and pipes get it byte for byte."""

import csv
import io
import json
import os
import pty

import pytest

from winnow.flows.reports.output import escaped, print_json
from winnow.flows.reports.rows.writer import print_rows

HOSTILE = "a\x1b[2J\x9b31m\u202eb\u2066c\x7fd\re\U000e0041 é日"
ROWS = [{"n": 1, "text": HOSTILE}]


def on_terminal(monkeypatch, what):
    """What a terminal is sent."""
    reader, writer = pty.openpty()
    with os.fdopen(writer, "w", encoding="utf-8", newline="") as terminal:
        assert terminal.isatty()
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", terminal)
            what()
            terminal.write("END")
            terminal.flush()
            said = b""
            while not said.endswith(b"END"):
                said += os.read(reader, 65536)
    os.close(reader)
    return said.decode().removesuffix("END").replace("\r\n", "\n")


@pytest.mark.parametrize("format_", ["csv", "json", "jsonl", "table"])
def test_a_terminal_is_sent_nothing_that_it_would_obey(monkeypatch, format_):
    said = on_terminal(monkeypatch, lambda: print_rows(ROWS, format_))
    for own in ("\x1b[1m", "\x1b[0m"):  # the table's own heading is bold
        said = said.replace(own, "") if format_ == "table" else said
    assert [character for character in said if not character.isprintable() and character != "\n"] == []
    assert "é日" in said
    if format_ == "json":
        assert json.loads(said) == ROWS
    if format_ == "jsonl":
        assert [json.loads(line) for line in said.splitlines()] == ROWS


def test_a_value_in_json_is_the_same_on_a_terminal(monkeypatch):
    said = on_terminal(monkeypatch, lambda: print_json({"text": HOSTILE}))
    assert json.loads(said) == {"text": HOSTILE}
    assert escaped(said) == said


def test_a_set_is_a_list_in_json(capsys):
    print_json({"known": frozenset("ba")})
    assert json.loads(capsys.readouterr().out) == {"known": ["a", "b"]}


@pytest.mark.parametrize("format_", ["csv", "json", "jsonl"])
def test_files_and_pipes_get_every_character(capsys, tmp_path, format_):
    print_rows(ROWS, format_)
    piped = capsys.readouterr().out
    print_rows(ROWS, format_, tmp_path / "x")
    assert (tmp_path / "x").read_bytes().decode() == piped
    assert "\u202e" in piped
    if format_ == "csv":
        (row,) = csv.DictReader(io.StringIO(piped, newline=""))
        assert row["text"] == HOSTILE
    elif format_ == "jsonl":
        assert json.loads(piped) == ROWS[0]
