"""Objects by their addresses, plug-ins that programs or packages name, and their errors in words."""

import os
import sys
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

_registered: dict[tuple[str, str], "Registered"] = {}


class Registered(EntryPoint):
    """An object of a running program, found by its name as those of installed packages are.

    Attributes:
        source: The text that defines it.
    """

    def __init__(self, name: str, group: str, plugin: object, *, value: str, source: str) -> None:
        super().__init__(name=name, value=value, group=group)
        vars(self).update(plugin=plugin, source=source)  # entry points refuse to be changed

    def load(self) -> object:
        """Return the object."""
        return vars(self)["plugin"]


def object_at(address: str) -> Any:  # noqa: ANN401 -- an address says nothing of a type
    """The object at an address "module:name" of a registry; its module is imported now."""
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)


def register(entry: Registered) -> None:
    """Have an entry found from now on, in the place of an earlier one of its name."""
    _registered[entry.group, entry.name] = entry


def plugins(group: str) -> dict[str, EntryPoint]:
    """Every plug-in of a group by its name; those that this program registered come before installed ones."""
    installed = _installed(group, tuple(map(_changed, sys.path)))
    ours = {name: entry for (of_group, name), entry in _registered.items() if of_group == group}
    return installed | ours


def _changed(place: str) -> tuple[str, int | None]:
    """A place of the import path, and when something was last added or removed there, in nanoseconds."""
    try:
        return place, os.stat(place or os.curdir).st_mtime_ns
    except OSError:  # nothing is there
        return place, None


@lru_cache(maxsize=8)
def _installed(group: str, path: tuple[tuple[str, int | None], ...]) -> dict[str, EntryPoint]:
    """Entry points of all that is installed along the import path as it is now, by name.

    A campaign asks for them often, and hundreds of installed packages take long to read.
    """
    return {entry.name: entry for entry in entry_points(group=group)}


MOST_CHARACTERS = 300
"""Characters of a message, at most; the rest is left out."""


def in_words(error: BaseException) -> str:
    """The kind of an exception and its message, in one line of at most about `MOST_CHARACTERS` characters.

    What would move a cursor or begin a line is shown as Python writes it in a string.
    """
    kind = _one_line(type(error).__name__)
    try:
        message = str(error)[: MOST_CHARACTERS + 1]
    except BaseException:  # its __str__ is code of others as well
        return f"{kind}, whose message cannot be printed"
    if len(message) > MOST_CHARACTERS:
        message = message[:MOST_CHARACTERS] + "..."
    return f"{kind}: {shown}" if (shown := _one_line(message)) else kind


def _one_line(text: str) -> str:
    words = " ".join(text.split())
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in words)
