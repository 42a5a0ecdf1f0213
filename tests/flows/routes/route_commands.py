"""What tests of routes do at the command line, and what they look at afterwards."""

import json
import shutil

import campaign_processes as processes
import pytest
import route_campaigns as route
from campaign_processes import rows
from campaigns import winnow
from route_campaigns import write_route

from winnow.tasks.objectives.route.router import Router


def done(folder, *arguments):
    """What a command that succeeds prints."""
    result = winnow(folder, *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def refused(folder, *arguments, code=2):
    """The only line that a refused command prints."""
    result = winnow(folder, *arguments)
    assert (result.returncode, result.stdout) == (code, "")
    (line,) = result.stderr.strip().splitlines()
    return line


def asked(folder, view):
    return json.loads(done(folder, "query", "survivor", view, "--json"))


def prepared(folder, **changes):
    """Store a campaign that is to be run by `route.begin`."""
    write_route(folder, **changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return processes.store(folder / "campaign.yaml")


def everything(folder):
    """All rows of all tables but the leases'."""
    tables = [name for (name,) in rows(folder, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: rows(folder, f"SELECT * FROM {name}") for name in tables if name != "leases"}


def spell(number, *more):
    """Arguments for a prompt to spell that has a target."""
    prompt = ["--prompt", route.text("spell", number), "--target", route.answer(number)]
    return ["route", "survivor", *prompt, "--field", "type=spell", *more]


def chosen(folder, numbers, kind):
    """Who an exported policy chooses for prompts of a type."""
    done(folder, "route", "survivor", "--export", "policy")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        router = Router.load("policy")
        return {router.choose(route.text(kind, number)) for number in numbers}


def copy_of(folder, place):
    """The same campaign at another place, and its storage."""
    shutil.copytree(folder, place)
    return place, f"sqlite:///{place}/winnow.db"
