"""What is said on standard output and standard error, where not rows are written."""

import contextlib
import datetime as dt
import json
import sys
from decimal import Decimal
from typing import Any


def print_json(value: Any) -> None:  # noqa: ANN401 -- any JSON value
    """Print one JSON value."""
    text = json.dumps(value, default=_jsonable, indent=2, ensure_ascii=False)
    print(escaped(text) if sys.stdout.isatty() else text)


def tell(sentence: str) -> None:
    """Print to standard error what a run goes on without where nobody reads it, or its disk is full."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(sentence, file=sys.stderr, flush=True)


def escaped(text: str) -> str:
    """JSON in which what is not printable stands as JSON escapes it, but for the ends of its lines."""
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def _jsonable(value: Any) -> Any:  # noqa: ANN401 -- whatever a database holds
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value.hex() if isinstance(value, bytes) else str(value)
