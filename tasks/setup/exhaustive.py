"""The campaign that asks all that another one left out, so that there is a full table of scores.

It has a name of its own, so that the first one stays as it is, and the same models, prompts, examples, judge
and seed, so that it takes over every text the first one made.
"""

from winnow.tasks.errors import SpecError
from winnow.tasks.objectives.resolved import ResolvedCampaign
from winnow.tasks.queries.same_scores import exhaustive_name
from winnow.tasks.setup.check import check_campaign
from winnow.tasks.spec.campaign import SelectorSpec, StoppingSpec

LONGEST_NAME = 100

PAIRS_AT_ONCE = 10_000
"""Pairs in a round: every round needs every model, and few rounds load them seldom."""


def exhaustive_campaign(checked: ResolvedCampaign) -> ResolvedCampaign:
    """The campaign that scores every candidate on every example of another one.

    Raises:
        SpecError: If the objective is not best-mean, or the name leaves no room for the suffix.
    """
    spec = checked.spec
    if spec.objective != "best-mean":
        raise SpecError(
            f"--exhaustive scores every candidate on every example, and '{spec.name}' asks for "
            f"{spec.objective}; leave it out"
        )
    name = exhaustive_name(spec.name)
    if len(name) > LONGEST_NAME:
        raise SpecError(
            f"--exhaustive: {name} has more than {LONGEST_NAME} characters; choose a shorter name with --fork"
        )
    full = spec.model_copy(
        update={
            "name": name,
            "selector": SelectorSpec(name="row-mean"),
            "history": [],
            "holdout": None,
            "groups": None,
            "constraints": [],
            "batch_size": min(checked.grid, PAIRS_AT_ONCE),
            "stopping": StoppingSpec(budget=checked.grid),
        }
    )
    return check_campaign(full, checked.dataset)
