"""Checks of calls by programs: the URL of a database, and whether an event loop runs."""

import asyncio

from winnow.tasks.errors import SpecError


def require_url(storage: object) -> None:
    """Refuse a results database that is not given as a text.

    Raises:
        SpecError: With the remedy.
    """
    if not isinstance(storage, str):
        raise SpecError(f"storage is {storage!r}; give the URL of a database, such as 'sqlite:///winnow.db'")


def has_running_loop() -> bool:
    """Whether an event loop runs in this thread, as in a cell of a notebook: no other one can begin there."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
