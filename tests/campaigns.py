"""The door through which tests run campaigns: the command `winnow` in this process, and rows it stored."""

import contextlib
import io
import json
import os
import sqlite3
import sys
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main
import yaml

from winnow.flows.main import main
from winnow.tasks.plugins.allowed_code import ask_of

COMMAND_OF = cache(typer.main.get_command)
"""Made once: a process runs one command, and this one runs hundreds."""


class Ran(NamedTuple):
    """The exit code of a command and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


def winnow(folder: Path, *arguments: str) -> Ran:
    """Run the command in this process: a new one would spend seconds on imports."""
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["winnow", *arguments])
        patch.setattr(os, "environ", os.environ.copy())
        patch.setattr(typer.main, "get_command", COMMAND_OF)
        with pytest.raises(SystemExit) as left:
            main()
    ask_of(None)  # what follows in this process is no command
    return Ran(left.value.code or 0, out.getvalue(), err.getvalue())


def one_message(result: Ran) -> str:
    """The only thing on standard error: a message, not a traceback."""
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("winnow: ")
    return result.stderr.removeprefix("winnow: ").strip()


def status_json(folder: Path, name: str = "survivor") -> dict[str, Any]:
    """The status of a campaign as JSON."""
    shown = winnow(folder, "status", name, "--json")
    assert shown.returncode == 0, shown.stderr
    found: dict[str, Any] = json.loads(shown.stdout)
    return found


def write_spec(folder: Path, spec: dict[str, Any], name: str = "campaign.yaml") -> Path:
    """Write a campaign's file; keys whose value is None are left out."""
    path = folder / name
    path.write_text(yaml.safe_dump({k: v for k, v in spec.items() if v is not None}, sort_keys=False))
    return path


def rows(storage: str, query: str, *parameters: object) -> list[tuple[Any, ...]]:
    """What a query finds in a database, by its URL."""
    if storage.startswith("sqlite:///"):
        connection: Any = sqlite3.connect(storage.removeprefix("sqlite:///"))
    else:
        import psycopg

        connection = psycopg.connect(storage.replace("+psycopg", ""))
    with closing(connection):
        return connection.execute(query, parameters).fetchall()
