"""`make bench-certify`: the paper's examples, both published selections and the speed of the certify methods.

python -m tests.benchmarks.certify --data FOLDER --out .winnow/bench
"""

import argparse
import json
import platform
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from tests.benchmarks import certify_power, certify_speed, certify_toy
from tests.benchmarks.certify_power import RULES
from tests.benchmarks.certify_selection import METHODS, bonferroni, dearer, fixed_sequence, summary
from tests.benchmarks.certify_tables import LossTable, prompts, quantised
from tests.benchmarks.measurements import cpu_name

ALPHA = DELTA = 0.1
LOOKS = (100, 150, 200, 250, 300)
ALPHAS = np.arange(1, 20) / 20.0
STRONGEST = "gooderer"
TITLES = {
    "speed": "Speed: S = 10, one thread",
    "power": "Share certified / mean labels by betting rule, delta = 0.1, risks of 0.2 to 0.8 alpha",
    "toy": "Examples 1 and 2: risk 0.1, alpha = 0.12, r = 10, S = 10, universal portfolio",
    "quantised": "Quantised Llama-3.1-8B, TriviaQA, alpha = delta = 0.1, fixed sequence: mean bits by labels",
    "prompts": "25 prompts, delta = 0.1, n = 200, r = 9, Bonferroni: averages over tasks",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the score tables")
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    parser.add_argument("--draws", type=int, default=100, help="independent draws of a published selection")
    parser.add_argument("--runs", type=int, default=100, help="runs of the examples")
    parser.add_argument("--labels", type=int, default=12_000, help="most labels of a run of the examples")
    parser.add_argument("--betting", choices=RULES, action="append", help="may be repeated")
    parser.add_argument("--quality", action="append", help="autoevaluators of the prompts; may be repeated")
    parser.add_argument("--only", choices=TITLES, action="append", help="may be repeated")
    options = parser.parse_args()
    rules = options.betting or RULES
    sections = {
        "speed": certify_speed.measure_speed,
        "power": lambda: measure_power(options.data, options.draws),
        "toy": lambda: certify_toy.measure_examples(options.runs, options.labels),
        "quantised": lambda: measure_quantised(options.data, options.draws, rules),
        "prompts": lambda: measure_prompts(options.data, options.draws, rules, options.quality),
    }
    found = {part: told(rows()) for part, rows in sections.items() if part in (options.only or sections)}
    write(found, options.out)


def measure_quantised(data: Path, draws: int, rules: Sequence[str]) -> Iterator[dict[str, str]]:
    """Mean size of the chosen model by labels; true risk and errors over all looks."""
    for betting in rules:
        for ratio in (3, 5):
            for table in quantised(data):
                chosen = fixed_sequence(table, ALPHA, DELTA, LOOKS, ratio, draws, betting)
                for method in METHODS:
                    looks = [summary(table, each, ALPHA) for each in chosen[method]]
                    row = {"betting": betting, "r": str(ratio)}
                    row |= {"autoevaluator": table.quality, "method": method}
                    for n, look in zip(LOOKS, looks, strict=True):
                        row[f"n = {n}"] = f"{look['cost']:.2f} ± {look['cost error']:.2f}"
                    row["risk"] = " ".join(f"{look['risk']:.3f}" for look in looks)
                    row["risk above alpha"] = " ".join(f"{look['false']:.2f}" for look in looks)
                    for other in ("r-eval", "r-autoeval"):
                        pairs = zip(chosen[method], chosen[other], strict=True)
                        row[f"bits more than {other}"] = " ".join(
                            "{:+.3f} ± {:.3f}".format(*dearer(table, *pair)) for pair in pairs
                        )
                    yield row


def measure_power(data: Path, draws: int) -> Iterator[dict[str, str]]:
    """How often each betting rule certifies what deserves it; alpha of the prompts by task as published."""
    alphas = [least_alpha(tables, draws) for tables in prompts(data)]
    yield from certify_power.measure_power(data, draws, alphas)


def measure_prompts(
    data: Path, draws: int, rules: Sequence[str], qualities: list[str] | None
) -> Iterator[dict[str, str]]:
    """Mean length and true risk of the chosen prompt, over tasks; alpha by task as published."""
    tasks = prompts(data)
    levels = [least_alpha(tables, draws) for tables in tasks]
    print(", ".join(f"{tables[0].name}: {alpha:.2f}" for tables, alpha in zip(tasks, levels, strict=True)))
    for betting in rules:
        for quality in qualities or [table.quality for table in tasks[0]]:
            found: dict[str, list[dict[str, float]]] = {method: [] for method in METHODS}
            for tables, alpha in zip(tasks, levels, strict=True):
                for table in tables:
                    if table.quality == quality:
                        chosen = bonferroni(table, alpha, DELTA, 200, 9, draws, betting)
                        for method in METHODS:
                            cell = summary(table, chosen[method], alpha)
                            for other in ("r-eval", "r-autoeval"):
                                mean, error = dearer(table, chosen[method], chosen[other])
                                cell |= {other: mean, f"{other} error": error}
                            found[method].append(cell)
            for method, cells in found.items():
                row = {"betting": betting, "autoevaluator": quality, "method": method}
                yield row | average(cells)


def average(tasks: list[dict[str, float]]) -> dict[str, str]:
    """The summaries of several tasks as one."""
    by_key = {key: np.array([task[key] for task in tasks]) for key in tasks[0]}
    errors = {
        key: np.sqrt((by_key[f"{key} error"] ** 2).sum()) / len(tasks)
        for key in ("cost", "r-eval", "r-autoeval")
    }
    return {
        "tasks": str(len(tasks)),
        "length": f"{by_key['cost'].mean():.1f} ± {errors['cost']:.1f}",
        "risk less alpha": f"{by_key['excess'].mean():.3f}",
        "risk above alpha": f"{by_key['false'].mean():.3f}",
        "the same, worst task": f"{by_key['false'].max():.2f}",
        "none": f"{by_key['none'].mean():.2f}",
        **{
            f"longer than {other}": f"{by_key[other].mean():+.2f} ± {errors[other]:.2f}"
            for other in ("r-eval", "r-autoeval")
        },
    }


def least_alpha(tables: list[LossTable], draws: int) -> float:
    """The least alpha for which R-AutoEval with the strongest autoevaluator mostly certifies a prompt."""
    strongest = next(table for table in tables if table.quality == STRONGEST)
    for alpha in ALPHAS[strongest.risks.min() <= ALPHAS]:
        chosen = bonferroni(strongest, float(alpha), DELTA, 200, 9, min(draws, 40), "wsr")["r-autoeval"]
        if (chosen >= 0).mean() >= 0.5:
            return float(alpha)
    return float(ALPHAS[-1])


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
        head = ["| " + " | ".join(rows[0]) + " |", "|---" * len(rows[0]) + "|"]
        lines += ["", f"## {TITLES[part]}", "", *head]
        lines += ["| " + " | ".join(row.values()) + " |" for row in rows]
    (folder / "certify.md").write_text("\n".join(lines) + "\n")
    (folder / "certify.json").write_text(json.dumps({"machine": machine, "sections": sections}, indent=2))
    print(f"written to {folder / 'certify.md'}")


if __name__ == "__main__":
    main()
