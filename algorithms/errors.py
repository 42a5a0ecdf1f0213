"""Exceptions of the algorithms.

* AlgorithmError
  - UnknownSelector       no selector has this name                        (fix the name)
  - SelectorNotLoadable   a third-party selector cannot be used            (fix or remove that package)
  - UnknownParameter      the selector has no parameter of this name       (fix the name)
  - InvalidParameter      a parameter has the wrong type or is out of range (fix the value)
  - RefusedTell           invalid outcomes; the selector is unchanged
    - MalformedBatch      arrays of the wrong shape or type
    - PairOutsideGrid     an arm or an example that does not exist
    - ArmAgainstItself    a duel of an arm with itself
    - PairRepeated        the same pair twice in one batch
    - PairAlreadyTold     a pair that was observed before
    - ToldOutOfOrder      a batch observed before an earlier one in flight, or only a part of a batch
    - OutcomeOutOfRange   an outcome that is neither in range nor NaN
    - UnusableContexts    invalid contexts of prompts (tell and ask)
    - PromptTaken         a prompt that was already proposed or observed    (ask)
    - ArmRemoved          a pair of an arm that was removed
  - NoArmToRemove         the arm does not exist, is removed already or is the last one
  - ImpossibleState       results about one arm contradict each other      (a bug: report it)
"""

from collections.abc import Sequence
from difflib import get_close_matches


class AlgorithmError(Exception):
    """Base class of all exceptions of the algorithms."""

    def _render_traceback_(self) -> list[str]:
        """The lines that a notebook shows instead of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class UnknownSelector(AlgorithmError):
    """No selector has this name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f"no selector is called {name!r}{_did_you_mean(name, known)}; known: {', '.join(known)}"
        )
        self.name = name
        self.known = tuple(known)


class SelectorNotLoadable(AlgorithmError):
    """A third-party selector cannot be used."""

    def __init__(self, name: str, path: str, why: str) -> None:
        super().__init__(f"selector {name!r} ({path}) cannot be used: {why}")
        self.name = name
        self.path = path
        self.why = why


class UnknownParameter(AlgorithmError):
    """The selector has no parameter of this name."""

    def __init__(self, selector: str, parameter: str, known: Sequence[str]) -> None:
        super().__init__(
            f"selector {selector!r} has no parameter {parameter!r}{_did_you_mean(parameter, known)};"
            f" it accepts: {', '.join(known)}"
        )
        self.selector = selector
        self.parameter = parameter
        self.known = tuple(known)


class InvalidParameter(AlgorithmError):
    """A parameter has the wrong type or is out of range."""

    def __init__(self, parameter: str, value: object, requirement: str) -> None:
        super().__init__(f"{parameter} must be {requirement}, got {value!r}")
        self.parameter = parameter
        self.value = value
        self.requirement = requirement


class RefusedTell(AlgorithmError):
    """The batch or its outcomes are invalid; the selector is unchanged."""


class MalformedBatch(RefusedTell):
    """Arrays of the wrong shape or type."""

    def __init__(self, field: str, expected: str, found: str) -> None:
        super().__init__(f"{field} must be {expected}, got {found}")
        self.field = field
        self.expected = expected
        self.found = found


class PairOutsideGrid(RefusedTell):
    """An arm or an example that does not exist."""

    def __init__(self, arm: int, example: int, n_arms: int, n_examples: int) -> None:
        super().__init__(f"pair (arm {arm}, example {example}) is outside the {n_arms} x {n_examples} grid")
        self.arm = arm
        self.example = example
        self.n_arms = n_arms
        self.n_examples = n_examples


class ArmAgainstItself(RefusedTell):
    """A duel of an arm with itself."""

    def __init__(self, arm: int, example: int) -> None:
        super().__init__(f"the duel on example {example} must be of two different arms, got arm {arm} twice")
        self.arm = arm
        self.example = example


class PairRepeated(RefusedTell):
    """A pair that occurs twice in one batch."""

    def __init__(self, arm: int | tuple[int, int], example: int) -> None:
        super().__init__(f"{_the_pair(arm, example)} occurs twice in one batch")
        self.arm = arm
        self.example = example


