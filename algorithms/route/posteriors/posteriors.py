"""Posteriors of the scores of all arms.

They are from one regression per arm, or from one for all arms.
"""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from winnow.algorithms.route.policy import Policy
from winnow.algorithms.state.arrays import BoolArray, FloatArray


class Ridge(Protocol):
    """Regression that predicts a score and its uncertainty.

    It uses scored and pending inputs. A pending input reduces the deviation and leaves the mean unchanged:
    the deviation does not depend on scores, so it is known before they are observed.
    """

    def predict(self, x: FloatArray) -> tuple[float, float]:
        """Predict the mean and the deviation of the score at an input, shape (p,)."""
        ...

    def learn(self, x: FloatArray, score: float) -> None:
        """Add a scored input. Requires that no input is pending."""
        ...

    def expect(self, x: FloatArray) -> None:
        """Add a pending input, which affects deviations only."""
        ...

    def forget(self) -> None:
        """Remove all pending inputs.

        The state is then, bit for bit, as if no input had been pending.
        """
        ...


class WidenableRidge(Ridge, Protocol):
    """A regression whose inputs can be extended."""

    def widen(self) -> None:
        """Append a coordinate to every input, 0 in existing inputs.

        Requires that no input is pending.
        """
        ...


R = TypeVar("R", bound=Ridge)
W = TypeVar("W", bound=WidenableRidge)


class Posteriors(Protocol):
    """Interface of predictions of the scores of arms on a prompt."""

    @property
    def eta(self) -> float | None:
        """Weight of uncertainty in a choice if it was learned from the scores.

        Otherwise None.
        """
        ...

    def predict(self, context: FloatArray, arms: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Predict means and deviations of some arms' scores, shape (len(arms),) each."""
        ...

    def learn(self, arm: int, context: FloatArray, score: float) -> None:
        """Add a score. Requires that no pair is pending."""
        ...

    def expect(self, arm: int, context: FloatArray) -> None:
        """Add a pending pair, which affects deviations only."""
        ...

    def forget(self) -> None:
        """Remove all pending pairs."""
        ...

    def grow(self) -> None:
        """Add an arm."""
        ...

    def policy(self, usable: BoolArray) -> Policy:
        """Export the means as plain arrays.

        Arms outside the mask `usable`, shape (K,), are never chosen.
        """
        ...


class PerArmPosteriors(Generic[R]):
    """One regression per arm, created with the arm's first score or pending pair.

    Args:
        n_arms: K.
        make: Creates an empty regression.
        lift: Maps a context to the input of a regression.
        as_policy: Maps the regressions, None for an arm without one, and the usable arms to a policy.
    """

    def __init__(
        self,
        n_arms: int,
        make: Callable[[], R],
        lift: Callable[[FloatArray], FloatArray],
        as_policy: Callable[[Sequence[R | None], BoolArray], Policy],
    ) -> None:
        self.models: list[R | None] = [None] * n_arms
        self._make = make
        self._lift = lift
        self._as_policy = as_policy
        self._blank = make()  # prior of an arm without data
        self._expecting: set[int] = set()

    @property
    def eta(self) -> None:
        """None, because this class learns no weight of uncertainty."""

    def predict(self, context: FloatArray, arms: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Predict means and deviations of the scores of some arms."""
        x = self._lift(context)
        found = np.array([(self.models[arm] or self._blank).predict(x) for arm in arms])
        return found[:, 0], found[:, 1]

    def learn(self, arm: int, context: FloatArray, score: float) -> None:
        """Add a score. Requires that no pair is pending."""
        self._model(arm).learn(self._lift(context), score)

    def expect(self, arm: int, context: FloatArray) -> None:
        """Add a pending pair, which affects deviations only."""
        self._model(arm).expect(self._lift(context))
        self._expecting.add(arm)

    def forget(self) -> None:
        """Remove all pending pairs."""
        for arm in self._expecting:
            self._model(arm).forget()
        self._expecting = set()

    def grow(self) -> None:
        """Add an arm."""
        self.models.append(None)

    def policy(self, usable: BoolArray) -> Policy:
        """Export the means as plain arrays."""
        return self._as_policy(self.models, usable)

    def _model(self, arm: int) -> R:
        model = self.models[arm]
        if model is None:
            model = self.models[arm] = self._make()
        return model


class JointPosteriors(Generic[W]):
    """One regression for all arms, on a context with the arm's indicator appended.

    Args:
        n_arms: K.
        model: An empty regression on inputs of length d + K.
        as_policy: Maps the regression and the usable arms to a policy.
    """

    def __init__(self, n_arms: int, model: W, as_policy: Callable[[W, BoolArray], Policy]) -> None:
        self.model = model
        self._n_arms = n_arms
        self._as_policy = as_policy

    @property
    def eta(self) -> None:
        """None, because this class learns no weight of uncertainty."""

    def predict(self, context: FloatArray, arms: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Predict means and deviations of the scores of some arms."""
        found = np.array([self.model.predict(self._input(arm, context)) for arm in arms])
        return found[:, 0], found[:, 1]

    def learn(self, arm: int, context: FloatArray, score: float) -> None:
        """Add a score. Requires that no pair is pending."""
        self.model.learn(self._input(arm, context), score)

    def expect(self, arm: int, context: FloatArray) -> None:
        """Add a pending pair, which affects deviations only."""
        self.model.expect(self._input(arm, context))

    def forget(self) -> None:
        """Remove all pending pairs."""
        self.model.forget()

    def grow(self) -> None:
        """Add an arm."""
        self.model.widen()
        self._n_arms += 1

    def policy(self, usable: BoolArray) -> Policy:
        """Export the means as plain arrays."""
        return self._as_policy(self.model, usable)

    def _input(self, arm: int, context: FloatArray) -> FloatArray:
        x = np.zeros(len(context) + self._n_arms)
        x[: len(context)] = context
        x[len(context) + arm] = 1.0
        return x
