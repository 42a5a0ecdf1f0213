"""What a stranger wrote into a database moves no cursor, and stands in no command that is to be copied."""

import json
import shutil
import sqlite3
from contextlib import closing

import pytest
from campaigns import winnow
from report_campaigns import decided_campaign
from stored_campaigns import new_database
from typer.testing import CliRunner

from tests.golden_database.campaigns import CAMPAIGNS, DATABASE, unpack
from winnow.flows.cli import app
from winnow.flows.reports.dashboard.screens.campaigns_page import campaign_rows
from winnow.storage.admin.schema import reading
from winnow.storage.errors import StorageError

NAME = next(iter(CAMPAIGNS))
HOSTILE = "\x1b]0;title\x07\x9b2J\u202e"
READING = ("status", "list", "show", "report", "db check", "query")


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stranger")
    unpack(folder)
    assert winnow(folder, "db", "upgrade", "--storage", f"sqlite:///{DATABASE}").returncode == 0
    return folder


@pytest.fixture
def folder(upgraded, tmp_path):
    shutil.copytree(upgraded, tmp_path / "copy")
    return tmp_path / "copy"


def change(folder, statement, *values):
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(statement, values)
        connection.commit()


def ask(folder, command, name=NAME):
    words = command.split()
    if command in ("show", "report", "query"):
        words += [name, *(["leaderboard"] if command == "query" else [])]
    return winnow(folder, *words, "--storage", f"sqlite:///{DATABASE}")


def is_harmless(ran):
    return all(each.isprintable() for each in (ran.stdout + ran.stderr).replace("\n", ""))


@pytest.mark.parametrize("command", READING)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE campaigns SET name = name || ? WHERE name = '{NAME}'",
        "UPDATE candidates SET name = name || ?",
        "UPDATE campaigns SET spec = json_set(spec, '$.models[0].name', ?) WHERE name = '{NAME}'",
        "UPDATE campaigns SET versions = json_set(versions, '$.winnow-llm', ?)",
        "UPDATE leases SET host = ?, released_at = NULL",
    ],
)
def test_names_that_would_move_a_cursor_are_not_shown_as_they_are(folder, statement, command):
    change(folder, statement.format(NAME=NAME), HOSTILE)
    name = NAME + HOSTILE if "SET name = name || ? WHERE" in statement else NAME
    ran = ask(folder, command, name)
    assert is_harmless(ran), ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("name", ["c; touch pwned", "$(touch pwned)", "`touch pwned`", "a'b", "a\nb"])
def test_a_name_that_a_shell_would_run_stands_in_no_command(folder, name):
    change(folder, f"UPDATE campaigns SET name = ? WHERE name = '{NAME}'", name)
    ran = ask(folder, "status")
    assert ran.returncode == 1
    assert "of this database has a name that is not allowed in a file" in ran.stderr
    checked = ask(folder, "db check")
    assert checked.returncode == 1
    assert "has a name that is not allowed in a file" in checked.stdout


@pytest.mark.parametrize("command", READING)
@pytest.mark.parametrize("objective", ["kertify", "../x", "certify.traits", ""])
def test_an_objective_that_is_unknown_ends_in_a_sentence(folder, objective, command):
    change(folder, f"UPDATE campaigns SET objective = ? WHERE name = '{NAME}'", objective)
    ran = ask(folder, command)
    assert ran.returncode == 1
    assert f"has an unknown objective, {objective!r}" in ran.stdout + ran.stderr


