# ruff: noqa: E501 -- an error is a line
"""What an error says is one printable line, whoever wrote what it quotes."""

import pickle

import pytest

from flows.exits import ERROR, USAGE, sentences_for_errors
from storage.errors import CampaignNotFound
from tasks.engines.errors import EngineDied
from tasks.errors import DatasetError, SpecMistakes, WinnowError

CLEAR = "\x1b[2J"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (WinnowError(f"the file '{CLEAR}' is gone"), "the file '·[2J' is gone"),
        (WinnowError("not Parquet (first\n  second\r\nthird); write it again"), "not Parquet (first second third); write it again"),
        (DatasetError("one\u2028two \u202e", "dataset\n.path"), "dataset .path: one two ·"),
        (SpecMistakes(f"a: is missing\nb: {CLEAR}"), "a: is missing\nb: ·[2J"),
        (EngineDied("m", f"ended; the end of its log:\nTraceback {CLEAR}"), "model 'm': ended; the end of its log:\nTraceback ·[2J"),
    ],
)  # fmt: skip
def test_what_is_quoted_moves_no_cursor_and_adds_no_line(error, said):
    assert str(error) == said
    assert str(pickle.loads(pickle.dumps(error))) == said


@pytest.mark.parametrize(
    ("error", "code"),
    [(DatasetError(CLEAR), USAGE), (WinnowError(CLEAR), ERROR), (CampaignNotFound(CLEAR, []), ERROR)],
)
def test_what_the_command_prints_of_an_error_is_printable(capsys, error, code):
    with pytest.raises(SystemExit) as ended, sentences_for_errors():
        raise error
    assert ended.value.code == code
    said = capsys.readouterr().err
    assert said.startswith("winnow: ")
    assert said.removesuffix("\n").isprintable()
