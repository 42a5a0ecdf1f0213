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


def decisions() -> Iterator[Row]:
    """How long decisions of 10 000 arms take, scores 0 and 1 or any, in the first rounds."""
    for selector, params in (("champion", {"delta": 0.05}), ("halving", {})):
        for label in ("0 and 1", "any"):
            yield _decided(selector, label, params)


def _decided(name: str, label: str, params: dict[str, object]) -> Row:
    scores = np.random.default_rng(0).random((10_000, 500), dtype=np.float32)
    scores = scores.round() if label == "0 and 1" else scores
    selector = create_selector(name, n_arms=10_000, n_examples=500, batch_size=64, **params)
    row = {"selector": name, "scores": label}
    for number in range(4):
        batch = selector.ask(round_rng(0, number))
        selector.tell(batch, scores[batch.arms, batch.examples])
        start = time.process_time()
        selector.decision()
        row[f"round {number}"] = f"{1e3 * (time.process_time() - start):.0f} ms"
    return row


def _peak() -> float:
    """The most memory this process ever had, in MiB."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024
