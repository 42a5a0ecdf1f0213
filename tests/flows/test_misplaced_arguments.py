"""Arguments in a wrong order or form: the message has the right command."""

import re

import pytest

from winnow.flows.cli import COMMANDS, app
from winnow.tasks.errors import SpecError


def said(*arguments):
    with pytest.raises(SpecError) as caught:
        app(list(arguments), standalone_mode=False)
    return str(caught.value)


def test_the_help_names_every_command(capsys):
    app(["--help"], prog_name="winnow", standalone_mode=False)
    shown = re.findall(r"^│ ([a-z]+) ", capsys.readouterr().out, re.MULTILINE)
    assert shown == list(COMMANDS)


def test_a_setting_without_an_equals_sign_comes_with_the_right_form():
    right = "write --set stopping.delta=0.1"
    assert right in said("run", "campaign.yaml", "--set", "stopping.delta", "0.1")
    assert right in said("run", "campaign.yaml", "--set", "stopping", "delta=0.1")


def test_a_view_before_its_campaign_comes_with_the_right_order():
    assert "winnow query tickets leaderboard" in said("query", "leaderboard", "tickets")
    assert "unknown view 'leaderbord'; did you mean 'leaderboard'?" in said("query", "tickets", "leaderbord")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run",), "SPEC is missing: write winnow run SPEC (winnow run -h explains it)"),
        (("simulate", "x.csv"), "--out is missing; add --out DIR (Folder for"),
        (("run", "c.yaml", "--forc", "x"), "unknown option '--forc'; did you mean '--fork'?"),
        (("run", "c.yaml", "--storage"), "--storage needs a value (winnow run -h explains it)"),
        (("--storage", "x", "run"), "unknown option '--storage'; available: --install-completion, --show-"),
        (("status", "a", "b"), "unexpected 'b': winnow status takes NAME and options only (winnow status -h"),
        (("db", "check", "x"), "unexpected 'x': winnow db check takes options only (winnow db check -h"),
        (("runn", "c.yaml"), "unknown command 'runn'; did you mean 'run'? nearest: run"),
        (("db", "chek"), "unknown command 'chek'; did you mean 'check'? available: allow, check"),
        (("import", "scores", "x.json"), "--name is missing; add --name NAME"),
        (("view", "--port", "abc"), "--port abc: must be a whole number"),
        (("try", "c.yaml", "--n", "0"), "--n 0: must be at least 1, such as 4"),
        (("query", "c", "leaderboard", "--format", "xls"), "--format xls: must be one of 'table', 'csv',"),
    ],
)
def test_a_missing_or_wrong_argument_is_named_with_what_to_write(arguments, said):
    with pytest.raises(SpecError) as caught:
        app(list(arguments), prog_name="winnow", standalone_mode=False)
    assert str(caught.value).startswith(said)
