"""What a router learned, as plain arrays: small, storable, and enough to choose an arm for a prompt."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from algorithms.arrays import BoolArray, FloatArray
from algorithms.errors import InvalidParameter
from algorithms.protocols import unit_rows
from algorithms.route.kernels import Kernel
from algorithms.route.random_features import fourier

Form = Literal["means", "linear", "fourier", "kernel", "joint-kernel"]
"""How the score of arm a at context y is computed, and from which arrays:

* means: means[a], of shape (K,), whatever the context.
* linear: weights[a].y + offsets[a], of shapes (K, d) and (K,).
* fourier: weights[a].phi(y), of shape (K, 2 D), phi with frequencies of shape (D, d).
* kernel: the sum of weights[i] k(y, contexts[i]) over the rows i with arms[i] = a; (n,), (n, d) and (n,).
* joint-kernel: the sum of weights[i] k((y, a), (contexts[i], arms[i])) over all rows.
"""

ARRAYS: dict[Form, tuple[str, ...]] = {
    "means": ("means",),
    "linear": ("weights", "offsets"),
    "fourier": ("weights", "frequencies"),
    "kernel": ("weights", "contexts", "arms"),
    "joint-kernel": ("weights", "contexts", "arms"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """Chooses, without exploring, the usable arm whose predicted score is highest.

    The predictions are those of the router it comes from, up to rounding: the contexts that a kernel needs
    are kept in single precision, as reading them takes most of the time of a choice. Nothing in it is
    pickled: `arrays` go into an npz file as they are, and `parameters` into a JSON file.

    Raises:
        InvalidParameter: If an array or a parameter is missing, as in a file of something else.
    """

    arrays: Mapping[str, np.ndarray]
    """Those of the form, and `usable`, shape (K,): which arms were told a score and may be chosen."""
    parameters: Mapping[str, Any]
    """`form`, `dim`, `n_arms`, `centre`, which is added to every score, and for kernels what `Kernel` needs;
    JSON values only."""

    def __post_init__(self) -> None:
        form = self.parameters.get("form")
        if form not in ARRAYS:
            raise InvalidParameter("form", form, f"one of {', '.join(ARRAYS)}")
        for name in (*ARRAYS[form], "usable"):
            if name not in self.arrays:
                raise InvalidParameter("arrays", sorted(self.arrays), f"those of {form!r}, with {name!r}")
        for name in ("dim", "n_arms", "centre", *(("kernel",) if "kernel" in form else ())):
            if name not in self.parameters:
                raise InvalidParameter("parameters", sorted(self.parameters), f"complete, with {name!r}")

    def scores(self, context: FloatArray) -> FloatArray:
        """The predicted score of each arm, shape (K,); NaN for an arm that cannot be chosen.

        Args:
            context: Shape (d,), of length 1; see `unit_rows`.

        Raises:
            UnusableContexts: If it has another shape or length, or is not finite.
        """
        y = unit_rows(np.asarray(context)[np.newaxis], self.parameters["dim"])[0]
        return np.where(self.arrays["usable"], self._predicted(y) + self.parameters["centre"], np.nan)

    def choose(self, context: FloatArray) -> int:
        """The arm with the highest predicted score, the first of equals; arm 0 where no score is known."""
        return int(np.nan_to_num(self.scores(context), nan=-np.inf).argmax())

    def _predicted(self, y: FloatArray) -> FloatArray:
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
                # An indicator's inner product is 1 with that of the same arm, 0 with any other.
                others = arrays["weights"] * self._kernel.at(products)
                own = arrays["weights"] * self._kernel.at(products + 1.0)
                predicted = others.sum() + np.bincount(arrays["arms"], own - others, minlength=n_arms)
        return predicted

    def _products(self, y: FloatArray) -> FloatArray:
        """Inner products with the contexts learned from, shape (n,), in their precision."""
        contexts = self.arrays["contexts"]
        products: FloatArray = (contexts @ y.astype(contexts.dtype)).astype(np.float64)
        return products

    @property
    def _kernel(self) -> Kernel:
        return Kernel(**self.parameters["kernel"])


def policy_of(
    form: Form, usable: BoolArray, dim: int, kernel: Kernel | None = None, **arrays: np.ndarray
) -> Policy:
    """A policy of a form for contexts of length `dim`, `usable` of shape (K,)."""
    parameters: dict[str, Any] = {"form": form, "dim": dim, "n_arms": len(usable), "centre": 0.0}
    if kernel is not None:
        parameters["kernel"] = {
            "name": kernel.name,
            "gamma": kernel.gamma,
            "bandwidth": kernel.bandwidth,
            "squared_length": kernel.squared_length,
        }
    return Policy({**arrays, "usable": usable}, parameters)
