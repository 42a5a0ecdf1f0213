"""Number of canary prompts for a served model: about 5% of its requests in a campaign, and at least five.

They are always the first ones of the fixed list. Five different answers out of five still show a change, if
the server repeats itself.
"""

import math

from winnow.storage.objectives import traits_of
from winnow.tasks.campaign.canaries.changed_models import N_PROMPTS
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.engines.known_providers import REMOTE
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.spec.sections.budget import PriceSpec
from winnow.tasks.spec.stored_spec import limits_of

LEAST = 5
"""The minimum number with which a change can be significant; see `changes.has_changed`."""

SHARE = 0.05
"""Share of a campaign's requests, or of its limits of tokens and cost, for canary prompts, at most."""

LENGTHS = (16, 32)
"""Approximate tokens of a canary prompt and of its answer."""


def n_prompts(checked: ResolvedCampaign, model: ModelRef) -> int:
    """Number of canary prompts that a campaign sends to a served model at each contact."""
    spec = checked.spec
    share = SHARE * texts_of(checked, model)
    limits = limits_of(spec.stopping.stored_budget, spec.objective)
    n_served = sum(each.provider in REMOTE for each in checked.models_to_ask)
    if "tokens" in limits:
        share = min(share, SHARE * limits["tokens"] / sum(LENGTHS) / max(1, n_served))
    if "cost" in limits and (price := _price(spec.execution.prices.get(model.name))):
        share = min(share, SHARE * limits["cost"] / price / max(1, n_served))
    return max(LEAST, min(N_PROMPTS, math.ceil(share)))


def texts_of(checked: ResolvedCampaign, model: ModelRef) -> float:
    """Number of outputs that a campaign requests from a model, if candidates share comparisons equally."""
    asked = checked.most * checked.spec.texts_each
    own = sum(each.model.name == model.name for each in checked.candidates)
    if not own:  # it judges
        return asked
    sides = 2 if traits_of(checked.spec.objective).compares_pairs else 1
    return asked * sides * own / len(checked.candidates)


def canary_words(checked: ResolvedCampaign) -> str | None:
    """The number of canary prompts that each served model gets first, in words; None if none gets any."""
    if not checked.spec.execution.canaries:
        return None
    asked = {each.name: n_prompts(checked, each) for each in checked.models_to_ask if each.provider in REMOTE}
    if not asked:
        return None
    if len({*asked.values()}) == 1:
        each = "" if len(asked) == 1 else f" for each of {len(asked)} served models"
        return f"{next(iter(asked.values()))} of {N_PROMPTS} canary prompts{each}"
    told = ", ".join(f"{n} for {name}" for name, n in asked.items())
    return f"of {N_PROMPTS} canary prompts {told}"


def _price(price: PriceSpec | None) -> float:
    """The price of a canary prompt and its answer; 0 if it is unknown."""
    if price is None:
        return 0.0
    return (LENGTHS[0] * price.input + LENGTHS[1] * price.output) / 1_000_000
