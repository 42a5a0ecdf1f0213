"""Commands that only read find the database that was last used; whatever writes is told its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from campaigns import one_message, winnow
from stored_campaigns import new_database, store_campaign

from winnow.flows.cli.results import dashboards
from winnow.flows.reports.default_database import (
    DEFAULT_STORAGE,
    NOTE,
    last_used,
    remember,
    tell_if_unreadable,
)
from winnow.tasks.plugins.own_files import state_folder

ELSEWHERE = "sqlite:///results/other.db"


def stored(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "results").mkdir()
    database = new_database(folder / "results" / "other.db")
    store_campaign(database, "letters")
    database.close()


def note():
    (state_folder() / NOTE).parent.mkdir(parents=True, exist_ok=True)
    return state_folder() / NOTE


def test_a_note_that_lies_in_the_folder_is_not_believed(tmp_path, monkeypatch):
    stored(tmp_path, monkeypatch)
    (tmp_path / ".winnow").mkdir()
    (tmp_path / ".winnow" / "last-database").write_text(f"{ELSEWHERE}\n")
    assert last_used(DEFAULT_STORAGE) == DEFAULT_STORAGE
    monkeypatch.chdir(tmp_path / "results")
    remember("postgresql://host/results")
    monkeypatch.chdir(tmp_path)
    assert last_used(DEFAULT_STORAGE) == DEFAULT_STORAGE  # another folder's


def test_readers_say_that_they_read_the_last_one_used(tmp_path, monkeypatch):
    stored(tmp_path, monkeypatch)
    assert winnow(tmp_path, "list").returncode == 1
    remember(ELSEWHERE)
    for command in (
        ["list"],
        ["status", "letters"],
        ["query", "letters", "leaderboard"],
        ["show", "letters"],
    ):
        read = winnow(tmp_path, *command)
        assert read.returncode == 0, read.stderr
        last = f"reading {ELSEWHERE}, the database last used here"
        assert read.stderr == f"{last}; choose another with --storage URL\n"
    assert "letters" in winnow(tmp_path, "list").stdout


def test_a_simulation_reads_it_where_it_replays_a_campaign(tmp_path, monkeypatch):
    stored(tmp_path, monkeypatch)
    remember(ELSEWHERE)
    refused = winnow(tmp_path, "simulate", "campaign:letters", "--selector", "row-mean", "--out", "simulated")
    assert refused.returncode == 2
    assert refused.stderr == (
        f"reading {ELSEWHERE}, the database last used here; choose another with --storage URL\n"
        "winnow: campaign 'letters' has no finished round yet; resume it first: winnow resume letters "
        f"--storage {ELSEWHERE}\n"
    )
    (tmp_path / "table.csv").write_text("candidate,e1,e2\na,1,0\nb,0,0\n")
    replayed = winnow(tmp_path, "simulate", "table.csv", "--selector", "row-mean", "--out", "simulated")
    assert "last used" not in replayed.stderr


def test_one_whose_file_is_gone_hides_none_that_was_used_before_it(tmp_path, monkeypatch):
    stored(tmp_path, monkeypatch)
    remember(ELSEWHERE)
    for number in range(3):
        remember(f"sqlite:///{tmp_path}/trial-{number}.db")
    read = winnow(tmp_path, "list")
    assert (read.returncode, read.stderr) == (
        0,
        f"reading {ELSEWHERE}, the database last used here; choose another with --storage URL\n",
    )
    remember("postgresql://host/results")  # nobody knows whether it is there before it is asked
    assert last_used(DEFAULT_STORAGE) == "postgresql://host/results"


def test_a_database_that_is_named_or_at_its_usual_place_is_read_instead(tmp_path, monkeypatch):
    stored(tmp_path, monkeypatch)
    remember(ELSEWHERE)
    named = winnow(tmp_path, "list", "--storage", ELSEWHERE)
    assert (named.returncode, named.stderr) == (0, "")
    new_database(tmp_path / "winnow.db").close()
    assert "letters" not in winnow(tmp_path, "list").stdout


@pytest.mark.parametrize(
    "command",
    [
        *(["resume", "letters"], ["label", "letters"], ["route", "letters", "--unanswered"]),
        *(["db", "index"], ["db", "vacuum"], ["db", "prune", "--older-than", "1d"]),
    ],
)
def test_what_writes_does_not_go_by_the_note_and_makes_no_database_that_would_hide_it(
    tmp_path, monkeypatch, command
):
    stored(tmp_path, monkeypatch)
    remember(ELSEWHERE)
    result = winnow(tmp_path, *command)
    assert result.returncode == 1
    assert (
        "sqlite:///winnow.db is unavailable: there is no such file; check its path, name another by --storage"
    ) in one_message(result)
    assert winnow(tmp_path, "status", "letters").returncode == 0


@pytest.mark.parametrize(("allow_labels", "opened"), [(False, ELSEWHERE), (True, DEFAULT_STORAGE)])
def test_a_page_that_writes_does_not_go_by_the_note_either(tmp_path, monkeypatch, allow_labels, opened):
    class Started(Exception):
        """Instead of a server."""

    def start(storage, *_, allow_labels):
        raise Started(storage)

    stored(tmp_path, monkeypatch)
    remember(ELSEWHERE)
    monkeypatch.setattr(dashboards, "_start", start)
    monkeypatch.setattr(dashboards.signal, "signal", lambda *_: None)
    with pytest.raises(Started, match=f"^{re.escape(opened)}$"):
        dashboards.view(allow_labels=allow_labels, browser=False)


def test_a_page_of_a_database_that_is_not_there_or_not_winnows_says_so(tmp_path, monkeypatch, capsys):
    stored(tmp_path, monkeypatch)
    tell_if_unreadable(ELSEWHERE)
    assert capsys.readouterr().err == ""
    tell_if_unreadable("sqlite:///nope\x1b[2J.db")
    assert capsys.readouterr().err == (
        "there is no database sqlite:///nope\N{MIDDLE DOT}[2J.db; "
        "the page stays empty until a campaign is stored there\n"
    )
    (tmp_path / "empty.db").touch()
    tell_if_unreadable("sqlite:///empty.db")
    (said,) = capsys.readouterr().err.splitlines()
    assert "sqlite:///empty.db holds no Winnow results" in said


def test_a_note_of_others_cannot_command_a_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a\x1b[2J\x9b31m.db").touch()
    note().write_text("sqlite:///a\x1b[2J\x9b31m.db\n")
    said = winnow(tmp_path, "list").stderr
    assert said.startswith("reading sqlite:///a")
    assert all(character.isprintable() or character == "\n" for character in said)


def test_a_password_is_not_noted_and_a_note_of_no_use_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    remember("postgresql+psycopg://me:secret@server/results")
    assert not (state_folder() / NOTE).exists()
    note().write_bytes(b"\xff")
    assert "winnow.db" in one_message(winnow(tmp_path, "list"))


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("winnow status ", ["letters"]),
        ("winnow query le", ["letters"]),
        ("winnow resume le", ["letters"]),
        ("winnow show x", []),
        ("winnow status --storage sqlite:///nowhere.db ", []),
    ],
)
def test_a_shell_completes_the_names_of_campaigns(words, offered, tmp_path, monkeypatch):
    stored(tmp_path, monkeypatch)
    remember(ELSEWHERE)
    asked = {"_WINNOW_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    command = Path(sys.executable).with_name("winnow")  # a shell asks the command of this name
    done = subprocess.run([command], env=os.environ | asked, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (offered, "")
