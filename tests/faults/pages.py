"""The page that says what became of all faults and kills, written from the tables beside it."""

import re
from collections import Counter
from pathlib import Path

from tests.faults.counts import EVERY_CALL, KILLS, RANDOM, Counts, total
from tests.faults.kinds import OBJECTIVES
from tests.faults.ledger import Row
from tests.faults.registry import all_faults
from tests.faults.tables import table

KILL_HEADINGS = ("engine", "objective", "database", "kills", "campaigns", "most of one", "by the clock",
                 "at a system call", "engine alone", "lost", "doubled", "wrong links", "asked again",
                 "reference decision")  # fmt: skip
STRUCK_HEADINGS = (*KILL_HEADINGS[1:4], "of the round", *KILL_HEADINGS[9:])
FAULT_HEADINGS = ("fault", "campaigns", "databases", "exit", "lost", "doubled", "reference decision")
CODE_HEADINGS = ("last commit that changed Winnow", "cases of faults", "random kills", "kills at every call")
ENGINES = ("scripted", "transformers", "vllm")

INTRODUCTION = """\
# What was broken on purpose, and what became of it

Written by `make faults`; the harness is `tests/faults/`. Every campaign below met a fault, or was killed with
SIGKILL, and then went on with `winnow resume`. At its end every row it stored (rounds, texts, comparisons,
judgments, decisions with their claims, labels, embeddings) was held against the same campaign left alone, and
`winnow db check` was run. *Lost* are rows that the campaign left alone has and this one has not, *doubled*
are those it has too many of; *wrong links* are comparisons and texts that do not belong together, as `winnow
db check` finds them.

The counts are kept in `tests/benchmarks/results/` (`faults.csv`, `faults-kills.csv`, `faults-calls.csv`).
`make faults` continues from them, on any machine: it injects each fault once, and kills until there are
enough kills.
"""


def write_page(counts: Counts, path: Path) -> Path:
    """Write the page; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [INTRODUCTION, *_random(counts), *_every_call(counts), *_met(counts), *_codes(counts)]
    path.write_text("\n".join(lines).rstrip() + "\n")
    return path


def _random(counts: Counts) -> list[str]:
    rows = counts.kills(RANDOM)
    return [
        "## Random kills",
        "",
        f"{total(rows, 'kills')} kills of {total(rows, 'campaigns')} campaigns: {total(rows, 'lost')} rows "
        f"lost, {total(rows, 'doubled')} doubled, {total(rows, 'wrong links')} wrong links, "
        f"{total(rows, 'asked again')} committed texts asked for again, {_same(rows)} endings with the "
        "reference decision.",
        "",
        *table(KILL_HEADINGS, [_cell(cell) for cell in _cells(rows)]),
        "",
        "A kill by the clock comes from a timer of the kernel's at a random moment of the process's work. A "
        "kill at a system call comes while the process waits to write, flush, rename, remove or send:",
        "",
        *table(("system call", "kills"), _calls(counts, RANDOM)),
        "",
        *table(("what was stored when it died", "kills"), counts.tally(RANDOM, "stored").most_common()),
        "",
        *_wrong(rows, 4),
    ]


def _cells(rows: list[Row]) -> list[list[Row]]:
    """The rows of each engine, objective and database, whatever code they are of."""
    cells: dict[tuple[int, int, bool], list[Row]] = {}
    for row in rows:
        place = ENGINES.index(row["engine"]), OBJECTIVES.index(row["objective"]), row["database"] != "sqlite"
        cells.setdefault(place, []).append(row)
    return [cells[place] for place in sorted(cells)]


def _cell(rows: list[Row]) -> list[object]:
    names = [rows[0][name] for name in ("engine", "objective", "database")]
    most = max(int(row["most"]) for row in rows)
    sums = [total(rows, name) for name in KILLS[3:10]]
    return [*names, total(rows, "kills"), total(rows, "campaigns"), most, *sums, _same(rows)]


def _every_call(counts: Counts) -> list[str]:
    rows = counts.kills(EVERY_CALL)
    return [
        "## Kills at every system call of one round",
        "",
        f"{total(rows, 'kills')} kills, one at each write, flush, rename, removal and send of a campaign's "
        "second round, from its first on; each time the campaign then went on to its end.",
        "",
        *table(STRUCK_HEADINGS, [_round(cell) for cell in _cells(rows)]),
        "",
        *table(("system call", "kills"), _calls(counts, EVERY_CALL)),
        "",
        *_wrong(rows, 4),
    ]


def _round(rows: list[Row]) -> list[object]:
    cell = _cell(rows)
    return [*cell[1:4], "all" if total(rows, "whole") else "its beginning", *cell[9:]]


def _calls(counts: Counts, moments: str) -> list[tuple[str, int]]:
    """How often a process was killed at which call."""
    found: Counter[str] = Counter()
    for name, kills in counts.tally(moments, "call").items():
        # Numbers of files, but not those in the names of calls.
        found[re.sub(r"\d+(?=\.)", "n", name)] += kills
    return found.most_common()


def _met(counts: Counts) -> list[str]:
    known = [(fault.name, fault.kind, fault.database) for fault in all_faults()]
    rows = [counts.faults.rows[key] for key in known if key in counts.faults.rows]
    met: dict[str, list[Row]] = {}
    for row in rows:
        met.setdefault(row["fault"], []).append(row)
    good = sum(not row["wrong"] for row in rows)
    return [
        "## Faults",
        "",
        f"{len(met)} different faults, met {len(rows)} times in all: {good} of {len(rows)} campaigns ended "
        "as they should, with the reference decision and no row lost or doubled. "
        f"{len(known) - len(rows)} cases are still to be met.",
        "",
        *table(FAULT_HEADINGS, [_fault(own) for own in met.values()]),
        "",
        *_wrong(rows, 3),
    ]


def _fault(rows: list[Row]) -> list[object]:
    told = [_listed(rows, name) for name in ("campaign", "database", "exit")]
    return [rows[0]["fault"], *told, total(rows, "lost"), total(rows, "doubled"), _same(rows, len(rows))]


def _listed(rows: list[Row], name: str) -> str:
    """The values of a column; those whose cases were once counted together hold several."""
    return ", ".join(dict.fromkeys(value for row in rows for value in row[name].split(", ")))


def _codes(counts: Counts) -> list[str]:
    """Which state of the code met how much."""
    faults = Counter(row["code"] for row in counts.faults.rows.values())
    kills = [Counter[str](), Counter[str]()]
    for found, moments in zip(kills, (RANDOM, EVERY_CALL), strict=True):
        for row in counts.kills(moments):
            found[row["code"]] += int(row["kills"])
    codes = dict.fromkeys([*kills[0], *kills[1], *faults])
    return [
        "## By which code",
        "",
        "What is on this page was gathered over several states of the code; of what is called earlier it is "
        "not known which they were. A later state is not shown to stand what only an earlier one met.",
        "",
        *table(CODE_HEADINGS, [[code, faults[code], *(found[code] for found in kills)] for code in codes]),
    ]


def _wrong(rows: list[Row], names: int) -> list[str]:
    """What was not as it should be, by the columns that come first."""
    return [f"- {' / '.join(list(row.values())[:names])}: {row['wrong']}" for row in rows if row["wrong"]]


def _same(rows: list[Row], campaigns: int | None = None) -> str:
    whole = total(rows, "campaigns") if campaigns is None else campaigns
    return f"{total(rows, 'same decision')} of {whole}"
