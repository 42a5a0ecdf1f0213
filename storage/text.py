"""Text that every database can store, and expansion of `~` in paths and URLs."""

import os
import re

_SQLITE = re.compile(r"(sqlite(?:\+\w+)?:///)(~.*)", re.DOTALL)

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def storable(text: str) -> str:
    """Replace characters that some database cannot store.

    NUL becomes U+FFFD, an unpaired surrogate becomes a question mark.
    """
    if text.isascii():
        return text if "\0" not in text else text.replace("\0", REPLACEMENT)
    return text.replace("\0", REPLACEMENT).encode("utf-8", "replace").decode("utf-8")


def in_home(path: str) -> str:
    """Replace a leading `~` or `~user` of a path by the home folder.

    A path is unchanged if the working folder has an entry of this name, or the home folder does not exist.
    """
    is_here = not path.startswith("~") or os.path.lexists(path.partition("/")[0])
    return path if is_here else os.path.expanduser(path)


def url_in_home(url: str) -> str:
    """Replace a leading `~` in the URL of a SQLite file by the home folder.

    Other URLs are unchanged.
    """
    found = _SQLITE.fullmatch(url)
    return url if found is None else found[1] + in_home(found[2])
