"""Rows of a benchmark, printed as they come and kept as a table for people and one for programs."""

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.benchmarks.measurements import cpu_name

Row = dict[str, str]


def told(rows: Iterable[Row]) -> list[Row]:
    """All rows, each printed as soon as it is there."""
    found = []
    for row in rows:
        print(", ".join(f"{key}: {value}" for key, value in row.items()), flush=True)
        found.append(row)
    return found


def write(name: str, titles: Mapping[str, str], sections: Mapping[str, Sequence[Row]], folder: Path) -> None:
    """`name`.md and `name`.json in the folder; the rows of a section have the same keys."""
    folder.mkdir(parents=True, exist_ok=True)
    machine = f"{cpu_name()}, Python {platform.python_version()}"
    lines = [f"Measured on {machine}."]
    for part, rows in sections.items():
        heads = ["| " + " | ".join(rows[0]) + " |", "|---" * len(rows[0]) + "|"]
        lines += ["", f"## {titles[part]}", "", *heads]
        lines += ["| " + " | ".join(row.values()) + " |" for row in rows]
    (folder / f"{name}.md").write_text("\n".join(lines) + "\n")
    (folder / f"{name}.json").write_text(json.dumps({"machine": machine, "sections": sections}, indent=2))
    print(f"written to {folder / name}.md")
