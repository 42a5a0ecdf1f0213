"""Traits of Winnow's selectors, by name, for those who read a campaign and import no selector.

Of a plug-in's selector none of this is known.
"""

GATE = "gate"
"""Compares candidates with a baseline in the place of finding the best."""

PREFERS_COST = "champion"
"""Can look for the cheapest candidate that is good enough."""

MEETS_CONSTRAINTS = "champion"
"""Can find the best of the candidates that meet constraints."""

COMPARES_GROUPS = ("champion", "race")
"""Can compare candidates by what their means on groups of examples come to."""

CHOOSES_EXAMPLES = ("ucb-e-lrf",)
"""Choose examples by what they predict; all others draw uniformly from those that are left."""

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
"""The one to begin with where no model answers in the place of people."""
