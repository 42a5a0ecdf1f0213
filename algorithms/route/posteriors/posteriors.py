"""Beliefs about the scores of all arms, from one regression per arm or one for all of them."""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from winnow.algorithms.route.policy import Policy
from winnow.algorithms.state.arrays import BoolArray, FloatArray


class Ridge(Protocol):
    """Predicts a score and how uncertain it is, from scored inputs and from inputs whose score is awaited.

    An awaited input makes the prediction more certain and leaves its mean as it is: the deviation does not
    depend on scores, so it can be known before they are.
    """

    def predict(self, x: FloatArray) -> tuple[float, float]:
        """Mean and deviation of the score at an input, shape (p,)."""
        ...

    def learn(self, x: FloatArray, score: float) -> None:
        """Take in a scored input; nothing may be awaited."""
        ...

    def expect(self, x: FloatArray) -> None:
        """Reckon with an input whose score is awaited."""
        ...

    def forget(self) -> None:
        """Await nothing any more, bit for bit as if nothing had been awaited."""
        ...


class WidenableRidge(Ridge, Protocol):
    """A regression whose inputs may get longer."""

    def widen(self) -> None:
        """Append a coordinate to every input, 0 in those so far; nothing may be awaited."""
        ...


R = TypeVar("R", bound=Ridge)
W = TypeVar("W", bound=WidenableRidge)


class Posteriors(Protocol):
    """Predicts the scores of arms on a prompt."""

    @property
    def eta(self) -> float | None:
        """The weight of uncertainty in a choice, learned from the scores; None where none was learned."""
        ...

    def predict(self, context: FloatArray, arms: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Means and deviations of the scores of some arms, shape (len(arms),) each."""
        ...

    def learn(self, arm: int, context: FloatArray, score: float) -> None:
        """Take in a score; nothing may be expected."""
        ...

    def expect(self, arm: int, context: FloatArray) -> None:
        """Reckon with a pair whose score is awaited."""
        ...

    def forget(self) -> None:
        """Expect nothing any more."""
        ...

    def grow(self) -> None:
        """Make room for one more arm."""
        ...

    def policy(self, usable: BoolArray) -> Policy:
        """The means as plain arrays; arms that are not usable, shape (K,), are never chosen."""
        ...


class PerArmPosteriors(Generic[R]):
    """A regression for each arm, made when the arm is first learned of.

    Args:
        n_arms: K.
        make: Makes an empty regression.
        lift: From a context to the input of a regression.
        as_policy: From the regressions, None where an arm has none, and the usable arms to a policy.
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
        self._blank = make()  # what is believed of an arm before anything is known
        self._expecting: set[int] = set()

    @property
    def eta(self) -> None:
        """None: no weight is learned."""

    def predict(self, context: FloatArray, arms: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Means and deviations of the scores of some arms."""
        x = self._lift(context)
        found = np.array([(self.models[arm] or self._blank).predict(x) for arm in arms])
        return found[:, 0], found[:, 1]

    def learn(self, arm: int, context: FloatArray, score: float) -> None:
        """Take in a score; nothing may be expected."""
        self._model(arm).learn(self._lift(context), score)

    def expect(self, arm: int, context: FloatArray) -> None:
        """Reckon with a pair whose score is awaited."""
        self._model(arm).expect(self._lift(context))
        self._expecting.add(arm)

    def forget(self) -> None:
        """Expect nothing any more."""
        for arm in self._expecting:
            self._model(arm).forget()
        self._expecting = set()

    def grow(self) -> None:
        """Make room for one more arm."""
        self.models.append(None)

    def policy(self, usable: BoolArray) -> Policy:
        """The means as plain arrays."""
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
        as_policy: From the regression and the usable arms to a policy.
    """

    def __init__(self, n_arms: int, model: W, as_policy: Callable[[W, BoolArray], Policy]) -> None:
        self.model = model
        self._n_arms = n_arms
        self._as_policy = as_policy

    @property
    def eta(self) -> None:
        """None is learned."""

    def predict(self, context: FloatArray, arms: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Means and deviations of the scores of some arms."""
        found = np.array([self.model.predict(self._input(arm, context)) for arm in arms])
        return found[:, 0], found[:, 1]

    def learn(self, arm: int, context: FloatArray, score: float) -> None:
        """Take in a score; nothing may be expected."""
        self.model.learn(self._input(arm, context), score)

    def expect(self, arm: int, context: FloatArray) -> None:
        """Reckon with a pair whose score is awaited."""
        self.model.expect(self._input(arm, context))

    def forget(self) -> None:
        """Expect nothing any more."""
        self.model.forget()

    def grow(self) -> None:
        """Make room for one more arm."""
        self.model.widen()
        self._n_arms += 1

    def policy(self, usable: BoolArray) -> Policy:
        """The means as plain arrays."""
        return self._as_policy(self.model, usable)

    def _input(self, arm: int, context: FloatArray) -> FloatArray:
        x = np.zeros(len(context) + self._n_arms)
        x[: len(context)] = context
        x[len(context) + arm] = 1.0
        return x
