"""The unit in which a judge measures, and the fixed map from its values to scores in [0, 1].

Everything that is proved of scores is proved of numbers in [0, 1], so that a measure with another range is
mapped there: by the same formula for every output, whatever the others are like.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What a judge measures in, and what its values are worth."""

    unit: str
    """The native unit, with its range where it has one."""
    formula: str
    """The map, as users read it."""
    convert: Callable[[float], float] = float
    """The map: native value -> score; what it gives beyond [0, 1] is cut off there."""

    def score(self, value: float) -> float:
        """The score of a native value, in [0, 1]; NaN for NaN."""
        converted = self.convert(value)
        return converted if 0.0 <= converted <= 1.0 or converted != converted else float(converted > 0.5)


RIGHT_OR_WRONG = Scale(unit="right or wrong", formula="1 if right, 0 if wrong")
PERCENT = Scale(unit="points, 0 to 100", formula="points / 100", convert=lambda points: points / 100.0)
SHARE = Scale(unit="score, 0 to 1", formula="as it is")
