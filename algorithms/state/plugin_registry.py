"""Objects by import path, plug-ins, and exceptions as one line of text.

Plug-ins come from programs and packages.
"""

import os
import sys
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

_registered: dict[tuple[str, str], "Registered"] = {}


class Registered(EntryPoint):
    """A plug-in registered by the running program.

    It is found by name like an installed plug-in.

    Attributes:
        source: The source code that defines the object.
    """

    def __init__(self, name: str, group: str, plugin: object, *, value: str, source: str) -> None:
        super().__init__(name=name, value=value, group=group)
        vars(self).update(plugin=plugin, source=source)  # `EntryPoint` blocks assignment to attributes

    def load(self) -> object:
        """Return the object."""
        return vars(self)["plugin"]


def object_at(address: str) -> Any:  # noqa: ANN401 -- an address does not give a type
    """Import and return the object at an address "module:name"."""
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)


def register(entry: Registered) -> None:
    """Register a plug-in; it replaces an earlier one with the same group and name."""
    _registered[entry.group, entry.name] = entry


def plugins(group: str) -> dict[str, EntryPoint]:
    """All plug-ins of a group by name.

    Plug-ins registered by this program override installed ones.
    """
    installed = _installed(group, tuple(map(_change_time, sys.path)))
    ours = {name: entry for (of_group, name), entry in _registered.items() if of_group == group}
    return installed | ours


def _change_time(place: str) -> tuple[str, int | None]:
    """An entry of the import path with its modification time in nanoseconds.

    None if it does not exist.
    """
    try:
        return place, os.stat(place or os.curdir).st_mtime_ns
    except OSError:  # the path does not exist
        return place, None


@lru_cache(maxsize=8)
def _installed(group: str, path: tuple[tuple[str, int | None], ...]) -> dict[str, EntryPoint]:
    """Entry points of a group in all installed packages, by name.

    Packages are those along the import path. Cached, because a campaign needs them often and reading hundreds
    of packages is slow.
    """
    return {entry.name: entry for entry in entry_points(group=group)}


MOST_CHARACTERS = 300
"""Maximum length of a message in characters; the rest is cut off."""


def in_words(error: BaseException) -> str:
    """Type and message of an exception, as one line.

    It has about `MOST_CHARACTERS` characters at most. Control characters are escaped as in a Python string;
    line breaks become spaces.
    """
    kind = _one_line(type(error).__name__)
    try:
        message = str(error)[: MOST_CHARACTERS + 1]
    except BaseException:  # its __str__ is third-party code too
        return f"{kind}, whose message cannot be printed"
    if len(message) > MOST_CHARACTERS:
        message = message[:MOST_CHARACTERS] + "..."
    return f"{kind}: {shown}" if (shown := _one_line(message)) else kind


def _one_line(text: str) -> str:
    words = " ".join(text.split())
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in words)
