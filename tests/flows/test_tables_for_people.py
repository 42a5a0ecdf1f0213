"""Tables in a terminal: nothing is broken or folded, what is cut stays apart, what is left out is named."""

import datetime as dt
import io
import os
import re

import pytest
from campaigns import winnow
from rich.cells import cell_len
from sqlalchemy import text
from stored_campaigns import new_database, store_campaign

from winnow.flows.reports.rows.text_table import distinguishable, print_table, table_lines
from winnow.flows.reports.rows.writer import print_rows
from winnow.tasks.errors import WinnowError

ROWS = [
    {
        "candidate": f"org/model-{size}b-instruct/{prompt}-prompt/temperature-0.7",
        "best": size == 70 and prompt == "plain",
        "status": "active",
        "estimate": estimate,
        "lower": 0.25,
        "comparisons": count,
        "decided_at": dt.datetime(2026, 11, 22, 9, 30, tzinfo=dt.UTC),
        "reason": None,
    }
    for size, prompt, estimate, count in (
        (70, "plain", 0.5, 12_032),
        (70, "other", 0.4375, 96),
        (8, "plain", 0.0, 1_000_000),
    )
]
NUMBERS = {"0.500", "0.438", "0.000", "0.250", "12,032", "96", "1,000,000"}


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal_and_no_number_is_broken(width):
    lines = table_lines(ROWS, width)
    assert all(cell_len(line) <= width for line in lines)
    table = "\n".join(lines).partition("\nnot shown: ")[0].splitlines()
    found = set(re.findall(r"(?<![\w.:-])\d[\d,]*(?:\.\d+)?(?![\w.:-])", "\n".join(table)))
    assert found <= NUMBERS
    assert "reason" not in "\n".join(lines)  # nothing is in it


def test_names_that_are_cut_stay_apart():
    names = [line.split("  ")[0] for line in table_lines(ROWS, 80)[1:4]]
    assert len(set(names)) == 3
    assert any("…" in name for name in names)


@pytest.mark.parametrize("width", [40, 80, None])
def test_names_that_differ_in_their_middles_alone_stay_apart_too(width):
    ends = "one-organisation/a-model-with-a-long-name-of-", "-billion-parameters/step-by-step-in-few-words"
    rows = [{"candidate": f"{ends[0]}{n}{ends[1]}", "estimate": 0.5} for n in range(200)]
    names = [line.split()[0] for line in table_lines(rows, width)[1:]]
    assert names == [f"…{n}…" for n in range(200)]
    # Where short names tell them apart, they stay whole at their ends.
    assert distinguishable(["a/" + "x" * 80, "b/" + "x" * 80], 20) == ["a/" + "x" * 80, "b/" + "x" * 80]


@pytest.mark.parametrize("width", [80, 90, 100])
def test_what_does_not_fit_is_named(width):
    table, _, rest = "\n".join(table_lines(ROWS * 10, width, shown_by="SAID")).partition("\nnot shown: ")
    shown = table.splitlines()[0].split()
    names, said = " ".join(rest.split()).split("; ")
    assert said == "SAID shows them"
    missing = names.split(", ")
    assert [*shown, *missing] == [name for name in ROWS[0] if name != "reason"]


def test_columns_that_were_asked_for_are_all_shown_one_below_the_other():
    lines = table_lines(ROWS, 72, all_columns=True)
    assert lines[0].split() == ["candidate", "org/model-70b-instruct/plain-prompt/temperature-0.7"]
    assert [line.split()[0] for line in lines[:7]] == [name for name in ROWS[0] if name != "reason"]


def test_a_pipe_gets_every_column_and_colours_are_for_those_who_want_them():
    assert not any("\x1b" in line or "not shown" in line for line in table_lines(ROWS, None))
    coloured = table_lines(ROWS, 200, has_colours=True)
    assert [line.startswith("\x1b[32m") for line in coloured] == [False, True, False, False]


@pytest.mark.parametrize("width", [None, 80, 20])
def test_no_name_of_a_column_moves_a_terminals_cursor(width):
    rows = [{"a\x1b[2J": "x\x1b[2J", "b\n\x07": 1, **{f"c{n}\x1b[1m": "y" * 30 for n in range(4)}}]
    assert all(line.isprintable() for line in table_lines(rows, width))


def test_characters_that_are_two_columns_wide_are_counted_as_two():
    rows = [{"candidate": "日本語" * 12 + str(n), "estimate": 0.5} for n in range(2)]
    lines = table_lines(rows, 40)
    assert {cell_len(line) for line in lines} == {40}


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.5, None, 0.25], ["0.500", "", "0.250"]),
        ([12.5, 999.25], ["12.5", "999.2"]),
        ([1e-9, 0.5], ["1.00e-09", "0.500"]),
        ([float("nan"), 0.5], ["nan", "0.500"]),
        ([0.867, 0.83, 0.000204, 0.0], ["0.8670", "0.8300", "0.0002", "0.0000"]),
        ([123_456.7], ["123,457"]),
        ([0.0], ["0.000"]),
        ([0.04, 398.25], ["0.04", "398.25"]),
        ([0.004, 12_345.5, 0.0], ["0.004", "12,345.500", "0.000"]),
    ],
)
def test_a_column_has_one_number_of_decimals(values, shown):
    lines = table_lines([{"row": "r", "x": value} for value in values], 80)
    assert [line[1:].strip() for line in lines[1:]] == shown


