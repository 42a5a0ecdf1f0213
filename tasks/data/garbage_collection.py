"""Blocks in which Python does not look for garbage."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def not_collecting() -> Generator[None, None, None]:
    """Look for no garbage within the block, where rows or modules are made that are kept."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
