"""Traits of Winnow's selectors, by name, for those who read a campaign and import no selector.

Of a plug-in's selector none of this is known. The check of a new campaign's error probability is here too.
"""

from numbers import Real

from winnow.tasks.errors import SpecError

GATE = "gate"
"""Compares candidates with a baseline instead of finding the best."""

PREFERS_COST = "champion"
"""Can look for the cheapest candidate that is good enough."""

MEETS_CONSTRAINTS = "champion"
"""Can find the best of the candidates that meet constraints."""

COMPARES_GROUPS = ("champion", "race")
"""Can compare candidates by what their means on groups of examples come to."""

ENDS_WITH_TIES = ("champion", "race")
"""Can end once no other candidate can have a higher mean, with ties open."""

CHOOSES_EXAMPLES = ("ucb-e-lrf",)
"""Choose examples by what they predict; all others draw uniformly from those that are left."""

HALVING = "halving"
"""Halves the candidates, or rejects them one by one; see its parameter `schedule`."""

PLANS_BY_BUDGET = (HALVING,)
"""Rank candidates by a plan that the budget sets; to all others a budget only ends the campaign."""

NEEDS_FEATURES = "llm-po-bt"
"""Has a model of the candidates' features whatever its parameters say."""

TRUSTS_A_MEAN = ("eval", "autoeval")
"""Certify by a mean, and guarantee nothing."""

BY_MODEL = "autoeval"
"""Certifies by the losses that the autoevaluator finds on unlabelled examples, and by no others."""

HUMAN_ONLY = ("eval", "r-eval")
"""Certify without autoevaluated losses, so that none are made."""

TO_BEGIN_WITH = ("champion", "llm-po", "r-autoeval-plus", "pak-ucb")
"""The first choice of each objective."""

WITHOUT_AUTOEVALUATOR = "r-eval"
"""The one to begin with where no model answers instead of people."""


def refuse_confidence(delta: object, place: str = "stopping.delta") -> None:
    """Refuse a confidence such as 0.95 that was written where the error probability belongs.

    Above one half the confidence was meant. Campaigns that were begun with such a value stay as they are, so
    only new ones are checked. What is not a number, or lies outside (0, 1), is left to whatever reads the
    value.

    Args:
        delta: The value given.
        place: The key, parameter or option that it was given as.

    Raises:
        SpecError: With the value that states this confidence.
    """
    if not isinstance(delta, Real) or not 0.5 < float(delta) < 1.0:
        return
    confidence = float(delta)
    raise SpecError(
        "delta is the probability of a wrong answer, not the confidence; for a confidence of "
        f"{confidence:g} write {1.0 - confidence:.6g} (got {confidence:g})",
        path=place,
    )
