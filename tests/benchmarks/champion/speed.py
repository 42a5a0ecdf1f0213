"""How long champion itself takes: seconds of the processor, in the process that runs it."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.benchmarks.score_worlds import dense_variant, drawn, leaderboard_factors, published_subset
from tests.benchmarks.tables import Row
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector


def measure(data: Path) -> Iterator[Row]:
    """1000 x 12032 to the stop, and rounds of 200 arms on a table of prompts that are much alike."""
    rng = np.random.default_rng(0)
    alike = rng.normal(size=(200, 2000)) < rng.normal(size=2000) + rng.normal(0.0, 0.35, (200, 1))
    yield _timed("200 x 2000, alike", alike.astype(np.float64))
    if (data / "leaderboard_factors.npz").exists():
        table = drawn(*leaderboard_factors(data), np.random.default_rng(1))
        yield _timed("1000 x 12032, gap 0.02", published_subset(table, 0.02).scores)
        dense = dense_variant(*leaderboard_factors(data), table, np.random.default_rng(2))
        yield _timed("1000 x 12032, dense", dense.scores)


def _timed(name: str, scores: np.ndarray) -> Row:
    n_arms, n_examples = scores.shape
    selector = create_selector("champion", n_arms=n_arms, n_examples=n_examples, batch_size=64, delta=0.05)
    seconds, comparisons = [], 0
    while True:
        start = time.process_time()
        batch = selector.ask(round_rng(0, len(seconds)))
        if len(batch) == 0:
            break
        selector.tell(batch, scores[batch.arms, batch.examples])
        seconds.append(time.process_time() - start)
        comparisons += len(batch)
    return {
        "table": name,
        "comparisons": f"{comparisons} in {len(seconds)} rounds",
        "to the stop": f"{sum(seconds):.2f} s",
        "median ask and tell": f"{1e3 * np.median(seconds):.2f} ms",
        "a comparison": f"{1e6 * sum(seconds) / comparisons:.0f} us",
        "longest": f"{1e3 * max(seconds):.0f} ms",
        "peak of the process": f"{_peak():.0f} MiB with its table",
    }


def _peak() -> float:
    """The most memory this process ever had, in MiB."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024
