"""Common ground of programs that call Winnow: how they name a database, and where they stand."""

import asyncio

from winnow.tasks.errors import SpecError


def require_url(storage: object) -> None:
    """Refuse what is no text in the place of a results database.

    Raises:
        SpecError: With the remedy.
    """
    if not isinstance(storage, str):
        raise SpecError(f"storage is {storage!r}; give the URL of a database, such as 'sqlite:///winnow.db'")


def has_running_loop() -> bool:
    """Whether this thread has an event loop at work, as a cell of a notebook has: no other one can begin."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
