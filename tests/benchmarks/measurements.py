"""One measured figure, and the machine it belongs to."""

import os
from pathlib import Path
from typing import NamedTuple


class Measurement(NamedTuple):
    what: str
    value: str
    target: str

    def line(self) -> str:
        return f"{self.what}: {self.value} (target {self.target})"


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return f"{line.partition(':')[2].strip()}, {os.cpu_count()} cores"
    return f"unknown CPU, {os.cpu_count()} cores"
