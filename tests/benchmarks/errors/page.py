"""The page that says what was run and what came of it."""

import platform
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from textwrap import fill

import numpy as np
import scipy

from tests.benchmarks.errors import best_duel, best_mean, bradley_terry, certify, champion, gate
from tests.benchmarks.errors.cells import Cell
from tests.benchmarks.errors.runs import Total
from tests.benchmarks.errors.sources import code_of
from tests.benchmarks.errors.verdicts import BAD, FALSE_ALARM, is_above, promises, upper_end, verdict
from tests.benchmarks.measurements import cpu_name

WIDTH = 110  # characters

INTRODUCTION = """\
# Error rates

How often an answer that claims to be exact or proven is wrong, in worlds that were made to bring that about.
Every run is a whole campaign of a real selector by its public protocol: ask and tell until it asks nothing
more, then its decision. Only the outcomes are drawn from a world instead of a model.

`make bench-errors` goes on where it was stopped. This page is written by

    python -m tests.benchmarks.errors --out FOLDER --table docs/error-rates.md

and with `--minutes 0` nothing is run before. Runs are kept in `FOLDER/errors.csv`, which goes on from the
counts of this page in `tests/benchmarks/results/error-rates.csv`, each under a digest of its code: the world,
the selector and all that these import, without comments, docstrings, messages of errors and the names of
modules. After a change of that code the runs of a cell begin anew, and those of all others stay. Where the
first hundred campaigns of a cell come out alike to the last bit on one kind of processor, with all that is
asked, told and decided, the change is taken for one that changes no run, and the runs before it count as
well. On another kind the last bits may be others: there, the code before the change has to play them too.

- **claimed**: the share of runs whose answer was exact or proven. The others said that they do not know.
- **wrong**: the share of all runs whose answer was exact or proven, and false; and what the probability of
  that is at most, with 95% confidence.
- **promise**: the error probability that was asked for, and others that wrong answers stated. After arms were
  dropped an answer may state more than was asked for. Tested is that answers that state at most d are wrong
  with probability at most d, for each d. An exact answer states 0: one that is wrong breaks its promise.
- **verdict**: *kept*, unless a binomial variable of that many runs and that probability would be as high with
  a probability below {alarm:g} over the number of cells; *seen* for what is broken on purpose, where the test
  has to say so; *reported* where the model is false in a way that the method cannot always notice.
"""

_AGREEMENT = ", ".join(f"{agreement:.0%} ({quality})" for quality, agreement in certify.AGREEMENT.items())

ABOUT: Mapping[str, str] = {
    "best-mean": f"""
{best_mean.N_ARMS} arms, {best_mean.N_EXAMPLES} examples, batches of {best_mean.BATCH}, delta =
{best_mean.DELTA}, no budget: unless outputs are unscored, the answer is exact in the end. Selectors that
say the same as `champion` or `ucb-e`, by the same rules, have a tenth of the runs. It is wrong to call an
arm best or tied that is worse than the best arm that was not dropped (by more than epsilon), or to call
that one eliminated; of `the best 2`, to leave out one that is above one of those named (by more than
epsilon). With `groups alike` and `the worst group` it is not means that are compared, but the mean or the
lowest of the means on the first 6 examples and on the others.""",
    "champion": f"""
Batches of {champion.BATCH}, no budget, at {len(champion.DELTAS)} values of delta; the list says how many arms
and examples there are. Where outputs are asked again, there are two values of delta and a twentieth of the
runs. It is wrong to name an arm that is worse than the best of those that were not dropped,
of those that meet the constraint where there is one, or to name none. Intervals of means, which are shown and
decide nothing, are worked out in the first hundred campaigns of a cell, and need not be in the others.""",
    "gate": f"""
{gate.N_ARMS} arms, the first of them the baseline, {gate.N_EXAMPLES} examples, batches of {gate.BATCH},
delta = {gate.DELTA}, epsilon = {gate.EPSILON}: to be right on one example fewer is no worse, on two it is
worse. It is wrong to call an arm no worse, better or worse that is not. All have a tenth of the runs.""",
    "best-duel": f"""
delta = {best_duel.DELTA}, {best_duel.BUDGET} duels, batches of {best_duel.BATCH}. By the product rule
(`assume_winner`) it is wrong to name an arm that loses to another one that was not dropped; by its own
duels to name one that does not beat all of them, ties included, as that is what is claimed. By round
robin, `own duels` have a quarter of the runs of the product.""",
    "best-duel, Bradley-Terry": f"""
delta = {bradley_terry.DELTA}, {bradley_terry.BUDGET} duels, batches of {bradley_terry.BATCH}. It is
wrong to name an arm that is not the best of those that were not dropped.""",
    "certify": f"""
alpha = {certify.ALPHA}, delta = {certify.DELTA}, {certify.LABELS} labels, {certify.RATIO} unlabelled
examples for each. The risk of every arm is alpha and one in a million, so that every certificate is
wrong, but for the first of three arms, whose risk is {certify.SAFE}. Autoevaluators agree with the human
answer on {_AGREEMENT} of all examples. Missing is the share that the name says of all losses of 1,
human, autoevaluated and unlabelled ones.""",
}
"""How a campaign is set, and what is wrong; the lines are broken anew."""


