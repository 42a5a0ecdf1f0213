"""Array types by element type, and functions that copy arrays."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from winnow.algorithms.errors import ROUNDING

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


ScalarT = TypeVar("ScalarT", bound=np.generic)


def at_bounds(values: FloatArray) -> FloatArray:
    """Copy values; set those at most `ROUNDING` outside [0, 1] to the nearest bound.

    Other values and NaN stay.
    """
    is_near = (values >= -ROUNDING) & (values <= 1.0 + ROUNDING)
    return np.where(is_near, values.clip(0.0, 1.0), values)


def with_more(values: NDArray[ScalarT], count: int, value: float = 0, *, axes: int = 1) -> NDArray[ScalarT]:
    """Copy an array and append entries along its first axes.

    Args:
        values: Values by arm.
        count: Number of entries to append along each of these axes.
        value: Value of the new entries.
        axes: Number of leading axes that are indexed by arm.
    """
    widths = [(0, count if axis < axes else 0) for axis in range(values.ndim)]
    return np.pad(values, widths, constant_values=value)
