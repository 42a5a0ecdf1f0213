"""How often answers that are exact or proven are wrong, as a page; a benchmark that was stopped goes on.

    python -m tests.benchmarks.errors --out FOLDER [--table docs/error-rates.md] [--minutes 0]

Runs are kept in FOLDER/errors.csv, each under a digest of the code that it depends on. Where that is not
there yet, they go on from tests/benchmarks/results/error-rates.csv, which is written anew with the page.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.errors.catalogue import all_cells
from tests.benchmarks.errors.page import page, row
from tests.benchmarks.errors.runs import begin_with, fill, keep, totals
from tests.benchmarks.errors.verdicts import BAD

PAGE = Path("docs", "error-rates.md")
KEPT = Path("tests", "benchmarks", "results", "error-rates.csv")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--whole-runs", type=int, default=2_000)
    parser.add_argument("--only", default="", help="cells with this in their objective and name")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this long")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--table", type=Path, help="the page of all cells; FOLDER/errors.md if not given")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "errors.csv"
    cells = all_cells(given.runs, given.whole_runs)
    wanted = [cell for cell in cells if given.only in f"{cell.objective}: {cell.name}"]
    begin_with(file, KEPT)
    fill(file, wanted, minutes=given.minutes, jobs=given.jobs)
    found = totals(file, cells)
    table = given.table or given.out / "errors.md"
    table.write_text(page(cells, found), encoding="utf-8")
    if table == PAGE:
        keep(file, KEPT)
    rows = [row(cell, found[cell.name], len(cells)) for cell in wanted]
    for each in rows:
        print(", ".join(f"{key}: {value}" for key, value in each.items()))
    print(f"written to {table}")
    return 1 if any(each["verdict"] in BAD for each in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
