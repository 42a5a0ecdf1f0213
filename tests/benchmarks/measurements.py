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
    """The processor: name, family and model, as machines call several generations alike; and its cores."""
    lines = (line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines())
    told = {key.strip(): value.strip() for key, _, value in lines}
    if "model name" not in told:
        return f"unknown CPU, {os.cpu_count()} cores"
    kind = f" (family {told['cpu family']}, model {told['model']})" if "cpu family" in told else ""
    return f"{told['model name']}{kind}, {os.cpu_count()} cores"
