"""Environment variables of agents: read by name, and never shown."""

import os
import re
from collections.abc import Iterable, Mapping

NAME = re.compile(r"\$?([A-Za-z_][A-Za-z0-9_]*)")

SHOWN = 300
"""Characters of what an agent says that a reason shows."""

SHORTEST_SECRET = 4
"""Characters of a value that is hidden: of a shorter one, every word would be."""


def variable_values(names: Iterable[str]) -> dict[str, str]:
    """Values of environment variables by name; raises `ValueError` for one that is not set."""
    found = {name: os.environ.get(name, "").strip() for name in names}
    for name, value in found.items():
        if not value:
            raise ValueError(f"the environment variable {name} is not set; export it")
    return found


def shown(text: str, hidden: Mapping[str, str], *, is_beginning: bool = False) -> str:
    """A whole text on one line without the values of variables; of a long one the end, or the beginning."""
    for name, value in sorted(hidden.items(), key=lambda each: -len(each[1])):  # one may begin another
        if len(value) >= SHORTEST_SECRET:
            text = text.replace(value, f"${name}")
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    if len(line) <= SHOWN:
        return line
    return f"{line[: SHOWN - 1]}…" if is_beginning else f"…{line[-SHOWN + 1 :]}"
