"""Code of others that Winnow calls, and what becomes of whatever it raises: a sentence that names it.

A plug-in's own traceback goes to the campaign's log folder and nowhere else. What it raises may be anything:
a message of many lines or megabytes, `SystemExit`, an exception that cannot be printed. Only what a signal's
handler raises while a plug-in runs, as at Ctrl-C or SIGTERM, is passed on as it is.
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
"""Within a campaign's log folder."""

MOST_TRACEBACK = 65_536
"""Characters that are kept of one traceback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A plug-in, as users know it."""

    kind: str
    """The kind of plug-in, such as "judge"."""
    name: str
    """Its name in a spec."""
    location: str
    """The object that its entry point names, "module:name"."""

    def __str__(self) -> str:
        return f"the {self.kind} {self.name!r} ({self.location})"


class PluginLog:
    """The file in which a campaign keeps what its plug-ins raised; each line of code that raises once.

    Args:
        folder: The campaign's log folder; made when needed.
        campaign: Its name.
    """

    def __init__(self, folder: Path, campaign: str) -> None:
        self._path = folder / FILE
        self.campaign = campaign
        self._seen: dict[str, bool] = {}

    def keeps(self, sentence: str, raised_at: str, trace: str) -> bool:
        """Write a traceback down; say whether it is in the file, or one from the same place is."""
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
    """Have what plug-ins raise inside the block kept in a campaign's log folder."""
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
        traceback: The plug-in's own.
    """

    def __init__(self, plugin: Plugin, error: BaseException) -> None:
        self.traceback = _formatted(error)
        place = _place(plugin, error)
        self.raised_at = f"{type(error).__name__} {place}"
        what = f"{plugin} raised {in_words(error)}{place and f' ({place})'}"
        self.what = logged(what, self.raised_at, self.traceback)
        super().__init__(f"{self.what}; {remedy()}")


def logged(what: str, raised_at: str, trace: str) -> str:
    """A sentence on what happened, and on where its traceback was written down, if it was.

    Args:
        what: The event in words.
        raised_at: The line of code that raised, of which one traceback is kept.
        trace: The traceback.
    """
    log = _log.get()
    if log is not None and log.keeps(what, raised_at, trace):
        return f"{what}; its traceback is in {log}"
    return what


def log_folder() -> Path | None:
    """The folder in which the campaign that is run keeps its logs; None outside of one."""
    log = _log.get()
    return None if log is None else log.folder


def remedy() -> str:
    """The remedy for a plug-in that fails, in words."""
    if (log := _log.get()) is None:
        return "fix it or choose another"
    if _is_named_by_program():  # which the command line knows nothing of
        return (
            "fix the cause and call winnow.run (or winnow.select) again; or fix its code and use another "
            "name, which reuses all outputs"
        )
    return (
        f"fix the cause, then run winnow resume {log.campaign}; or fix its code and run winnow run SPEC "
        "--fork NEW_NAME, which reuses all outputs"
    )


GROUPS = tuple(f"winnow.{each}" for each in ("judges", "pair_judges", "selectors", "engines", "embedders"))
"""Entry points by which others add to Winnow."""


def _is_named_by_program() -> bool:
    """Whether the program that runs has named any plug-in by a decorator."""
    return any(isinstance(entry, Registered) for group in GROUPS for entry in plugins(group).values())


@contextmanager
def calling(plugin: Plugin, *passed_on: type[BaseException]) -> Generator[None, None, None]:
    """Name the plug-in that raises inside the block.

    Args:
        plugin: The plug-in whose code is called.
        passed_on: Exceptions that it may raise by agreement, which are left as they are.

    Raises:
        PluginFailed: In place of anything else.
    """
    agreed: tuple[type[BaseException], ...] = (PluginFailed, *passed_on)
    try:
        yield
    except agreed:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and _came_from_outside(error):
            raise
        # From None: whoever prints this one must not print the plug-in's own as well.
        raise PluginFailed(plugin, error) from None


def _came_from_outside(error: BaseException) -> bool:
    """Whether a signal's handler raised it: Python's, whose frame is not seen, Winnow's or Prefect's.

    While a flow runs, SIGTERM comes to Prefect, which raises an exception of its own.
    """
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    if isinstance(error, KeyboardInterrupt) and signal.default_int_handler in handlers:
        return True
    codes = [getattr(getattr(each, "__func__", each), "__code__", None) for each in handlers]
    return [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)][-1] in codes


def _place(plugin: Plugin, error: BaseException) -> str:
    """The last line of the plug-in's own module that was reached; empty if none was."""
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
    except BaseException:  # its attributes are code of others, too
        text = "".join(traceback.format_tb(error.__traceback__)) + in_words(error)
    if len(text) <= MOST_TRACEBACK:
        return text
    half = MOST_TRACEBACK // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters are left out ...]\n{text[-half:]}"


def parameters_of(factory: Callable[..., object]) -> list[inspect.Parameter]:
    """The parameters of what a stranger wrote; one whose type is not told, or not there, takes anything."""
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
