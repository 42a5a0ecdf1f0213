"""Calls of third-party code; any exception becomes an error that names the plug-in.

A plug-in's own traceback is written only to the campaign's log folder. Its exception can be anything: a
message of many lines or megabytes, `SystemExit`, an exception that cannot be printed. Only exceptions of
signal handlers while a plug-in runs, as after Ctrl-C or SIGTERM, are passed on unchanged.
"""

import datetime as dt
import inspect
import linecache
import signal
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from winnow.algorithms.state.plugin_registry import Registered, in_words, plugins
from winnow.tasks.errors import WinnowError
from winnow.tasks.plugins.own_files import open_to_append

FILE = "plugins.log"
"""Name of the log file in a campaign's log folder."""

MOST_TRACEBACK = 65_536
"""Maximum length of a stored traceback, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """Identification of a plug-in in messages."""

    kind: str
    """The kind of plug-in, such as "judge"."""
    name: str
    """The plug-in's name in a spec."""
    location: str
    """Object of the entry point, as "module:name"."""

    def __str__(self) -> str:
        return f"the {self.kind} {self.name!r} ({self.location})"


class PluginLog:
    """Log file for tracebacks of a campaign's plug-ins, with one per line of code that raises.

    Args:
        folder: The campaign's log folder; created if needed.
        campaign: The campaign's name.
    """

    def __init__(self, folder: Path, campaign: str) -> None:
        self._path = folder / FILE
        self.campaign = campaign
        self._seen: dict[str, bool] = {}

    def keeps(self, sentence: str, raised_at: str, trace: str) -> bool:
        """Store a traceback; return whether the file has it, or one from the same place."""
        if raised_at not in self._seen:
            self._seen[raised_at] = False
            with suppress(OSError):
                with open_to_append(self._path) as file:
                    line = f"{dt.datetime.now(dt.UTC).isoformat()} {sentence}\n{trace}\n"
                    file.write(line.encode("utf-8", "backslashreplace"))
                self._seen[raised_at] = True
        return self._seen[raised_at]

    @property
    def folder(self) -> Path:
        """The campaign's log folder."""
        return self._path.parent

    def __str__(self) -> str:
        return str(self._path)


_log: ContextVar[PluginLog | None] = ContextVar("plugin_log", default=None)


@contextmanager
def plugin_log(folder: Path, campaign: str) -> Iterator[None]:
    """Store tracebacks of plug-ins called in the block in a campaign's log folder."""
    token = _log.set(PluginLog(folder, campaign))
    try:
        yield
    finally:
        _log.reset(token)


class PluginFailed(WinnowError):
    """A plug-in raised an exception.

    Attributes:
        what: The message without its remedy.
        raised_at: The kind of exception and the plug-in's line.
        traceback: The plug-in's own traceback.
    """

    def __init__(self, plugin: Plugin, error: BaseException) -> None:
        self.traceback = _formatted(error)
        place = _place(plugin, error)
        self.raised_at = f"{type(error).__name__} {place}"
        what = f"{plugin} raised {in_words(error)}{place and f' ({place})'}"
        self.what = logged(what, self.raised_at, self.traceback)
        super().__init__(f"{self.what}; {remedy()}")


def logged(what: str, raised_at: str, trace: str) -> str:
    """Store a traceback in the campaign's log, and add the log's path to a sentence.

    The sentence is unchanged outside of a campaign, or if the log cannot be written.
    """
    log = _log.get()
    if log is not None and log.keeps(what, raised_at, trace):
        return f"{what}; its traceback is in {log}"
    return what


def log_folder() -> Path | None:
    """The log folder of the running campaign; None outside of a campaign."""
    log = _log.get()
    return None if log is None else log.folder


def remedy() -> str:
    """What to do about a failing plug-in, for the end of a message."""
    if (log := _log.get()) is None:
        return "fix it or choose another"
    if _is_named_by_program():  # which the command line cannot load
        return (
            "fix the cause and call winnow.run (or winnow.select) again; or fix its code and use another "
            "name, which reuses all outputs"
        )
    return (
        f"fix the cause, then run winnow resume {log.campaign}; or fix its code and run winnow run SPEC "
        "--fork NEW_NAME, which reuses all outputs"
    )


GROUPS = tuple(f"winnow.{each}" for each in ("judges", "pair_judges", "selectors", "engines", "embedders"))
"""Entry-point groups through which packages extend Winnow."""


def _is_named_by_program() -> bool:
    """Whether the running program has registered a plug-in by a decorator."""
    return any(isinstance(entry, Registered) for group in GROUPS for entry in plugins(group).values())


@contextmanager
def calling(plugin: Plugin, *passed_on: type[BaseException]) -> Generator[None, None, None]:
    """Turn exceptions in the block into errors that name the plug-in.

    Args:
        plugin: The plug-in whose code is called.
        passed_on: Exceptions that its protocol allows, which are passed on unchanged.

    Raises:
        PluginFailed: Instead of any other exception.
    """
    agreed: tuple[type[BaseException], ...] = (PluginFailed, *passed_on)
    try:
        yield
    except agreed:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and _came_from_outside(error):
            raise
        # From None, so that the plug-in's own exception is not printed as well.
        raise PluginFailed(plugin, error) from None


def _came_from_outside(error: BaseException) -> bool:
    """Whether a signal handler raised the exception: Python's, Winnow's or Prefect's.

    An exception of Python's own handler has no frame. While a flow runs, Prefect receives SIGTERM and raises
    its own exception.
    """
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    if isinstance(error, KeyboardInterrupt) and signal.default_int_handler in handlers:
        return True
    codes = [getattr(getattr(each, "__func__", each), "__code__", None) for each in handlers]
    return [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)][-1] in codes


def _place(plugin: Plugin, error: BaseException) -> str:
    """File and line of the plug-in's own module in a traceback, the last one; empty if it has none."""
    module = plugin.location.partition(":")[0]
    lines = [
        f"{Path(frame.f_code.co_filename).name}, line {line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__") == module
    ]
    return lines[-1] if lines else ""


def _formatted(error: BaseException) -> str:
    linecache.checkcache()
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException:  # its attributes are third-party code, too
        text = "".join(traceback.format_tb(error.__traceback__)) + in_words(error)
    if len(text) <= MOST_TRACEBACK:
        return text
    half = MOST_TRACEBACK // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters are left out ...]\n{text[-half:]}"


def parameters_of(factory: Callable[..., object]) -> list[inspect.Parameter]:
    """Parameters of third-party code; a parameter without an available type accepts anything."""
    try:
        found = inspect.signature(factory, eval_str=True)
    except NameError:
        found = inspect.signature(factory)

    def is_said(hint: object) -> bool:
        return hint is not inspect.Parameter.empty and not isinstance(hint, str)

    return [
        each if is_said(each.annotation) else each.replace(annotation=object)
        for each in found.parameters.values()
    ]