OTHERS = {*CAMPAIGNS} - {NAME}
DEPENDENT = {each for each in OTHERS if "certify" in each}
"""A certificate counts the earlier campaigns on its labels."""


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("UPDATE campaigns SET name = ? WHERE name = '{NAME}'", HOSTILE),
        ("UPDATE campaigns SET spec = ? WHERE name = '{NAME}'", "{"),
        ("UPDATE campaigns SET spec = ? WHERE name = '{NAME}'", "[]"),
        ("UPDATE campaigns SET spec = ? WHERE name = '{NAME}'", "{}"),
        ("UPDATE campaigns SET objective = ? WHERE name = '{NAME}'", "kertify"),
        ("UPDATE campaigns SET created_at = ? WHERE name = '{NAME}'", "noon"),
        ("UPDATE campaigns SET name = CAST(? AS TEXT) WHERE name = '{NAME}'", b"\xff"),
        (
            "UPDATE candidates SET name = ? WHERE id = (SELECT min(candidates.id) FROM candidates "
            "JOIN campaigns c ON c.id = campaign_id WHERE c.name = '{NAME}')",
            HOSTILE,
        ),
    ],
)
def test_a_list_has_the_others_beside_a_campaign_that_cannot_be_read(folder, statement, value):
    change(folder, statement.format(NAME=NAME), value)
    for command, key in (("status --json", "name"), ("list --json", "campaign")):
        ran = ask(folder, command)
        assert is_harmless(ran), ran.stderr
        assert ran.returncode == 1
        assert {each[key] for each in json.loads(ran.stdout)} == OTHERS - DEPENDENT
        first, *others = ran.stderr.splitlines()
        assert (
            first.startswith("winnow: campaign 1 of this database has ") or f"'{NAME}' is not shown" in first
        )
        assert {each.split("'")[1] for each in others} == DEPENDENT
    assert ask(folder, "report --all pages").returncode == 0
    told = []
    with reading(f"sqlite:///{folder / DATABASE}") as session:
        assert {*campaign_rows(session, {}, told.append)} == OTHERS - DEPENDENT
    assert len(told) == 1 + len(DEPENDENT)


VALUES = [
    ("datasets", "n_examples", b"\xff"),
    ("datasets", "n_examples", "x"),
    ("datasets", "n_examples", 2**62),
    ("candidates", "position", b"\xff"),
    ("candidates", "position", 2**40),
    ("candidates", "name", b"\xff"),
    ("candidates", "model", "7"),
    ("decisions", "claim", "7"),
    ("decisions", "best_estimate", b"\xff"),
    ("campaigns", "spec", b"\xff"),
    ("campaigns", "spec", "{}"),
    ("campaigns", "execution", "[]"),
    ("campaigns", "versions", "7"),
    ("rounds", "examples", "{}"),
]


@pytest.mark.parametrize(("table", "column", "value"), VALUES)
def test_values_of_another_kind_end_every_reader_in_a_sentence(tmp_path, monkeypatch, table, column, value):
    monkeypatch.chdir(tmp_path)
    database = new_database(tmp_path / DATABASE)
    name = decided_campaign(database).record.name
    database.close()
    change(tmp_path, f"UPDATE {table} SET {column} = ? WHERE rowid = (SELECT min(rowid) FROM {table})", value)
    storage = f"sqlite:///{DATABASE}"
    asked = (["status"], ["show", name], ["query", name, "leaderboard"], ["query", name, "rounds"])
    for words in (*asked, ["resume", name]):
        said = CliRunner().invoke(app, [*words, "--storage", storage]).exception
        assert said is None or isinstance(said, SystemExit | StorageError), (words, said)
    said = CliRunner().invoke(app, ["db", "copy", storage, "sqlite:///copy.db"]).exception
    assert said is None or isinstance(said, StorageError)


def test_an_error_of_winnows_own_is_hidden_by_no_check(folder):
    with pytest.raises(TypeError, match="a bug"), reading(f"sqlite:///{folder / DATABASE}"):
        raise TypeError("a bug")
    change(folder, "UPDATE candidates SET position = ? WHERE id = 1", b"\xff")
    damage = r"was changed outside Winnow.*: row 1 of candidates: its position cannot be read; run winnow db"
    with pytest.raises(StorageError, match=damage), reading(f"sqlite:///{folder / DATABASE}"):
        raise TypeError("of the value")
