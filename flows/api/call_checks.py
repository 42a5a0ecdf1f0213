"""Checks of arguments that programs pass, and of a running event loop."""

import asyncio
import os
import reprlib
from numbers import Integral

from winnow.tasks.errors import SpecError


def require_url(storage: object) -> None:
    """Refuse a database URL that is not a str.

    Raises:
        SpecError: If the URL is refused; the message has an example.
    """
    if not isinstance(storage, str):
        raise SpecError(f"storage is {storage!r}; give the URL of a database, such as 'sqlite:///winnow.db'")


def require_text(name: str, value: object, what: str) -> None:
    """Refuse an argument that is neither a str nor a path, or contains NUL.

    Args:
        name: Name of the argument.
        value: Its value.
        what: What to give, for the message.

    Raises:
        SpecError: If the value is refused.
    """
    if not isinstance(value, str | os.PathLike) or "\0" in str(value):
        raise SpecError(f"{name} is {reprlib.repr(value)}; give {what}")


def require_count(name: str, value: object, *, at_least: int) -> None:
    """Refuse an argument that is not a whole number, or is below a minimum.

    Raises:
        SpecError: If the value is refused; the message names the minimum.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise SpecError(f"{name} is {reprlib.repr(value)}; give a whole number of at least {at_least}")


def has_running_loop() -> bool:
    """Whether an event loop runs in this thread, as in a notebook cell; a second loop cannot start there."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
