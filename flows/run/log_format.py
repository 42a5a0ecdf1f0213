"""Write log lines to standard error: sentences for people, or one JSON object per line for programs.

All modules use the standard library's loggers below "winnow". A record has a sentence and the name of an
event; in JSON also the current campaign and round.
"""

import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import TextIO

from winnow.flows.exit_codes import exit_code_of
from winnow.flows.reports.output import tell
from winnow.tasks.text.printable import printable

ROOT = logging.getLogger("winnow")


class LogFormat(StrEnum):
    """Format of log lines."""

    text = "text"
    json = "json"


class LogLevel(StrEnum):
    """Lowest level that is logged."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


class RunContext(logging.Filter):
    """A filter that adds the current campaign and round to each record, in every thread."""

    def __init__(self) -> None:
        super().__init__()
        self.campaign: str | None = None
        self.round: int | None = None
        """Number of the current round, from 0 as in the database; None outside a round."""

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter`; every record passes."""
        for name, value in (("campaign", self.campaign), ("round", self.round)):
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


class TextLine(logging.Formatter):
    """Formatter that writes a record as one line: its level and message, without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        return f"{record.levelname.lower()}: {printable(record.getMessage()).replace(chr(10), ' ')}"


def _json_line() -> logging.Formatter:
    from winnow.flows.run.json_log import JsonLine

    return JsonLine()


class _StandardError(logging.StreamHandler[TextIO]):
    """Handler that writes to the current `sys.stderr`, which a live table replaces for some time."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


_json: ContextVar[RunContext | None] = ContextVar("json", default=None)


def json_context() -> RunContext | None:
    """The context of log records if the log is JSON; None if it is text."""
    return _json.get()


def notice(event: str, sentence: str) -> None:
    """Write a sentence to standard error; if the log is JSON, as a record with the event's name."""
    if json_context() is None:
        tell(sentence)
    else:
        ROOT.warning(sentence.strip(), extra={"event": event})


@contextmanager
def logged(format_: LogFormat, level: LogLevel | None = None) -> Generator[None, None, None]:
    """Write records logged inside the block to standard error.

    Args:
        format_: Format of the lines. In JSON, an error that ends the command is also logged as a line, and
            this function then exits.
        level: Lowest level that is written; None is warning for text and info for JSON.
    """
    context, handler = RunContext(), _StandardError()
    is_json = format_ is LogFormat.json
    handler.setFormatter(_json_line() if is_json else TextLine())
    handler.addFilter(context)
    before = ROOT.level, ROOT.propagate
    ROOT.setLevel((level or (LogLevel.info if is_json else LogLevel.warning)).upper())
    ROOT.propagate = False
    ROOT.addHandler(handler)
    token = _json.set(context if is_json else None)
    try:
        yield
    except Exception as error:
        if not is_json or (code := exit_code_of(error)) is None:
            raise
        from winnow.tasks.plugins.entry_points import PluginFailed

        trace = {"traceback": error.traceback} if isinstance(error, PluginFailed) else {}
        ROOT.error(str(error), extra={"event": "failed", **trace})
        sys.exit(code)
    finally:
        _json.reset(token)
        ROOT.removeHandler(handler)
        ROOT.level, ROOT.propagate = before
