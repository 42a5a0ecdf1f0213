"""Objects by import path, plug-ins of programs and packages, and one-line error texts."""

import os
import sys
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

_registered: dict[tuple[str, str], "Registered"] = {}


class Registered(EntryPoint):
    """An object that the running program registered, found by name like an installed plug-in.

    Attributes:
        source: The source code that defines it.
    """

    def __init__(self, name: str, group: str, plugin: object, *, value: str, source: str) -> None:
        super().__init__(name=name, value=value, group=group)
        vars(self).update(plugin=plugin, source=source)  # entry points refuse changes

    def load(self) -> object:
        """Return the object."""
        return vars(self)["plugin"]


def object_at(address: str) -> Any:  # noqa: ANN401 -- an address says nothing of a type
    """Import the object at an address "module:name"."""
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)


def register(entry: Registered) -> None:
    """Register a plug-in, replacing an earlier one of its name."""
    _registered[entry.group, entry.name] = entry


def plugins(group: str) -> dict[str, EntryPoint]:
    """All plug-ins of a group by name; those registered by this program override installed ones."""
    installed = _installed(group, tuple(map(_changed, sys.path)))
    ours = {name: entry for (of_group, name), entry in _registered.items() if of_group == group}
    return installed | ours


def _changed(place: str) -> tuple[str, int | None]:
    """An entry of the import path with the time of its last change, in nanoseconds."""
    try:
        return place, os.stat(place or os.curdir).st_mtime_ns
    except OSError:  # the path does not exist
        return place, None


@lru_cache(maxsize=8)
def _installed(group: str, path: tuple[tuple[str, int | None], ...]) -> dict[str, EntryPoint]:
    """Entry points of all packages installed along the current import path, by name.

    Cached, because a campaign needs them often and reading hundreds of packages is slow.
    """
    return {entry.name: entry for entry in entry_points(group=group)}


MOST_CHARACTERS = 300
"""Largest number of characters of a message; the rest is cut off."""


def in_words(error: BaseException) -> str:
    """Kind and message of an exception, in one line of at most about `MOST_CHARACTERS` characters.

    Control characters and line breaks are escaped as in a Python string.
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