def page(cells: Sequence[Cell], found: Mapping[str, Total]) -> str:
    """All of it, in Markdown."""
    lines = [INTRODUCTION.format(alarm=FALSE_ALARM), *_summary(cells, found)]
    for objective, group in groupby(cells, key=lambda cell: cell.objective):
        rows = [row(cell, found[cell.name], len(cells)) for cell in group]
        lines += [
            "",
            f"## {objective}",
            "",
            fill(ABOUT[objective].strip(), WIDTH),
            "",
            *_worlds(objective),
            *_table(rows),
        ]
    return "\n".join(lines) + "\n"


def row(cell: Cell, total: Total, n_cells: int) -> dict[str, str]:
    """A cell's line of the table."""
    runs, wrong = total.counts["runs"], sum(total.wrong.values())
    return {
        "cell": cell.name,
        "runs": f"{runs} of {cell.runs}",
        "claimed": f"{total.counts['claimed'] / runs:.3f}" if runs else "-",
        "wrong": f"{wrong / runs:.4f} (below {upper_end(total):.4f})" if runs else "-",
        "promise": ", ".join(f"{bound:g}" for bound in promises(cell, total)),
        "verdict": verdict(cell, total, n_cells),
        "code": code_of(cell),
    }


def _summary(cells: Sequence[Cell], found: Mapping[str, Total]) -> Iterator[str]:
    verdicts = [verdict(cell, found[cell.name], len(cells)) for cell in cells]
    done = sum(found[cell.name].counts["runs"] >= cell.runs for cell in cells)
    yield (
        f"**{len(cells)} cells, {done} of them with all their runs;"
        f" {', '.join(f'{verdicts.count(each)} {each}' for each in sorted({*verdicts, *BAD}))}.**"
    )
    for cell in cells:
        if cell.expected == "reported" and is_above(cell, found[cell.name], len(cells)):
            yield f"Above its promise where the model is false: {cell.name}."
    yield ""
    all_runs, others = (sum(found[cell.name].counts[of] for cell in cells) for of in ("runs", "other code"))
    yield (
        f"{all_runs} runs, {others} of them by earlier code that plays alike; the last of them on"
        f" {cpu_name()}, Python {platform.python_version()},"
        f" numpy {np.__version__}, scipy {scipy.__version__}."
    )


def _worlds(objective: str) -> Iterator[str]:
    """What is in the worlds of an objective, those that differ in a number together."""
    worlds: Mapping[str, object] = {
        "best-mean": best_mean.WORLDS,
        "champion": champion.CASES,
        "gate": gate.WORLDS,
        "best-duel": {**best_duel.WORLDS, **best_duel.CYCLES},
        "best-duel, Bradley-Terry": {**bradley_terry.WORLDS, **bradley_terry.INTERACTIONS},
    }.get(objective, {})
    for said, names in groupby(worlds, key=lambda name: _says(worlds[name])):
        yield fill(f"- {'; '.join(names)}: {said}", WIDTH, subsequent_indent="  ")
    if worlds:
        yield ""


def _says(world: object) -> str:
    if isinstance(world, best_duel.World | champion.Case):
        return world.says
    told = world.func if isinstance(world, partial) else world
    return " ".join((told.__doc__ or "").split())


def _table(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    yield "| " + " | ".join(rows[0]) + " |"
    yield "|---" * len(rows[0]) + "|"
    yield from ("| " + " | ".join(each.values()) + " |" for each in rows)
