"""Seeds that lm-eval 0.4.13 sets before it builds tasks, whose functions may draw at random."""

import random
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

RANDOM, NUMPY, TORCH = 0, 1234, 1234

State = tuple[Any, Any, bytes | None]
"""States of the generators, to compare and restore."""


def set_seeds(files: Iterable[str]) -> None:
    """Set the seeds of all generators from which functions in these files may draw.

    torch is loaded only if one of the files mentions it, which otherwise saves a second.
    """
    for file in files:
        if file.endswith(".py") and b"torch" in Path(file).read_bytes():
            import_module("torch")
    random.seed(RANDOM)
    np.random.seed(NUMPY)  # noqa: NPY002 -- the generator that functions draw from
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(TORCH)


def state() -> State:
    """States of the generators that are loaded."""
    kind, keys, *others = cast("tuple[Any, ...]", np.random.get_state())  # noqa: NPY002
    torch = sys.modules.get("torch")
    of_torch = None if torch is None else torch.get_rng_state().numpy().tobytes()
    return random.getstate(), (kind, keys.tobytes(), *others), of_torch


def put_back(before: State) -> None:
    """Restore an earlier state of the generators."""
    of_random, (kind, keys, *others), of_torch = before
    random.setstate(of_random)
    np.random.set_state((kind, np.frombuffer(keys, dtype=np.uint32), *others))  # noqa: NPY002
    if of_torch is not None:
        torch = sys.modules["torch"]
        torch.set_rng_state(torch.frombuffer(bytearray(of_torch), dtype=torch.uint8))
