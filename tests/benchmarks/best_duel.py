"""`make bench-best-duel`: the published duel experiments, error probabilities and speed.

python -m tests.benchmarks.best_duel --out .winnow/bench
"""

import argparse
from pathlib import Path

from tests.benchmarks import (
    best_duel_rules,
    best_duel_speed,
    best_duel_structured,
    best_duel_unstructured,
    best_duel_validity,
)
from tests.benchmarks.tables import Row, told, write

TITLES = {
    "speed": "Speed: processor time of a step; wall time of the experiment",
    "rules": "Duels to a stop by rule, LLM-PO, delta = 0.05",
    "unstructured": "16 arms, own duels, delta = 0.05, cap 30 000, 10 draws of the latent scores",
    "draws": "Mean duels by draw of the latent scores",
    "validity": "Hard worlds, delta = 0.05: an arm named that the rule should not name",
    "structured": "32 arms with 6 features, delta = 0.05, cap 30 000; beside it the published rule",
}
PARTS = ("speed", "rules", "unstructured", "validity", "structured")
SHARES = {"rules": 0.2, "unstructured": 0.2, "validity": 0.2, "structured": 0.4}
"""Of the time that is given; speed takes as long as it takes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    parser.add_argument("--minutes", type=float, default=40.0, help="for all that is repeated")
    parser.add_argument("--replications", type=int, default=200, help="most runs of a published experiment")
    parser.add_argument("--runs", type=int, default=2000, help="most runs of a validity check")
    parser.add_argument("--only", choices=PARTS, action="append", help="may be repeated")
    options = parser.parse_args()
    minutes = {part: options.minutes * share for part, share in SHARES.items()}
    parts = options.only or PARTS
    found: dict[str, list[Row]] = {}
    if "speed" in parts:
        found["speed"] = told(best_duel_speed.measure())
    if "rules" in parts:
        found["rules"] = told(best_duel_rules.measure(options.replications, minutes["rules"]))
    if "unstructured" in parts:
        measured = best_duel_unstructured.run(options.replications, minutes["unstructured"])
        found.setdefault("speed", []).extend(told([best_duel_unstructured.cost(measured)]))
        found["unstructured"] = told(best_duel_unstructured.methods(measured))
        found["draws"] = told(best_duel_unstructured.draws(measured))
    if "validity" in parts:
        found["validity"] = told(best_duel_validity.measure(options.runs, minutes["validity"]))
    if "structured" in parts:
        found["structured"] = told(best_duel_structured.measure(options.replications, minutes["structured"]))
    write("best-duel", TITLES, found, options.out)


if __name__ == "__main__":
    main()
