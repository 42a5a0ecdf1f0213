"""How fast the selectors are, each beside a plain implementation measured in the same run."""

import multiprocessing
import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from tests.benchmarks.plain_selectors import plain_ensemble, plain_pulse, plain_ucb_e
from tests.benchmarks.score_worlds import drawn, leaderboard_factors, published_subset
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector
from winnow.tasks.simulation.simulate import THREAD_SETTINGS

BUDGET, BATCH_SIZE, TAU = 540_800, 64, 1000
"""Of the published comparison."""
ROUND_SHAPE = (153, 805)
"""AlpacaEval as published, without its annotator."""
WORTH_REPEATING = 15.0
"""Seconds of a run, beyond which ten times the budget is not tried."""
ROUNDS = 40
"""Of UCB-E-LRF, timed one by one after its warm-up."""


class Timing(NamedTuple):
    loop: float
    """Seconds of asking and telling."""
    whole: float
    """The same with the last decision and its intervals."""
    peak: float
    """MiB of the process until then."""


def measure(data: Path, names: list[str]) -> Iterator[dict[str, str]]:
    """Rows of what, seconds, memory, reference and target; each measured in a process of its own.

    Matrix products have one thread, as in `winnow`: two are slower even where nothing else runs.
    """
    os.environ.update(dict.fromkeys(THREAD_SETTINGS, "1"))  # what is spawned takes it over
    u, v = leaderboard_factors(data)
    world = published_subset(drawn(u, v, np.random.default_rng(1)), 0.02)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "world.npz"
        np.savez(path, scores=world.scores, history=world.history, v=v)
        plain = _alone(_time_plain_ucb_e, path)
        yield from _whole_runs("ucb-e", {}, path, plain, "below 1 s")
        if "pulse" in names:
            plain = _alone(_time_plain_pulse, path)
            yield from _whole_runs("pulse", {"history": True}, path, plain, "below 5 s and 2 GB")
            yield from _whole_runs("pulse", {}, path, plain, "-", label="pulse without history")
    if "ucb-e-lrf" in names:
        fast, plain, peak = _alone(_time_lrf_round)
        yield _row(
            "ucb-e-lrf: one round, 153 x 805", f"{1e3 * fast:.1f} ms", peak, 1e3 * plain, fast, "30 ms"
        )


def _whole_runs(
    name: str, params: dict[str, bool], path: Path, plain: float, target: str, label: str = ""
) -> Iterator[dict[str, str]]:
    label = label or name
    fit, once, longer = _alone(_time_runs, name, params, path)
    if params.get("history"):
        yield _row(f"{label}: fit of the history, once", f"{fit.loop:.2f} s", fit.peak, None, 0.0, "-")
    what = f"{label}: 1000 x 12032, {BUDGET} pairs"
    yield _row(what, f"{once.loop:.2f} s", once.peak, plain, once.loop, target)
    yield _row(
        f"{label}: the same and its intervals", f"{once.whole:.2f} s", once.peak, plain, once.whole, "-"
    )
    if longer is not None:
        cost = f"{longer.loop:.2f} s, {longer.loop / once.loop:.1f} times"
        yield _row(f"{label}: 10 times the budget", cost, longer.peak, None, 0.0, "about 10 times")


def _row(what: str, value: str, peak: float, plain: float | None, ours: float, target: str) -> dict[str, str]:
    milliseconds = value.endswith("ms")
    beside = "-"
    if plain is not None:
        unit, seconds = ("ms", plain / 1e3) if milliseconds else ("s", plain)
        beside = f"{plain:.1f} {unit}, {seconds / ours:.1f} times as long"
    return {"what": what, "measured": value, "peak memory": f"{peak:.0f} MiB", "plain": beside, "bar": target}


def _alone(function, *arguments):
    """What a function returns in a fresh process, whose memory is its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _peak() -> float:
    """The most memory this process ever had, in MiB."""
    # Not getrusage: its maximum begins with that of the parent, which outlives exec.
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def _time_runs(name, params, path):
    """The first fit of the history, a run of the published budget and one of 10 times as much.

    None in place of the last where it would take longer than all the rest of the benchmark.
    """
    with np.load(path) as arrays:
        scores = arrays["scores"]
        given = {"history": arrays["history"]} if params.get("history") else {}
    sizes = {"n_arms": scores.shape[0], "n_examples": scores.shape[1]}
    found = []
    # The fit is remembered with its table: a run of two pairs an arm makes it, and the others have it.
    for batch_size, budget in ((1, 2 * len(scores)), (BATCH_SIZE, BUDGET), (BATCH_SIZE, 10 * BUDGET)):
        if budget > BUDGET and found[-1].loop > WORTH_REPEATING:
            found.append(None)
            break
        selector = create_selector(
            name, **sizes, batch_size=batch_size, budget=budget, variant="paper", **given
        )
        loop = _seconds(partial(_run, selector, scores))
        found.append(Timing(loop, loop + _seconds(selector.decision), _peak()))
    return found


def _run(selector, scores):
    round_ = 0
    while len(batch := selector.ask(round_rng(0, round_))):
        selector.tell(batch, scores[batch.arms, batch.examples])
        round_ += 1


def _time_plain_ucb_e(path):
    with np.load(path) as arrays:
        scores = arrays["scores"]
    return _seconds(lambda: plain_ucb_e(scores, budget=BUDGET, batch_size=BATCH_SIZE, seed=0))


def _time_plain_pulse(path):
    """Seconds of a whole run, from its first fit and the rounds up to and with the next."""
    with np.load(path) as arrays:
        scores, v = arrays["scores"], arrays["v"]
    rounds = plain_pulse(scores, v, batch_size=BATCH_SIZE, tau=TAU, seed=0)
    first = _seconds(lambda: next(rounds))
    later = _seconds(lambda: [next(rounds) for _ in range(TAU)])
    return first + later * (BUDGET / BATCH_SIZE - len(scores)) / TAU


def _time_lrf_round():
    """Median seconds of a round of UCB-E-LRF, seconds of the plain ensemble at the same fill, and MiB."""
    rng = np.random.default_rng(0)
    scores = np.clip(
        np.outer(rng.uniform(0.2, 0.8, ROUND_SHAPE[0]), rng.uniform(0.5, 1.2, ROUND_SHAPE[1]))
        + 0.2 * rng.standard_normal(ROUND_SHAPE),
        0.0,
        1.0,
    )
    selector = create_selector("ucb-e-lrf", n_arms=ROUND_SHAPE[0], n_examples=ROUND_SHAPE[1])
    observed = np.zeros(ROUND_SHAPE, dtype=bool)
    seconds, round_ = [], 0
    while len(seconds) < ROUNDS:
        start = time.perf_counter()
        batch = selector.ask(round_rng(0, round_))
        selector.tell(batch, scores[batch.arms, batch.examples])
        if observed.mean() > 0.05:
            seconds.append(time.perf_counter() - start)
        observed[batch.arms, batch.examples] = True
        round_ += 1
    options = {"members": 64, "sweeps": 10, "ridge": 0.1, "drop": 0.05, "rng": rng}
    peak = _peak()
    return float(np.median(seconds)), _seconds(lambda: plain_ensemble(scores, observed, **options)), peak


def _seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
