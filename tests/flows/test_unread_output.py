"""A run does not end because nobody reads what it tells on the way."""

import gc
import json
import os
import subprocess
import sys

import pytest

from winnow.flows.main import leave_garbage, open_standard_streams
from winnow.flows.reports.output import tell

WITHOUT_STREAMS = """
import os, sys
from pathlib import Path
from winnow.flows.main import open_standard_streams
open_standard_streams()
numbers = [stream.fileno() for stream in (sys.stdin, sys.stdout, sys.stderr)]
print("said", sys.stdin.read(), sys.stdout.isatty())
kept = [os.get_inheritable(number) for number in numbers]
nowhere = {os.fstat(number).st_rdev for number in numbers} == {os.stat(os.devnull).st_rdev}
Path(sys.argv[1]).write_text(f"{numbers} {kept} {nowhere}")
"""


class Unwritable:
    """Standard error that takes nothing."""

    def __init__(self, error):
        self._error = error

    def write(self, text):
        raise self._error

    flush = write


@pytest.mark.parametrize(
    "stream",
    [
        Unwritable(BrokenPipeError(32, "Broken pipe")),
        Unwritable(OSError(28, "No space left on device")),
        Unwritable(ValueError("I/O operation on closed file.")),
        None,
    ],
    ids=["nobody reads it", "the disk is full", "it is closed", "there is none"],
)
def test_what_cannot_be_told_is_left_out(monkeypatch, capsys, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    tell("round 1: all is well")
    assert capsys.readouterr().out == ""


def test_what_can_be_told_is_a_line_of_standard_error(capsys):
    tell("round 1: all is well")
    assert capsys.readouterr() == ("", "round 1: all is well\n")


def test_who_is_begun_without_standard_streams_has_some_that_lead_nowhere(tmp_path):
    said = tmp_path / "said"
    command = ["sh", "-c", '"$@" <&- >&- 2>&-', "sh", sys.executable, "-c", WITHOUT_STREAMS, str(said)]
    assert subprocess.run(command, env=os.environ).returncode == 0
    assert said.read_text() == "[0, 1, 2] [True, True, True] True"


def test_standard_streams_that_are_there_stay(capsys):
    before = (sys.stdin, sys.stdout, sys.stderr)
    open_standard_streams()
    assert (sys.stdin, sys.stdout, sys.stderr) == before


def test_garbage_is_left_but_by_libraries_that_would_print_it(monkeypatch):
    froze = []
    monkeypatch.setattr(gc, "freeze", lambda: froze.append(True))
    monkeypatch.setitem(sys.modules, "torch", None)
    leave_garbage()
    assert not froze
    monkeypatch.delitem(sys.modules, "torch")
    leave_garbage()
    assert froze


TEXT = {"text": 'é 日本 🚀 \\ "q"'}


def printed(encoding, what, tmp_path):
    """Standard output and error of a program that prints with this encoding, as the command does."""
    program = f"from winnow.flows.main import escape_unencodable\nescape_unencodable()\n{what}"
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    return done.stdout, done.stderr.decode()


@pytest.mark.parametrize("encoding", ["ascii", "iso8859-1", "cp1252"])
@pytest.mark.parametrize("format_", ["json", "jsonl", "csv", "table"])
def test_characters_that_standard_output_lacks_are_escaped_and_that_is_said_once(encoding, format_, tmp_path):
    what = f"from winnow.flows.reports.rows.writer import print_rows\nprint_rows([{TEXT!r}] * 3, {format_!r})"
    out, err = printed(encoding, what, tmp_path)
    said = out.decode(encoding)
    assert said.count("\\u65e5\\u672c") == 3
    assert ("é" in said) == (encoding != "ascii")
    if format_ == "json":
        assert json.loads(said) == [TEXT] * 3
    if format_ == "jsonl":
        assert [json.loads(line) for line in said.splitlines()] == [TEXT] * 3
    assert err.count("standard output is ") == 1
    assert f"standard output is {encoding}, so other characters are written as \\uXXXX;" in err


def test_what_the_user_chose_for_such_characters_stays(tmp_path):
    out, err = printed("ascii:replace", "print('日')", tmp_path)
    assert (out, err) == (b"?\n", "")


def test_a_standard_output_of_utf_8_stays_as_it_is(tmp_path):
    out, err = printed("utf-8", "import sys\nprint(sys.stdout.errors, '日')", tmp_path)
    assert (out.decode(), err) == ("strict 日\n", "")
