"""Plan on one thread: selectors multiply many small matrices, for which further threads cost time.

The order of sums, and so the last bit of an estimate, would also depend on the number of threads. The command
line sets one thread for its process; a program that uses Winnow as a library keeps its own number otherwise.
"""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

VARIABLE = "OPENBLAS_NUM_THREADS"


def on_one_thread(function: Function) -> Function:
    """A function during whose calls BLAS uses one thread, in this whole process."""

    @wraps(function)
    def limited(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 -- what the function takes and returns
        if os.environ.get(VARIABLE) == "1":
            return function(*args, **kwargs)
        from threadpoolctl import get_cached_controller

        # Of NumPy and SciPy; engines in this process have libraries of their own.
        with get_cached_controller().select(internal_api="openblas").limit(limits=1):
            return function(*args, **kwargs)

    return cast("Function", limited)
