"""Learned policy of a router as plain arrays.

They are small, storable, and sufficient to choose an arm.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import numpy as np

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.route.config import KernelName
from winnow.algorithms.route.contexts import unit_rows
from winnow.algorithms.route.posteriors.kernels import Kernel, fourier
from winnow.algorithms.state.arrays import BoolArray, FloatArray

LARGEST = 1e100
"""Largest absolute value of a number in a file.
Products and powers of such numbers stay finite."""

Form = Literal["means", "linear", "fourier", "kernel", "joint-kernel"]
"""How the score of arm a at context y is computed, and from which arrays:

* means: means[a], of shape (K,), for any context.
* linear: weights[a].y + offsets[a], of shapes (K, d) and (K,).
* fourier: weights[a].phi(y), of shape (K, 2 D), phi with frequencies of shape (D, d).
* kernel: the sum of weights[i] k(y, contexts[i]) over the rows i with arms[i] = a; (n,), (n, d) and (n,).
* joint-kernel: the sum of weights[i] k((y, a), (contexts[i], arms[i])) over all rows.
"""

SHAPES: dict[Form, dict[str, str]] = {
    "means": {"means": "K"},
    "linear": {"weights": "Kd", "offsets": "K"},
    "fourier": {"weights": "KF", "frequencies": "Dd"},
    "kernel": {"weights": "n", "contexts": "nd", "arms": "n"},
    "joint-kernel": {"weights": "n", "contexts": "nd", "arms": "n"},
}
"""Arrays of each form, with a letter for the length of each axis; F is 2 D."""


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """Choose, without exploring, the usable arm whose predicted score is highest.

    The predictions are those of the router that created it, up to rounding: the contexts of a kernel are
    stored in single precision, because reading them takes most of the time of a choice. Nothing is pickled:
    `arrays` are stored in an npz file and `parameters` in a JSON file, unchanged.

    Raises:
        InvalidParameter: If an array or a parameter is missing or invalid, for example because the file is of
            another kind.
    """

    arrays: Mapping[str, np.ndarray]
    """Arrays of the form, and `usable`, shape (K,).
    Usable arms have a score and can be chosen."""
    parameters: Mapping[str, Any]
    """`form`, `dim`, `n_arms`, `centre` and, for kernels, the fields of `Kernel`.
    JSON values only. `centre` is added to every score."""

    def __post_init__(self) -> None:
        form = self.parameters.get("form")
        if not isinstance(form, str) or form not in SHAPES:
            raise InvalidParameter("form", form, f"one of {', '.join(SHAPES)}")
        for name in ("dim", "n_arms"):
            value = self._parameter(name)
            if type(value) is not int or value < 1:
                raise InvalidParameter(name, value, "an integer of at least 1")
        _require_finite("centre", self._parameter("centre"))
        if "kernel" in form:
            _check_kernel(self._parameter("kernel"))
        self._check_arrays(SHAPES[form])

    def _parameter(self, name: str) -> Any:  # noqa: ANN401 -- a file can hold any value
        if name not in self.parameters:
            raise InvalidParameter("parameters", sorted(self.parameters), f"complete, with {name!r}")
        return self.parameters[name]

    def _check_arrays(self, shapes: Mapping[str, str]) -> None:
        for name in (*shapes, "usable"):
            if name not in self.arrays:
                raise InvalidParameter("arrays", sorted(self.arrays), f"complete, with {name!r}")
        sizes = {"K": self.parameters["n_arms"], "d": self.parameters["dim"]}
        for name, axes in {"usable": "K", **shapes}.items():
            array, kinds = self.arrays[name], {"usable": "b", "arms": "iu"}.get(name, "f")
            fits = array.dtype.kind in kinds and array.ndim == len(axes) and bool(np.isfinite(array).all())
            if not fits or any(
                sizes.setdefault(axis, size) != size for axis, size in zip(axes, array.shape, strict=True)
            ):
                what = f"of shape ({', '.join(axes)}), finite, with the sizes {sizes}"
                raise InvalidParameter(name, f"{array.dtype} of shape {array.shape}", what)
        if "F" in sizes and sizes["F"] != 2 * sizes["D"]:
            raise InvalidParameter("weights", sizes["F"], f"as wide as {2 * sizes['D']} features")
        arms = self.arrays["arms"] if "arms" in shapes else np.zeros(0)
        for outside in arms[(arms < 0) | (arms >= sizes["K"])][:1].tolist():
            raise InvalidParameter("arms", outside, f"from 0 to {sizes['K'] - 1}")

    def scores(self, context: FloatArray) -> FloatArray:
        """Predicted score of each arm, shape (K,); NaN for an arm that cannot be chosen.

        Args:
            context: Shape (d,), of length 1; see `unit_rows`.

        Raises:
            UnusableContexts: If the context has another shape or length, or is not finite.
        """
        y = unit_rows(np.asarray(context)[np.newaxis], self.parameters["dim"])[0]
        with np.errstate(over="ignore", invalid="ignore"):  # a file can hold values that no router learns
            predicted = self._predict(y) + self.parameters["centre"]
        return np.where(self.arrays["usable"], predicted, np.nan)

    def choose(self, context: FloatArray) -> int:
        """Arm with the highest predicted score; among equals, the first.

        Arm 0 if no arm has a score.
        """
        return int(np.nan_to_num(self.scores(context), nan=-np.inf).argmax())

    def _predict(self, y: FloatArray) -> FloatArray:
        arrays, n_arms = self.arrays, self.parameters["n_arms"]
        predicted: FloatArray
        match self.parameters["form"]:
            case "means":
                predicted = arrays["means"]
            case "linear":
                predicted = arrays["weights"] @ y + arrays["offsets"]
            case "fourier":
                predicted = arrays["weights"] @ fourier(arrays["frequencies"], y)
            case "kernel":
                terms = arrays["weights"] * self._kernel.at(self._products(y))
                predicted = np.bincount(arrays["arms"], terms, minlength=n_arms).astype(np.float64)
            case _:
                products = self._products(y)
                # The inner product of two indicators is 1 for the same arm, 0 otherwise.
                others = arrays["weights"] * self._kernel.at(products)
                own = arrays["weights"] * self._kernel.at(products + 1.0)
                predicted = others.sum() + np.bincount(arrays["arms"], own - others, minlength=n_arms)
        return predicted

    def _products(self, y: FloatArray) -> FloatArray:
        """Inner products with the contexts of the policy, shape (n,).

        They have the precision of these contexts.
        """
        contexts = self.arrays["contexts"]
        products: FloatArray = (contexts @ y.astype(contexts.dtype)).astype(np.float64)
        return products

    @property
    def _kernel(self) -> Kernel:
        return Kernel(**self.parameters["kernel"])


def _check_kernel(given: object) -> None:
    names = {each.name for each in fields(Kernel)}
    if not isinstance(given, Mapping) or given.keys() != names:
        raise InvalidParameter("kernel", given, f"a mapping with {', '.join(sorted(names))}")
    if given["name"] not in get_args(KernelName):
        raise InvalidParameter("kernel", given["name"], f"one of {', '.join(get_args(KernelName))}")
    for name in sorted(names - {"name"}):
        _require_finite(name, given[name])
    if given["bandwidth"] <= 0.0:
        raise InvalidParameter("bandwidth", given["bandwidth"], "positive")


def _require_finite(name: str, value: Any) -> None:  # noqa: ANN401 -- a file can hold any value
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
        raise InvalidParameter(name, value, "a finite number")


def policy_of(
    form: Form, usable: BoolArray, dim: int, kernel: Kernel | None = None, **arrays: np.ndarray
) -> Policy:
    """Create a policy of a form for contexts of length `dim`; `usable` has shape (K,)."""
    parameters: dict[str, Any] = {"form": form, "dim": dim, "n_arms": len(usable), "centre": 0.0}
    if kernel is not None:
        parameters["kernel"] = {
            "name": kernel.name,
            "gamma": kernel.gamma,
            "bandwidth": kernel.bandwidth,
            "squared_length": kernel.squared_length,
        }
    return Policy({**arrays, "usable": usable}, parameters)
