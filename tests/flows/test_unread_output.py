"""A run does not end because nobody reads what it tells on the way."""

import sys

import pytest

from winnow.flows.reports.output import tell


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
