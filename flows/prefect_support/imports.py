"""Imports of packages as large as Prefect, in less time."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def not_collecting() -> Generator[None, None, None]:
    """Look for no garbage within the block: among what imports make, all of it lives until the end."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
