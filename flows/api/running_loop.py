"""Whether the thread that calls has an event loop at work, as a cell of a notebook has."""

import asyncio


def has_running_loop() -> bool:
    """Whether no other one can be started here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
