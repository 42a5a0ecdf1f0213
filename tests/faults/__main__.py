"""`make faults`: faults injected into real campaigns, and what became of each, as a table.

python -m tests.faults --out .winnow/faults [--only REGEX] [--kills 500]
"""

import argparse
import re
import sys
from pathlib import Path

from tests.faults.kills import kill_campaigns, write_kills
from tests.faults.registry import all_faults
from tests.faults.staging import stage
from tests.faults.tables import cells, write_table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".winnow/faults"))
    parser.add_argument(
        "--only", default="", metavar="REGEX", help="run only faults whose name, campaign or database fits"
    )
    parser.add_argument("--kills", type=int, default=0, help="random kills after the faults")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    chosen = [each for each in all_faults() if re.search(options.only, each.key)]
    outcomes, good = [], True
    with stage() as ready:
        for fault in chosen:
            outcomes.append(ready.outcome(fault))
            print(" | ".join(cells(outcomes[-1])), *outcomes[-1].wrong, sep="\n    ", flush=True)
        if outcomes:
            print(f"written to {write_table(outcomes, options.out)}")
            good = all(row.is_good for row in outcomes)
        if options.kills:
            killed = kill_campaigns(ready, options.kills, options.out)
            print(f"written to {write_kills(killed, options.out)}")
            good = good and not any(row.wrong for row in killed)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
