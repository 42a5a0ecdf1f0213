"""The log of a run, on standard error: sentences for people, or one JSON value per line for machines.

Everything in Winnow logs through the standard library, to loggers beneath "winnow". An event has a name for
machines and a sentence for people, and in JSON also the current campaign and round.
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
    """The format in which a run's log is written."""

    text = "text"
    json = "json"


class LogLevel(StrEnum):
    """The lowest level that a run logs."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


class RunContext(logging.Filter):
    """Adds the current campaign and round to each record, in every thread."""

    def __init__(self) -> None:
        super().__init__()
        self.campaign: str | None = None
        self.round: int | None = None
        """The round, counted from 0 as in the database; None outside a round."""

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter`; filters nothing out."""
        for name, value in (("campaign", self.campaign), ("round", self.round)):
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


class TextLine(logging.Formatter):
    """Formats a record as one sentence without control characters and line breaks."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        return f"{record.levelname.lower()}: {printable(record.getMessage()).replace(chr(10), ' ')}"


def _json_line() -> logging.Formatter:
    from winnow.flows.run.json_log import JsonLine

    return JsonLine()


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to the current standard error, which a live table replaces for a while."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


_json: ContextVar[RunContext | None] = ContextVar("json", default=None)


def json_context() -> RunContext | None:
    """The context of log records if lines are JSON; otherwise None."""
    return _json.get()


def notice(event: str, sentence: str) -> None:
    """Write a notice to standard error, as a line of the log if the log is JSON."""
    if json_context() is None:
        tell(sentence)
    else:
        ROOT.warning(sentence.strip(), extra={"event": event})


@contextmanager
def logged(format_: LogFormat, level: LogLevel | None = None) -> Generator[None, None, None]:
    """Write records logged inside the block to standard error.

    Args:
        format_: The format; in JSON, errors that end a command are lines of the log too, and end the command
            here.
        level: The lowest level written; by default warnings for text, and every round as well for JSON.
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
