"""A run does not end because nobody reads what it tells on the way."""

import gc
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
