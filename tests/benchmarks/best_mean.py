"""`make bench-best-mean`: speed, published comparisons and validity of the best-mean selectors.

python -m tests.benchmarks.best_mean --data FOLDER --out .winnow/bench
"""

import argparse
import json
import platform
from collections.abc import Iterable
from pathlib import Path

from algorithms.registry import selector_names
from tests.benchmarks import best_mean_quality, best_mean_speed, best_mean_validity
from tests.benchmarks.measurements import cpu_name

PARTS = {"alpaca": 0.4, "leaderboard": 0.35, "validity": 0.25}
"""Of the time that is given; speed takes as long as it takes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the score tables")
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    parser.add_argument("--minutes", type=float, default=9.0, help="for all that is repeated over seeds")
    parser.add_argument("--seeds", type=int, default=50, help="most seeds of a published comparison")
    parser.add_argument("--runs", type=int, default=2000, help="most runs of a validity check")
    parser.add_argument("--only", choices=["speed", *PARTS], action="append", help="may be repeated")
    options = parser.parse_args()
    names = selector_names("best-mean")
    seconds = {part: 60.0 * options.minutes * share for part, share in PARTS.items()}
    sections = {
        "speed": lambda: best_mean_speed.measure(options.data, names),
        "alpaca": lambda: best_mean_quality.measure_alpaca(
            options.data, names, options.seeds, seconds["alpaca"]
        ),
        "leaderboard": lambda: best_mean_quality.measure_leaderboard(
            options.data, names, options.seeds, seconds["leaderboard"]
        ),
        "validity": lambda: best_mean_validity.measure(names, options.runs, seconds["validity"]),
    }
    found = {part: told(rows()) for part, rows in sections.items() if part in (options.only or sections)}
    write(found, options.out)


TITLES = {
    "speed": "Speed",
    "alpaca": "AlpacaEval 2: top-1 precision (gap 0.001) by share of the matrix",
    "leaderboard": "1000 x 12032 drawn from the leaderboard factors, B = 64: calls to 95% accuracy",
    "validity": "Adversarial tables, delta = 0.05: 5 arms x 60 examples, histories that predict the opposite",
}


def told(rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """All rows, each printed as soon as it is there."""
    found = []
    for row in rows:
        print(", ".join(f"{key}: {value}" for key, value in row.items()), flush=True)
        found.append(row)
    return found


def write(sections: dict[str, list[dict[str, str]]], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    machine = f"{cpu_name()}, Python {platform.python_version()}"
    lines = [f"Measured on {machine}."]
    for part, rows in sections.items():
        lines += [
            "",
            f"## {TITLES[part]}",
            "",
            "| " + " | ".join(rows[0]) + " |",
            "|---" * len(rows[0]) + "|",
        ]
        lines += ["| " + " | ".join(row.values()) + " |" for row in rows]
    (folder / "best-mean.md").write_text("\n".join(lines) + "\n")
    (folder / "best-mean.json").write_text(json.dumps({"machine": machine, "sections": sections}, indent=2))
    print(f"written to {folder / 'best-mean.md'}")


if __name__ == "__main__":
    main()
