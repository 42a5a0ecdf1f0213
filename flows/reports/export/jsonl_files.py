"""JSON lines: one object a row, in UTF-8."""

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from winnow.tasks.queries.columns import Kind

_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
"""Some readers end a line here too; JSON may write them as escapes, which only texts can hold."""


def write_jsonl(path: Path, _: Mapping[str, Kind], rows: Iterable[Mapping[str, Any]]) -> int:
    """Write rows; how many they were."""
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        for row in rows:
            line = json.dumps(row, default=_jsonable, ensure_ascii=False)
            file.write(line.translate(_LINE_ENDS) + "\n")
            count += 1
    return count


def _jsonable(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, dt.datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not a JSON value")
