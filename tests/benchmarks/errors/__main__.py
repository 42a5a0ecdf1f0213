"""How often answers that are exact or proven are wrong, as a table; a run that was stopped goes on.

    python -m tests.benchmarks.errors --out FOLDER [--runs 20000] [--whole-runs 2000] [--only WORD]

Runs are kept in FOLDER by what the algorithms' source files hold: other algorithms begin anew. A cell is
above its promise if a binomial variable of that many runs and that probability would be as high with
probability below 1e-3 over the number of cells.
"""

import argparse
import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from scipy.stats import beta, binom

from tests.benchmarks import tables
from tests.benchmarks.errors.cells import Cell
from tests.benchmarks.errors.runs import Total, all_cells, fill, totals

FALSE_ALARM = 1e-3


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--whole-runs", type=int, default=2_000)
    parser.add_argument("--only", default="", help="cells with this in their name")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this long")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / f"errors-{_digest_of_the_algorithms()}.csv"
    everything = all_cells(given.runs, given.whole_runs)
    cells = [cell for cell in everything if given.only in cell.name]
    fill(file, cells, (given.runs, given.whole_runs), minutes=given.minutes, jobs=given.jobs)
    found = totals(file)
    rows = [_row(cell, found.get(cell.name, Total()), len(everything)) for cell in cells]
    tables.write(
        "errors", {"errors": "Answers that were exact or proven, and wrong"}, {"errors": rows}, given.out
    )
    for row in rows:
        print(", ".join(f"{key}: {value}" for key, value in row.items()))
    bad = [row for row in rows if row["verdict"] in ("ABOVE ITS PROMISE", "NOT SEEN")]
    return 1 if bad else 0


def _row(cell: Cell, total: Total, n_cells: int) -> dict[str, str]:
    n, k = total.runs, total.wrong
    promise = max(total.delta, cell.delta)
    upper = float(beta.ppf(0.95, k + 1, n - k)) if n > k else 1.0
    is_above = n > 0 and binom.sf(k - 1, n, promise) < FALSE_ALARM / n_cells
    verdict = {"kept": "ABOVE ITS PROMISE" if is_above else "kept", "reported": "reported"}.get(
        cell.expected, "seen" if is_above else "NOT SEEN"
    )
    return {
        "cell": cell.name,
        "runs": f"{n} of {cell.runs}",
        "claimed": f"{total.claimed / n:.3f}" if n else "-",
        "wrong": f"{k / n:.4f} (below {upper:.4f} at 95%)" if n else "-",
        "promise": f"{promise:g}",
        "verdict": verdict if n else "not run",
    }


def _digest_of_the_algorithms() -> str:
    digest = hashlib.sha256()
    root = Path(__file__).parents[3]
    for path in sorted([*(root / "algorithms").rglob("*.py"), *Path(__file__).parent.glob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
