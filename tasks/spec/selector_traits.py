"""Properties of Winnow's selectors by name, without importing any selector.

None of these properties is known for a third-party selector. This module also checks the error probability of
a new campaign.
"""

from numbers import Real

from winnow.tasks.errors import SpecError

GATE = "gate"
"""Compares candidates with a baseline instead of finding the best."""

PREFERS_COST = "champion"
"""Can find the cheapest good enough candidate."""

MEETS_CONSTRAINTS = "champion"
"""Can find the best of the candidates that meet constraints."""

COMPARES_GROUPS = ("champion", "race")
"""Can compare candidates by group means."""

ENDS_WITH_TIES = ("champion", "race")
"""Can end once no other candidate can have a higher mean, with ties open."""

SPARES = "race"
"""Can do without verdicts on equal outputs, since it compares candidates in pairs only."""

CHOOSES_EXAMPLES = ("ucb-e-lrf",)
"""Selectors that choose examples by their predictions; all others draw uniformly from the remaining ones."""

HALVING = "halving"
"""Halves the candidates, or rejects them one by one; see its parameter `schedule`."""

PLANS_BY_BUDGET = (HALVING,)
"""Selectors that rank candidates by a plan made from the budget; for all others a budget only ends the
campaign."""

NEEDS_FEATURES = "llm-po-bt"
"""Always has a model of the candidates' features."""

TRUSTS_A_MEAN = ("eval", "autoeval")
"""Certify by a mean, without a guarantee."""

BY_MODEL = "autoeval"
"""Certifies only by the autoevaluator's losses on unlabelled examples."""

HUMAN_ONLY = ("eval", "r-eval")
"""Certify without autoevaluated losses, so none are computed."""

TO_BEGIN_WITH = ("champion", "llm-po", "r-autoeval-plus", "pak-ucb")
"""The default selector of each objective."""

WITHOUT_AUTOEVALUATOR = "r-eval"
"""The default selector without an autoevaluator."""


def refuse_confidence(delta: object, place: str = "stopping.delta") -> None:
    """Refuse a confidence such as 0.95 given as the error probability.

    Values above one half are taken as a confidence. Stored campaigns with such a value are unchanged; only
    new ones are checked. Values that are not a number, or outside (0, 1), are left to the code that reads
    them.

    Args:
        delta: The value given.
        place: The key, parameter or option of the value.

    Raises:
        SpecError: With the value for this confidence.
    """
    if not isinstance(delta, Real) or not 0.5 < float(delta) < 1.0:
        return
    confidence = float(delta)
    raise SpecError(
        "delta is the probability of a wrong answer, not the confidence; for a confidence of "
        f"{confidence:g} write {1.0 - confidence:.6g} (got {confidence:g})",
        path=place,
    )
