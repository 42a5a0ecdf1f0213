"""Candidates that a user left out of a running campaign, because of how their first outputs looked.

They are stored among the execution fields of the campaign, each with the round by which it was left out. Its
selector drops it when it observes that round, and so does one that observes the stored rounds again.
"""

from collections.abc import Sequence

import numpy as np

from winnow.algorithms.protocols import LeavingOut, Selector
from winnow.storage.json_types import JsonObject, JsonView
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.candidates.candidates import Candidate
from winnow.tasks.spec.stored_spec import LEFT_OUT, left_out_of


def keeping_left_out(execution: JsonView, stored: JsonView) -> JsonObject:
    """The execution fields of a new definition, with the candidates that were left out before."""
    return {**execution, **({LEFT_OUT: stored[LEFT_OUT]} if LEFT_OUT in stored else {})}


def can_leave_out(selector: Selector) -> bool:
    """Whether candidates can be left out of the campaign of a selector."""
    return isinstance(selector, LeavingOut)


def leave_out_by(
    selector: Selector, campaign: CampaignRecord, candidates: Sequence[Candidate], number: int
) -> None:
    """Have a selector drop the candidates that were left out by a round, before it observes that round.

    Safe to call again. See `LeavingOut`.
    """
    rounds = left_out_of(campaign.execution)
    if rounds and isinstance(selector, LeavingOut):
        arms = [arm for arm, each in enumerate(candidates) if rounds.get(each.name, number + 1) <= number]
        selector.leave_out(np.array(arms, dtype=np.int64))
