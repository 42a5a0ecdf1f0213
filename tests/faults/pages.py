"""The page that says what became of all faults and kills, written from what is kept of them."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.faults.kinds import OBJECTIVES
from tests.faults.ledger import BudgetTracker, Row
from tests.faults.registry import all_faults
from tests.faults.tables import ended, table

KILL_HEADINGS = ("engine", "objective", "database", "kills", "campaigns", "most of one", "by the clock",
                 "at a system call", "engine alone", "lost", "doubled", "wrong links", "asked again",
                 "reference decision")  # fmt: skip
STRUCK_HEADINGS = (*KILL_HEADINGS[1:4], "of the round", *KILL_HEADINGS[9:])
FAULT_HEADINGS = ("fault", "campaigns", "databases", "exit", "lost", "doubled", "reference decision")

INTRODUCTION = """\
# What was broken on purpose, and what became of it

Written by `make faults`; the harness is `tests/faults/`. Every campaign below met a fault, or was killed with
SIGKILL, and then went on with `winnow resume`. At its end every row it stored (rounds, texts, comparisons,
judgments, decisions with their claims, labels, embeddings) was held against the same campaign left alone, and
`winnow db check` was run. *Lost* are rows that the campaign left alone has and this one has not, *doubled*
are those it has too many of; *wrong links* are comparisons and texts that do not belong together, as `winnow
db check` finds them.
"""


def write_page(met: BudgetTracker, struck: BudgetTracker, killed: BudgetTracker, path: Path) -> Path:
    """Write the page of all ledgers; return its path.

    Args:
        met: Of faults.
        struck: Of kills at every call of a round.
        killed: Of random kills.
        path: Of the page.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [INTRODUCTION]
    for tell, ledger in ((_killed, killed), (_struck, struck), (_met, met)):
        lines += tell(list(ledger.rows.values()))
    path.write_text("\n".join(lines).rstrip() + "\n")
    return path


def _killed(rows: list[Row]) -> list[str]:
    kills = [kill for row in rows for kill in row["kills"]]
    lines = [
        "## Random kills",
        "",
        f"{len(kills)} kills of {len(rows)} campaigns: {_sum(rows, 'lost')} rows lost, "
        f"{_sum(rows, 'doubled')} doubled, {_sum(rows, 'wrong_links')} wrong links, "
        f"{_sum(rows, 'asked_again')} committed texts asked for again, {_same(rows)} endings with the "
        "reference decision.",
        "",
        *table(KILL_HEADINGS, [_cell(*cell, rows) for cell in _cells(rows)]),
        "",
        "A kill by the clock comes from a timer of the kernel's at a random moment of the process's work. A "
        "kill at a system call comes while the process waits to write, flush, rename, remove or send:",
        "",
    ]
    lines += table(("system call", "kills"), _calls(rows))
    found = Counter(kill["phase"] for kill in kills)
    lines += ["", *table(("what was stored when it died", "kills"), found.most_common()), ""]
    return lines + [f"- {row['case']}: {'; '.join(row['wrong'])}" for row in rows if row["wrong"]]


def _cells(rows: list[Row]) -> list[tuple[str, str, str]]:
    found = {(row["engine"], row["objective"], row["database"]) for row in rows}
    order = {"scripted": 0, "transformers": 1, "vllm": 2}
    return sorted(found, key=lambda cell: (order[cell[0]], OBJECTIVES.index(cell[1]), cell[2] != "sqlite"))


def _cell(engine: str, objective: str, database: str, rows: list[Row]) -> list[object]:
    own = [
        row
        for row in rows
        if (row["engine"], row["objective"], row["database"]) == (engine, objective, database)
    ]
    ways = Counter(kill["how"] for row in own for kill in row["kills"])
    numbers = [len(row["kills"]) for row in own]
    sums = [_sum(own, name) for name in ("lost", "doubled", "wrong_links", "asked_again")]
    how = [ways["moment"], ways["system call"], ways["engine"]]
    return [engine, objective, database, sum(numbers), len(own), max(numbers), *how, *sums, _same(own)]


def _struck(rows: list[Row]) -> list[str]:
    lines = [
        "## Kills at every system call of one round",
        "",
        f"{len(rows)} kills, one at each write, flush, rename, removal and send of a campaign's second "
        "round, from its first on; each time the campaign then went on to its end.",
        "",
        *table(STRUCK_HEADINGS, [_round(*cell, rows) for cell in _cells(rows)]),
        "",
        *table(("system call", "kills"), _calls(rows)),
        "",
    ]
    return lines + [f"- {row['case']}: {'; '.join(row['wrong'])}" for row in rows if row["wrong"]]


def _round(engine: str, objective: str, database: str, rows: list[Row]) -> list[object]:
    cell = _cell(engine, objective, database, rows)
    own = [row for row in rows if (row["objective"], row["database"]) == (objective, database)]
    how_far = "all" if any(row["is_last"] for row in own) else "its beginning"
    return [*cell[1:4], how_far, *cell[9:]]


def _calls(rows: list[Row]) -> list[tuple[str, int]]:
    """How often a process was killed at which call."""
    kills = [kill["where"] for row in rows for kill in row["kills"] if kill["where"]]
    # Numbers of files, but not those in the names of calls.
    return Counter(re.sub(r"\d+(?=\.)", "n", where) for where in kills).most_common()


def _met(rows: list[Row]) -> list[str]:
    names = list(dict.fromkeys(row["fault"] for row in rows))
    good = sum(not row["wrong"] for row in rows)
    met = {row["case"] for row in rows}
    lines = [
        "## Faults",
        "",
        f"{len(names)} different faults, met {len(rows)} times in all: {good} of {len(rows)} campaigns ended "
        "as they should, with the reference decision and no row lost or doubled. "
        f"{sum(fault.key not in met for fault in all_faults())} cases are still to be met.",
        "",
        *table(FAULT_HEADINGS, [_fault([row for row in rows if row["fault"] == name]) for name in names]),
        "",
    ]
    return lines + [f"- {row['case']}: {'; '.join(row['wrong'])}" for row in rows if row["wrong"]]


def _fault(rows: list[Row]) -> list[object]:
    codes = dict.fromkeys(ended(row["code"]) for row in rows)
    return [
        rows[0]["fault"],
        _listed(row["campaign"] for row in rows),
        _listed(row["database"] for row in rows),
        ", ".join(codes),
        _sum(rows, "lost"),
        _sum(rows, "doubled"),
        _same(rows),
    ]


def _listed(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(values))


def _same(rows: list[Row]) -> str:
    return f"{sum(row['same_decision'] for row in rows)} of {len(rows)}"


def _sum(rows: list[Row], name: str) -> Any:
    return sum(row[name] or 0 for row in rows)
