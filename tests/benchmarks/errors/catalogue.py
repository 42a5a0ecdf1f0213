"""Every cell there is. What a run depends on is in a cell itself, so any may be added, taken out or moved."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from tests.benchmarks.errors import best_duel, best_mean, bradley_terry, certify, champion, gate
from tests.benchmarks.errors.cells import Cell

OTHERS_SHARE = 0.1  # of the runs, for selectors that say the same as others of the same intervals or wealths
OWN_DUELS_SHARE = 0.25  # of the runs by round robin: the product is the rule that has to be tested most
AGAIN_SHARE = 0.05  # of the runs where outputs are asked again, which take ten times as long
BROKEN_SHARE = 0.1  # of the runs: what is broken on purpose is seen soon


def all_cells(runs: int, whole_runs: int) -> list[Cell]:
    """Every cell.

    Args:
        runs: Campaigns of a best-mean, a certify or a round-robin cell.
        whole_runs: Campaigns of a cell of LLM-PO, with or without a model.
    """
    return [
        *_best_mean(runs),
        *_champion(runs),
        *_gate(runs),
        *_best_duel("round-robin", runs, round(runs * OWN_DUELS_SHARE)),
        *_best_duel("llm-po", whole_runs, whole_runs),
        *_broken_duels(round(runs * BROKEN_SHARE)),
        *_bradley_terry(whole_runs),
        *_certify(runs),
    ]


GROUPS = np.repeat([0, 1], [6, best_mean.N_EXAMPLES - 6])
"""Of the examples: a few, and all others."""

BEST_MEAN: Mapping[str, tuple[str, float, Mapping[str, Any]]] = {
    "champion": ("champion", 1.0, {}),
    "champion, start champion": ("champion", OTHERS_SHARE, {"start": "champion"}),
    "champion, hostile history": ("champion", 1.0, {"start": "champion", "opposed": True}),
    "champion, the best 2": ("champion", 1.0, {"top_m": 2}),
    "champion, groups alike": ("champion", 1.0, {"groups": GROUPS, "group_weights": np.ones(2)}),
    "champion, the worst group": ("champion", 1.0, {"groups": GROUPS}),
    "race": ("race", OTHERS_SHARE, {}),
    "ucb-e": ("ucb-e", 1.0, {}),
    "ucb-e as published": ("ucb-e", OTHERS_SHARE, {"variant": "paper"}),
    "row-mean": ("row-mean", OTHERS_SHARE, {}),
    "pulse": ("pulse", OTHERS_SHARE, {}),
}
"""Selectors, their share of the runs and parameters of their own."""


def _best_mean(runs: int) -> Iterator[Cell]:
    """Every table with every selector; with epsilon where it changes most; and ways to deceive."""
    for label, (selector, share, params) in BEST_MEAN.items():
        for world in best_mean.WORLDS:
            for epsilon in (
                (0.0, 0.06) if world in ("near tie", "tied", "missing where wrong 40%") else (0.0,)
            ):
                yield Cell(
                    name=f"{label}, {world}" + (f", epsilon {epsilon:g}" if epsilon else ""),
                    objective="best-mean",
                    selector=selector,
                    build=partial(best_mean.scene, selector, world, epsilon, **params),
                    runs=round(runs * share),
                    delta=best_mean.DELTA,
                )
    for selector in ("champion", "ucb-e"):
        for name, world, deceit in (
            ("scores told under the names of other arms", "near tie", {"swapped": True}),
            ("unscored outputs left out", "missing where wrong 40%", {"guessed": True}),
        ):
            yield Cell(
                name=f"{selector}, {world}, {name} (broken)",
                objective="best-mean",
                selector=selector,
                build=partial(best_mean.scene, selector, world, 0.0, **deceit),
                runs=round(runs * BROKEN_SHARE),
                delta=best_mean.DELTA,
                expected="broken",
            )


def _champion(runs: int) -> Iterator[Cell]:
    """Every case at every error probability, and ways to deceive."""
    for case, found in champion.CASES.items():
        for delta in champion.DELTAS[::2] if found.way == "asked again" else champion.DELTAS:
            yield Cell(
                name=f"{case}, delta {delta:g}",
                objective="champion",
                selector="champion",
                build=partial(champion.scene, case, delta),
                runs=round(runs * (AGAIN_SHARE if found.way == "asked again" else 1.0)),
                delta=delta,
            )
    yield Cell(
        name="constraint missed, delta 0.01, told as met (broken)",
        objective="champion",
        selector="champion",
        build=partial(champion.scene, "constraint missed", 0.01, unconstrained=True),
        runs=round(runs * BROKEN_SHARE),
        delta=0.01,
        expected="broken",
    )
    yield Cell(
        name="failed where wrong, the leader's alone asked again, delta 0.05, others thought right (broken)",
        objective="champion",
        selector="champion",
        build=partial(
            champion.scene, "failed where wrong, asked again, no race", 0.05, are_leaders_alone=True
        ),
        runs=round(runs * BROKEN_SHARE),
        delta=0.05,
        expected="broken",
    )


def _gate(runs: int) -> Iterator[Cell]:
    """Every table with both ends of asking, and unscored outputs taken for right ones."""
    for until in ("no-worse", "better"):
        for world in gate.WORLDS:
            yield Cell(
                name=f"until {until}, {world}",
                objective="gate",
                selector="gate",
                build=partial(gate.scene, world, until),
                runs=round(runs * OTHERS_SHARE),
                delta=gate.DELTA,
            )
    yield Cell(
        name="until better, missing where wrong 20%, unscored outputs told as right (broken)",
        objective="gate",
        selector="gate",
        build=partial(gate.scene, "missing where wrong 20%", "better", guessed=True),
        runs=round(runs * OTHERS_SHARE),
        delta=gate.DELTA,
        expected="broken",
    )


def _best_duel(selector: str, product_runs: int, own_runs: int) -> Iterator[Cell]:
    """Worlds by both rules, and those without a winner by the one that assumes none."""
    for assume_winner in (True, False):
        worlds = best_duel.WORLDS if assume_winner else {**best_duel.WORLDS, **best_duel.CYCLES}
        for world in worlds:
            yield Cell(
                name=f"{selector}, {'product' if assume_winner else 'own duels'}, {world}",
                objective="best-duel",
                selector=selector,
                build=partial(best_duel.scene, selector, world, assume_winner),
                runs=product_runs if assume_winner else own_runs,
                delta=best_duel.DELTA,
            )


def _broken_duels(runs: int) -> Iterator[Cell]:
    for world in best_duel.CYCLES:
        yield Cell(
            name=f"round-robin, product, {world} (no arm beats all: assumption false)",
            objective="best-duel",
            selector="round-robin",
            build=partial(best_duel.scene, "round-robin", world, True),
            runs=runs,
            delta=best_duel.DELTA,
            expected="broken",
        )
    for assume_winner in (True, False):
        rule = "product" if assume_winner else "own duels"
        yield Cell(
            name=f"round-robin, {rule}, unread wins 40%, unscored duels left out (broken)",
            objective="best-duel",
            selector="round-robin",
            build=partial(best_duel.scene, "round-robin", "unread wins 40%", assume_winner, left_out=True),
            runs=runs,
            delta=best_duel.DELTA,
            expected="broken",
        )


def _bradley_terry(runs: int) -> Iterator[Cell]:
    for world in bradley_terry.WORLDS:
        yield Cell(
            name=f"llm-po-bt, {world}",
            objective="best-duel, Bradley-Terry",
            selector="llm-po-bt",
            build=partial(bradley_terry.scene, world),
            runs=runs,
            delta=bradley_terry.DELTA,
        )
    for world in bradley_terry.INTERACTIONS:
        yield Cell(
            name=f"llm-po-bt, {world} (assumption false)",
            objective="best-duel, Bradley-Terry",
            selector="llm-po-bt",
            build=partial(bradley_terry.scene, world),
            runs=runs,
            delta=bradley_terry.DELTA,
            expected="reported",
        )
    yield Cell(
        name="llm-po-bt, unread wins 40%, unscored duels left out (broken)",
        objective="best-duel, Bradley-Terry",
        selector="llm-po-bt",
        build=partial(bradley_terry.scene, "unread wins 40%", left_out=True),
        runs=round(runs * BROKEN_SHARE),
        delta=bradley_terry.DELTA,
        expected="broken",
    )


def _certify(runs: int) -> Iterator[Cell]:
    """Every bet with every autoevaluator and losses missing; several arms; and two ways to deceive."""
    for betting in ("star", "up", "wsr", "mixture"):
        for quality in certify.AGREEMENT:
            for missing in certify.MISSING:
                yield _certificates("one arm", quality, missing, betting, runs)
    for world in ("three arms", "three arms, the first dropped"):
        for procedure in ("fixed-sequence", "bonferroni"):
            for betting in ("star", "mixture"):
                yield _certificates(world, "useful", 0.1, betting, runs, procedure=procedure)
    broken = round(runs * BROKEN_SHARE)
    yield _certificates("one arm", "useful", 0.0, "star", broken, selected=True)
    yield _certificates("one arm", "useful", 0.4, "star", broken, left_out=True)


def _certificates(
    world: str, quality: str, missing: float, betting: str, runs: int, **more: str | bool
) -> Cell:
    details = {
        "procedure": str(more.get("procedure")),
        "selected": "labels bought where the losses are lower (broken)",
        "left_out": "examples with a missing loss left out (broken)",
    }
    return Cell(
        name=", ".join(
            [betting, world, f"{quality} autoevaluator", f"{missing:.0%} missing"]
            + [details[each] for each in more]
        ),
        objective="certify",
        selector="r-autoeval-plus",
        build=partial(certify.scene, world, quality, missing, betting, **more),
        runs=runs,
        delta=certify.DELTA,
        expected="broken" if {"selected", "left_out"} & set(more) else "kept",
    )
