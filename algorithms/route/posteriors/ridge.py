"""What a regression of scores on inputs is asked for, whatever it keeps."""

from typing import Protocol

from winnow.algorithms.state.arrays import FloatArray


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
