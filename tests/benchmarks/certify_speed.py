"""How fast certificates are, beside the published algorithm step by step in the same run."""

import multiprocessing
import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from tests.benchmarks.certify_plain import plain_log_e_values, plain_portfolio, plain_wsr
from tests.benchmarks.certify_toy import FACTORS, outcomes_of
from winnow.algorithms.certify.e_values import EValues
from winnow.algorithms.certify.label_record import effective_losses
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector
from winnow.tasks.simulation.simulate import THREAD_SETTINGS

ALPHA, LEVEL = 0.1, 0.1  # the risk of `outcomes_of`: candidates stay open, and all labels are used
SMALL, LARGE, LONG = (25, 200), (1_000, 10_000), (1, 1_000_000)
"""Candidates and labels."""
AT_ONCE = 100
"""Labels per candidate that are told together where they are many."""
PLAIN_BETS = {
    "up": lambda labels: plain_portfolio(ALPHA),
    "wsr": lambda labels: plain_wsr(ALPHA, LEVEL, labels),
}
"""The published rules, by the number of labels."""
PLAIN = 2
"""Candidates of the plain implementation, whose time is the same for each."""


def measure_speed() -> Iterator[dict[str, str]]:
    """Rows of what, seconds, memory, reference and target; each measured in a process of its own.

    Everything has one thread, and seconds are those of the processor.
    """
    os.environ.update(dict.fromkeys(THREAD_SETTINGS, "1"))  # what is spawned takes it over
    for betting in ("star", "up", "wsr", "mixture"):
        yield _alone(_beside_plain if betting in PLAIN_BETS else _without_plain, betting)
        for intervals, target in ((False, "0.1 s"), (True, "-")):
            what = f"selector, batches of 32 pairs, {'with' if intervals else 'without'} intervals"
            seconds, peak = _alone(_time_selector, betting, SMALL, 32, intervals)
            yield _row(what, betting, SMALL, seconds, peak, target)
        seconds, peak = _alone(_time_e_values, betting, LARGE)
        yield _row("e-values", betting, LARGE, seconds, peak, "60 s and 2 GB")
        what = f"selector, batches of {AT_ONCE} labels, without intervals"
        seconds, peak = _alone(_time_selector, betting, LARGE, AT_ONCE * LARGE[0], False)
        yield _row(what, betting, LARGE, seconds, peak, "60 s and 2 GB")
        seconds, peak = _alone(_time_e_values, betting, LONG)
        yield _row("e-values", betting, LONG, seconds, peak, "-")


def _beside_plain(betting: str) -> dict[str, str]:
    seconds, peak, plain, error = _time_beside_plain(betting)
    beside = f"{plain:.1f} s, {plain / seconds:.0f} times as long; largest relative difference {error:.0e}"
    return _row("e-values", betting, SMALL, seconds, peak, "0.1 s", beside)


def _without_plain(betting: str) -> dict[str, str]:
    return _row("e-values", betting, SMALL, *_time_e_values(betting, SMALL), "0.1 s")


def _row(
    what: str,
    betting: str,
    size: tuple[int, int],
    seconds: float,
    peak: float,
    target: str,
    beside: str = "-",
) -> dict[str, str]:
    return {
        "what": what,
        "betting": betting,
        "candidates x labels": f"{size[0]} x {size[1]}",
        "CPU seconds": f"{seconds:.3f}",
        "microseconds per candidate and label": f"{1e6 * seconds / size[0] / size[1]:.2f}",
        "peak memory": f"{peak:.0f} MiB",
        "plain": beside,
        "bar": target,
    }


def _alone(function, *arguments):
    """What a function returns in a fresh process, whose memory is its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _peak() -> float:
    """The most memory this process ever had, in MiB."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def _evidence(betting, size):
    return EValues(size[0], FACTORS, ALPHA, betting=betting, level=LEVEL, horizon=size[1])


def _time_beside_plain(betting):
    """Our seconds and MiB, those of the plain implementation, and by how much the e-values differ."""
    arms, labels = SMALL
    outcomes = outcomes_of(0.9, arms, labels)
    evidence = _evidence(betting, SMALL)
    start = time.process_time()
    path = evidence.update(slice(None), effective_losses(outcomes, FACTORS))
    seconds, peak = time.process_time() - start, _peak()
    bets = PLAIN_BETS[betting](labels)
    start = time.process_time()
    expected = [plain_log_e_values(outcomes[arm], FACTORS, ALPHA, bets) for arm in range(PLAIN)]
    plain = (time.process_time() - start) * arms / PLAIN
    return seconds, peak, plain, np.abs(np.expm1(path[:PLAIN] - expected)).max()


def _time_e_values(betting, size):
    arms, labels = size
    evidence, seconds = _evidence(betting, size), 0.0
    for seed, _ in enumerate(range(0, labels, AT_ONCE)):
        outcomes = outcomes_of(0.9, arms, AT_ONCE, seed)
        start = time.process_time()
        evidence.update(slice(None), effective_losses(outcomes, FACTORS))
        seconds += time.process_time() - start
    assert np.isfinite(evidence.log_peaks).all()
    return seconds, _peak()


def _time_selector(betting, size, batch_size, intervals):
    """Seconds of asking, telling and deciding, and MiB with the losses of all rounds that are told."""
    arms, labels = size
    selector = create_selector(
        "r-autoeval-plus",
        n_arms=arms,
        n_examples=labels,
        alpha=ALPHA,
        delta=LEVEL,
        betting=betting,
        procedure="bonferroni",
        batch_size=batch_size,
        intervals=intervals,
    )
    round_, seconds = 0, 0.0
    while True:
        start = time.process_time()
        batch = selector.ask(round_rng(0, round_))
        seconds += time.process_time() - start
        if not len(batch):
            break
        outcomes = outcomes_of(0.9, 1, len(batch), seed=round_)[0]
        start = time.process_time()
        selector.tell(batch, outcomes)
        seconds += time.process_time() - start
        round_ += 1
    start = time.process_time()
    assert selector.decision().reason == "none-certified"
    return seconds + time.process_time() - start, _peak()
