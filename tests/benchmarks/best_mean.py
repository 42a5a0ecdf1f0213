"""`make bench-best-mean`: speed, published comparisons and validity of the best-mean selectors.

python -m tests.benchmarks.best_mean --data FOLDER --out .winnow/bench
"""

import argparse
from pathlib import Path

from tests.benchmarks import best_mean_quality, best_mean_speed, best_mean_validity, low_rank_choice
from tests.benchmarks.tables import told, write
from winnow.algorithms.registry import selector_names

PARTS = {"alpaca": 0.4, "leaderboard": 0.35, "validity": 0.25}
"""Of the time that is given; the others take as long as they take."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the score tables")
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    parser.add_argument("--minutes", type=float, default=9.0, help="for all that is repeated over seeds")
    parser.add_argument("--seeds", type=int, default=50, help="most seeds of a published comparison")
    parser.add_argument("--runs", type=int, default=2000, help="most runs of a validity check")
    parser.add_argument(
        "--only", choices=["speed", "low-rank", *PARTS], action="append", help="may be repeated"
    )
    options = parser.parse_args()
    names = selector_names("best-mean")
    seconds = {part: 60.0 * options.minutes * share for part, share in PARTS.items()}
    sections = {
        "speed": lambda: best_mean_speed.measure(options.data, names),
        "low-rank": lambda: low_rank_choice.measure(options.data),
        "alpaca": lambda: best_mean_quality.measure_alpaca(
            options.data, names, options.seeds, seconds["alpaca"]
        ),
        "leaderboard": lambda: best_mean_quality.measure_leaderboard(
            options.data, names, options.seeds, seconds["leaderboard"]
        ),
        "validity": lambda: best_mean_validity.measure(names, options.runs, seconds["validity"]),
    }
    found = {part: told(rows()) for part, rows in sections.items() if part in (options.only or sections)}
    write("best-mean", TITLES, found, options.out)


TITLES = {
    "speed": "Speed",
    "low-rank": "Rank and ridge by cross-validation, 1 standard error; the default is 64 and derived",
    "alpaca": "AlpacaEval 2: top-1 precision (gap 0.001) by share of the matrix",
    "leaderboard": "1000 x 12032 drawn from the leaderboard factors, B = 64: calls to 95% accuracy",
    "validity": "Adversarial tables, delta = 0.05: 5 arms x 60 examples, histories that predict the opposite",
}


if __name__ == "__main__":
    main()
