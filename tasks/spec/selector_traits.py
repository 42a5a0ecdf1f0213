"""Properties of built-in selectors by name, without importing any selector.

A third-party selector has none of these properties. This module also checks the error probability of a new
campaign.
"""

from numbers import Real

from winnow.tasks.errors import SpecError

GATE = "gate"
"""Selector that compares candidates with a baseline instead of searching for the best one."""

PREFERS_COST = "champion"
"""Selector that can search for the cheapest candidate that is good enough."""

MEETS_CONSTRAINTS = "champion"
"""Selector that can search for the best candidate among those that meet constraints."""

COMPARES_GROUPS = ("champion", "race")
"""Selectors that can compare candidates by group means."""

ENDS_WITH_TIES = ("champion", "race")
"""Selectors that can stop once no other candidate can have a higher mean, although ties remain possible."""

SPARES = "race"
"""Selector that needs no verdicts on equal outputs, because it compares candidates only in pairs."""

CHOOSES_EXAMPLES = ("ucb-e-lrf",)
"""Selectors that choose examples by their predictions.
All others draw uniformly from the remaining examples.
"""

HALVING = "halving"
"""Selector that halves the set of candidates, or rejects one at a time; see its parameter `schedule`."""

PLANS_BY_BUDGET = (HALVING,)
"""Selectors that plan their comparisons by the budget.
For all others, a budget only ends the campaign.
"""

NEEDS_FEATURES = "llm-po-bt"
"""Selector that always uses a model of the candidates' features."""

TRUSTS_A_MEAN = ("eval", "autoeval")
"""Selectors that certify by a plain mean, without a guarantee."""

BY_MODEL = "autoeval"
"""Selector that certifies only by the autoevaluator's losses on unlabelled examples."""

HUMAN_ONLY = ("eval", "r-eval")
"""Selectors that certify without the autoevaluator's losses, so that these losses are not computed."""

TO_BEGIN_WITH = ("champion", "llm-po", "r-autoeval-plus", "pak-ucb")
"""The recommended selector of each objective."""

WITHOUT_AUTOEVALUATOR = "r-eval"
"""The recommended selector for certify without an autoevaluator."""


def refuse_confidence(delta: object, place: str = "stopping.delta") -> None:
    """Refuse an error probability that looks like a confidence, such as 0.95.

    Values above 1/2 are taken for a confidence. Only new campaigns are checked; stored campaigns with such a
    value continue. Values that are not a number, or outside (0, 1), are checked by the code that uses them.

    Args:
        delta: The error probability given.
        place: Name of the key, parameter or option with the value.

    Raises:
        SpecError: The value is above 1/2 and below 1; gives the error probability of this confidence.
    """
    if not isinstance(delta, Real) or not 0.5 < float(delta) < 1.0:
        return
    confidence = float(delta)
    raise SpecError(
        "delta is the probability of a wrong answer, not the confidence; for a confidence of "
        f"{confidence:g} write {1.0 - confidence:.6g} (got {confidence:g})",
        path=place,
    )
