# ruff: noqa: E501 -- an error is a line
"""What an error says is one printable line, whoever wrote what it quotes."""

import errno
import os
import pickle
import re
import sys

import httpx
import pytest
from spec_files import load_spec

from winnow.flows.exit_codes import ERROR, USAGE, sentences_for_errors
from winnow.storage.errors import CampaignNotFound
from winnow.tasks.engines.errors import EngineDied
from winnow.tasks.errors import DatasetError, SpecMistakes, WinnowError
from winnow.tasks.text.printable import LONGEST

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


def test_a_long_text_that_is_quoted_leaves_place_and_remedy_to_be_read():
    said = str(DatasetError(f"column {'x' * 9_000!r} is not there; correct dataset.fields", "dataset"))
    assert len(said) == LONGEST
    assert said.startswith("dataset: column 'xxx")
    assert " … xxx" in said
    assert said.endswith("xxx' is not there; correct dataset.fields")


def test_of_very_many_mistakes_some_are_told_and_all_are_counted(tmp_path):
    path = tmp_path / "many.yaml"
    path.write_text("".join(f"key{i}: 1\n" for i in range(1_000)))
    with pytest.raises(SpecMistakes) as caught:
        load_spec(path)
    lines = str(caught.value).split("\n")
    assert len(lines) == 51
    assert re.fullmatch(rf"{re.escape(str(path))}: and \d+ mistakes more", lines[-1])


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


def test_a_lack_of_memory_is_said_with_its_remedy(capsys):
    with pytest.raises(SystemExit) as ended, sentences_for_errors():
        raise MemoryError
    assert ended.value.code == ERROR
    assert "out of memory (stored results are safe)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (".env", "winnow: .env in the working folder: Permission denied; run it in a folder"),
        ("/etc/\x1b[2J", "winnow: /etc/·[2J: Permission denied; run it in a folder"),
    ],
)
def test_a_folder_that_may_not_be_used_is_named(capsys, path, said):
    with pytest.raises(SystemExit) as ended, sentences_for_errors():
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    assert ended.value.code == ERROR
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize(
    ("proxy", "remedy"),
    [
        (
            "socks5://127.0.0.1:9",
            "SOCKS proxies are not supported; pip install socksio, or unset it, or set it to a proxy that "
            "begins with http://",
        ),
        ("nonsense://x", "such proxies are not supported; unset it, or set it to a proxy that begins with"),
    ],
)
def test_a_proxy_that_no_client_can_use_is_named(monkeypatch, capsys, proxy, remedy):
    """The reproduction: $ALL_PROXY of many desktops, and a traceback of Prefect's client."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.setenv("NO_PROXY", "localhost")
    with pytest.raises(SystemExit) as ended, sentences_for_errors():
        httpx.Client()
    assert ended.value.code == ERROR
    said = capsys.readouterr().err
    assert said.startswith(f"winnow: a proxy of the environment ($ALL_PROXY) cannot be used: {remedy}")
