"""`make faults`: faults injected into real campaigns, and what became of each, as a table.

python -m tests.faults --out .winnow/faults [--only REGEX] [--anew] [--kills] [--page docs/faults.md]

Results are kept in files of lines in OUT: begun again, this goes on where it was stopped, and a fault
whose campaign did not end as it should is met again.
"""

import argparse
import re
import sys
from pathlib import Path

from tests.faults.every_call import LEDGER as EVERY_CALL
from tests.faults.every_call import kill_at_every_call
from tests.faults.kills import LEDGER as KILLS
from tests.faults.kills import SHARES, Killing
from tests.faults.ledger import BudgetTracker
from tests.faults.outcomes import Outcome, Stage
from tests.faults.pages import write_page
from tests.faults.registry import all_faults
from tests.faults.staging import stage
from tests.faults.tables import cells

LEDGER = "faults.jsonl"


def main() -> None:
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    met, struck, killed = (BudgetTracker(options.out / name) for name in (LEDGER, EVERY_CALL, KILLS))
    if options.inject or options.kills:
        with stage() as ready:
            if options.inject:
                _meet_all(ready, met, options)
            if options.kills:
                kill_at_every_call(ready, struck)
                Killing(ready, killed).kill(SHARES)
    page = write_page(met, struck, killed, options.page or options.out / "faults.md")
    print(f"written to {page}")
    sys.exit(1 if any(ledger.wrong for ledger in (met, struck, killed)) else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".winnow/faults"))
    parser.add_argument(
        "--only", default="", metavar="REGEX", help="only faults whose name, campaign or database fits"
    )
    parser.add_argument("--anew", action="store_true", help="also those that were met before")
    parser.add_argument("--no-faults", dest="inject", action="store_false", help="inject no faults")
    parser.add_argument(
        "--kills",
        action="store_true",
        help="kills at every call of a round, and random ones, after the faults",
    )
    parser.add_argument("--page", type=Path, help="where the tables are written; faults.md in OUT without it")
    return parser.parse_args()


def _meet_all(ready: Stage, met: BudgetTracker, options: argparse.Namespace) -> None:
    for fault in all_faults():
        is_done = fault.key in met.rows and not met.rows[fault.key]["wrong"]
        if not re.search(options.only, fault.key) or (is_done and not options.anew):
            continue
        row = ready.outcome(fault)
        met.add(fault.key, row.as_dict())
        _tell(row)


def _tell(row: Outcome) -> None:
    print(" | ".join(cells(row.as_dict())), *row.wrong, sep="\n    ", flush=True)


if __name__ == "__main__":
    main()