class PairAlreadyTold(RefusedTell):
    """A pair that was observed before."""

    def __init__(self, arm: int | tuple[int, int], example: int) -> None:
        super().__init__(f"{_the_pair(arm, example)} was already observed")
        self.arm = arm
        self.example = example


class ToldOutOfOrder(RefusedTell):
    """A batch observed before an earlier one in flight, or only a part of a batch.

    Attributes:
        pair: The refused pair: an arm, or both arms of a duel, then the example.
        first: First pair of the batch that must be observed next, in the same form.
    """

    def __init__(self, pair: tuple[int, ...], first: tuple[int, ...]) -> None:
        super().__init__(
            f"{_pair_text(pair)} is in flight, but not in this batch: the next batch to tell starts"
            f" with {_pair_text(first)}; tell whole batches, in the order in which they were proposed"
        )
        self.pair = pair
        self.first = first


ROUNDING = 1e-9
"""Relative tolerance within which a score outside its range is set to the bound.
Such scores are due to rounding."""


def at_bound(value: float, low: float = 0.0, high: float = 1.0) -> float:
    """Return the nearest bound for a value at most `ROUNDING` times the range outside.

    Else the value.
    """
    slack = ROUNDING * (high - low)
    if low - slack <= value < low:
        return low
    return high if high < value <= high + slack else value


class OutcomeOutOfRange(RefusedTell):
    """An outcome that is neither in the allowed range nor NaN."""

    def __init__(self, arm: int | tuple[int, int], example: int, outcome: float, allowed: str) -> None:
        super().__init__(
            f"the outcome of {_the_pair(arm, example)} must be {allowed} or NaN, got {outcome!r}"
        )
        self.arm = arm
        self.example = example
        self.outcome = outcome


class UnusableContexts(RefusedTell):
    """Contexts of a wrong shape, not finite, or not of length 1."""

    def __init__(self, row: int | None, expected: str, found: str) -> None:
        which = "contexts" if row is None else f"row {row} of the contexts"
        super().__init__(f"{which} must be {expected}, got {found}")
        self.row = row
        self.expected = expected
        self.found = found


class PromptTaken(RefusedTell):
    """A prompt that was already proposed or observed.

    Give a repeated prompt an index of its own.
    """

    def __init__(self, example: int) -> None:
        super().__init__(f"prompt {example} was already proposed or observed: give each prompt its own index")
        self.example = example


class ArmRemoved(RefusedTell):
    """A pair of an arm that was removed."""

    def __init__(self, arm: int, example: int) -> None:
        super().__init__(
            f"pair (arm {arm}, example {example}) is refused because arm {arm} was removed:"
            " tell the batch without this arm's pairs"
        )
        self.arm = arm
        self.example = example


class NoArmToRemove(AlgorithmError):
    """The arm does not exist, is removed already or is the last one."""

    def __init__(self, arm: int, why: str) -> None:
        super().__init__(f"arm {arm} cannot be removed: {why}")
        self.arm = arm
        self.why = why


class ImpossibleState(AlgorithmError):
    """Results about one arm contradict each other."""

    def __init__(self, arm: int, difference: str) -> None:
        super().__init__(
            f"contradictory results for arm {arm}: {difference}; there is no answer: report this as a bug"
        )
        self.arm = arm
        self.difference = difference


def _pair_text(pair: tuple[int, ...]) -> str:
    *arms, example = pair
    which = f"arm {arms[0]}" if len(arms) == 1 else f"arms {arms[0]} and {arms[1]}"
    return f"pair ({which}, example {example})"


def _did_you_mean(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _the_pair(arm: int | tuple[int, int], example: int) -> str:
    if isinstance(arm, int):
        return f"pair (arm {arm}, example {example})"
    return f"the duel (arms {arm[0]} and {arm[1]}, example {example})"


def check_parameters(*rows: tuple[str, object, bool, str]) -> None:
    """Raise `InvalidParameter` for the first row that is not valid.

    Args:
        rows: Name, value, whether the value is valid, and the requirement in words.
    """
    for name, value, is_valid, requirement in rows:
        if not is_valid:
            raise InvalidParameter(name, value, requirement)
