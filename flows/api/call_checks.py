"""Checks of calls by programs: the URL of a database, and whether an event loop runs."""

import asyncio

from winnow.tasks.errors import SpecError


def require_url(storage: object) -> None:
    """Refuse a results database whose URL is not text.

    Raises:
        SpecError: With the remedy.
    """
    if not isinstance(storage, str):
        raise SpecError(f"storage is {storage!r}; give the URL of a database, such as 'sqlite:///winnow.db'")


def has_running_loop() -> bool:
    """Whether an event loop runs in this thread, as in a notebook cell, so that no second one can start."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
