"""How much of an arm's stake goes on the race, from the size of the grid alone."""

from dataclasses import dataclass
from typing import Literal

Start = Literal["auto", "race", "champion"]

COLUMNS_PER_RIVAL = 0.75  # N = 0.75 K^2 is where both are about as good, on the tables it was fitted to
LEAST_WEIGHT, MOST_WEIGHT = 0.2, 0.95
FEWEST_COLUMNS = 2
FIRST_DRAWS = 4
SHARE_OF_FIRST_COLUMNS = 0.3  # of a row, spread over all arms: what looking at each once more may cost


@dataclass(frozen=True, slots=True)
class Mode:
    """Chosen before anything is told: a choice between wealths that looks at data would cost a union."""

    weight: float
    """w, the share of each arm's stake that is bet in the race; 0 for tests against a filled row alone."""
    columns: int
    """Common examples that are always asked, before it is looked at whether to leave the race."""
    leaves: bool
    """Whether the race is left for tests against a filled row."""


def mode_of(n_arms: int, n_examples: int, start: Start) -> Mode:
    """The mode of a grid of K x N."""
    if start == "race":
        return Mode(MOST_WEIGHT, n_examples, leaves=False)
    if start == "champion":
        return Mode(0.0, min(FIRST_DRAWS, n_examples), leaves=True)
    columns = max(FEWEST_COLUMNS, int(SHARE_OF_FIRST_COLUMNS * n_examples / n_arms))
    odds = (n_examples / (COLUMNS_PER_RIVAL * n_arms**2)) ** 3
    weight = odds / (1.0 + odds)
    weight = min(weight, MOST_WEIGHT) if weight >= LEAST_WEIGHT else 0.0
    return Mode(weight, min(columns, n_examples), leaves=True)
