"""Run a selector's linear algebra on one thread.

Selectors multiply many small matrices, for which more threads only cost time. The order of sums, and so the
last bit of an estimate, would also depend on the number of threads. The command line sets one thread for its
process. A program that uses Winnow as a library keeps its own setting outside of these calls.
"""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

VARIABLE = "OPENBLAS_NUM_THREADS"


def on_one_thread(function: Function) -> Function:
    """Decorate a function so that BLAS uses one thread during each call.

    This holds for the whole process.
    """

    @wraps(function)
    def limited(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 -- what the function takes and returns
        if os.environ.get(VARIABLE) == "1":
            return function(*args, **kwargs)
        from threadpoolctl import get_cached_controller

        # This limits the BLAS of NumPy and SciPy; engines in this process have their own libraries.
        with get_cached_controller().select(internal_api="openblas").limit(limits=1):
            return function(*args, **kwargs)

    return cast("Function", limited)