def test_a_column_that_does_not_exist_is_a_sentence(capsys):
    print_rows(ROWS, "csv", columns=["estimate", "candidate"])
    assert capsys.readouterr().out.splitlines()[:2] == [
        '"estimate","candidate"',
        '0.5,"org/model-70b-instruct/plain-prompt/temperature-0.7"',
    ]
    with pytest.raises(WinnowError, match="unknown column 'estimat'; did you mean 'estimate'"):
        print_rows(ROWS, "csv", columns=["estimat"])


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("height", [10, 40])
def test_a_table_that_is_higher_than_the_terminal_goes_to_the_pager(monkeypatch, height):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("LINES", str(height))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("LESS", "")
    monkeypatch.delenv("LESS")
    paged = []
    monkeypatch.setattr("pydoc.pager", paged.append)
    terminal = Terminal()
    print_table(ROWS * 5, terminal)
    text = "".join(f"{line}\n" for line in table_lines(ROWS * 5, 200))
    assert (paged, terminal.getvalue()) == (([text], "") if height == 10 else ([], text))
    assert os.environ.get("LESS") == ("FRX" if height == 10 else None)


def test_names_of_candidates_stay_apart_in_whatever_column_they_stand():
    names = [f"organisation-{k}/a-model-with-a-long-name/step-by-step-in-few-words" for k in range(25)]
    lines = table_lines(
        [{"round": 0, "candidate": name, "text": "t" * 60, "judge": "exact"} for name in names], 60
    )
    assert len({line.split()[1] for line in lines[1:26]}) == 25


def test_ends_of_intervals_are_rounded_outward_as_sentences_have_them():
    rows = [
        {"candidate": "a", "estimate": 0.56273, "lower": 0.56273, "upper": 0.97321},
        {"candidate": "b", "estimate": 0.3, "lower": 0.1 + 0.2, "upper": 0.1 + 0.2},  # known
        {"candidate": "c", "estimate": None, "lower": -0.0004, "upper": 1.0},
    ]
    known = ["b", "0.300", "0.300", "0.300"]
    shown = [line.split() for line in table_lines(rows[:2], None)[1:]]
    assert shown == [["a", "0.563", "0.562", "0.974"], known]
    small = [line.split() for line in table_lines(rows, None)[1:]]
    assert [each[-2] for each in small] == ["0.5627", "0.3000", "-0.0004"]


@pytest.mark.parametrize("width", [None, 120])
def test_of_a_sentence_the_end_is_cut_as_what_was_raised_stands_in_its_middle(width):
    said = (
        "the judge 'acme' (acme_judges:Length) raised KeyError: 'colour' (acme.py, line 4); " + "more " * 40
    )
    rows = [{"candidate": "a", "reason": "judge_failed", "comparisons": 9, "detail": said}]
    lines = table_lines(rows, width)
    assert "raised KeyError: 'colour' (acme.py" in lines[1]
    assert lines[1].endswith("…")
    assert width is None or cell_len(lines[1]) <= width


def test_below_a_leaderboard_stands_what_is_wrong_with_a_candidates_outputs(tmp_path):
    campaign = store_campaign(new_database(tmp_path / "winnow.db"))
    round_ = campaign.plan(0, [1] * 3, [0, 1, 2])
    campaign.finish(round_, [0.0] * 3, status=["active", "eliminated", "active"])
    with campaign.database.writing() as session:
        session.execute(text("UPDATE generations SET text = ''"))
    for view in ("leaderboard", "coverage"):
        shown = winnow(tmp_path, "query", "letters", view)
        assert "check: 3 of 3 outputs (100.0%) are empty, all 3 of b (eliminated): " in shown.stderr
        assert "check" not in shown.stdout
        assert winnow(tmp_path, "query", "letters", view, "--json").stderr == ""
    assert "3 empty" in shown.stdout


@pytest.mark.parametrize("duel", [False, True])
def test_comparisons_show_input_target_output_and_score_side_by_side_in_80_columns(monkeypatch, duel):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    row = {
        "round": 0,
        "position": 3,
        "candidate": "qwen-7b/step-by-step/greedy",
        **({"candidate_b": "llama-8b/terse/greedy"} if duel else {}),
        "example": "ticket-17",
        "input": "My parcel has not arrived and nobody answers the telephone. " * 9,
        "target": "delivery",
        "outcome": 1.0,
        "reason": None,
        "judge": "exact",
        "prompt": "Label: My parcel " * 9,
        "text": "The label is delivery. " * 9,
        **({"text_b": "Complaint. " * 9} if duel else {}),
        **{f"further_{number}": "x" for number in range(9)},
    }
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    print_rows([row], "table", view="comparisons")
    heading, shown, *rest = terminal.getvalue().splitlines()
    texts = ["text", "text_b"] if duel else ["text"]
    assert {"outcome", "candidate", "input", "target", *texts} <= {*heading.split()}
    assert heading.split()[0] == "outcome"
    assert shown.split()[0] == "1.000"
    assert "delivery" in shown
    assert all(len(line) <= 80 for line in (heading, shown, *rest))
    assert rest[0].startswith("not shown: ")
