"""How long a user waits for `winnow --help` and `winnow status`."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.measurements import Measurement

RUNS = 7


def measure(demo: Path) -> Iterator[Measurement]:
    command = str(Path(sys.executable).with_name("winnow"))
    for arguments in (["--help"], ["status", "--storage", f"sqlite:///{demo}/winnow.db"]):
        seconds = [_seconds([command, *arguments]) for _ in range(RUNS)]
        yield Measurement(
            f"winnow {arguments[0]}",
            f"{statistics.median(seconds):.2f} s "
            f"(median of {RUNS}, {min(seconds):.2f} to {max(seconds):.2f})",
            "under 0.5 s",
        )


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start
