"""Text as every database can hold it, and paths and URLs as no shell has expanded them."""

import os
import re

_SQLITE = re.compile(r"(sqlite(?:\+\w+)?:///)(~.*)", re.DOTALL)

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def storable(text: str) -> str:
    """The text as every database can hold it."""
    if text.isascii():
        return text if "\0" not in text else text.replace("\0", REPLACEMENT)
    return text.replace("\0", REPLACEMENT).encode("utf-8", "replace").decode("utf-8")


def in_home(path: str) -> str:
    """The path with a leading `~` or `~user` replaced by the home folder.

    A path stays as it is if the working folder has something of this name, or there is no such home folder.
    """
    is_here = not path.startswith("~") or os.path.lexists(path.partition("/")[0])
    return path if is_here else os.path.expanduser(path)


def url_in_home(url: str) -> str:
    """The URL of a SQLite file with the home folder in the place of a leading `~`; any other as it is."""
    found = _SQLITE.fullmatch(url)
    return url if found is None else found[1] + in_home(found[2])
