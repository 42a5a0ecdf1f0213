"""Plan on one thread: selectors multiply many small matrices, for which further threads cost time.

The order of sums, and so the last bit of an estimate, would also depend on the number of threads. The command
line sets one thread for its process; a program that uses Winnow as a library keeps its own number otherwise.
"""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Function = TypeVar("Function", bound=Callable[..., Any])

VARIABLE = "OPENBLAS_NUM_THREADS"

_controllers: "dict[bool, ThreadpoolController]" = {}
"""The libraries found, before and after SciPy loaded its own; looking for them takes milliseconds."""


def on_one_thread(function: Function) -> Function:
    """A function during whose calls BLAS uses one thread, in this whole process."""

    @wraps(function)
    def limited(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 -- what the function takes and returns
        if os.environ.get(VARIABLE) == "1":
            return function(*args, **kwargs)
        from threadpoolctl import ThreadpoolController

        key = "scipy.linalg" in sys.modules
        if key not in _controllers:
            # Of NumPy and SciPy; engines in this process have libraries of their own.
            _controllers[key] = ThreadpoolController().select(internal_api="openblas")
        with _controllers[key].limit(limits=1):
            return function(*args, **kwargs)

    return cast("Function", limited)
