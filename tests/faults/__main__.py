"""`make faults`: faults injected into real campaigns, and what became of each, as a table.

python -m tests.faults --out .winnow/faults [--only REGEX] [--anew] [--kills]
        [--page docs/faults.md] [--tables FOLDER]

Results are counted in tables: started again, on any machine, this continues where it was stopped, and a
fault whose campaign did not end as expected is injected again. The folders of killed campaigns
that did not end as they should are kept in OUT.
"""

import argparse
import re
import sys
from pathlib import Path

from tests.faults.counts import Counts
from tests.faults.every_call import kill_at_every_call
from tests.faults.kills import SHARES, Killing
from tests.faults.outcomes import Outcome, Stage
from tests.faults.pages import write_page
from tests.faults.registry import all_faults
from tests.faults.staging import stage
from tests.faults.tables import cells


def main() -> None:
    options = _options()
    page = options.page or options.out / "faults.md"
    counts = Counts(options.tables or options.out)
    if options.inject or options.kills:
        with stage() as ready:
            if options.inject:
                _meet_all(ready, counts, options)
            if options.kills:
                kill_at_every_call(ready, counts)
                Killing(ready, counts, options.out / "left").kill(SHARES)
    print(f"written to {write_page(counts, page)}")
    sys.exit(1 if counts.wrong else 0)


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
    parser.add_argument("--page", type=Path, help="file of the page; OUT/faults.md by default")
    parser.add_argument("--tables", type=Path, metavar="FOLDER", help="folder of the tables; OUT by default")
    return parser.parse_args()


def _meet_all(ready: Stage, counts: Counts, options: argparse.Namespace) -> None:
    for fault in all_faults():
        known = counts.faults.rows.get((fault.name, fault.kind, fault.database))
        is_done = known is not None and not known["wrong"]
        if not re.search(options.only, fault.key) or (is_done and not options.anew):
            continue
        row = ready.outcome(fault)
        counts.add_fault(row)
        _tell(row)


def _tell(row: Outcome) -> None:
    print(" | ".join(cells(row.as_dict())), *row.wrong, sep="\n    ", flush=True)


if __name__ == "__main__":
    main()
