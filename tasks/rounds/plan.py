"""Plan the next rounds: the selector proposes pairs, which are stored as the plan.

The plan is stored before anything is generated.
"""

from collections.abc import Callable

import numpy as np

from winnow.algorithms.protocols import Batch, round_rng
from winnow.storage.records import rounds as round_records
from winnow.storage.records.leases import writing_under
from winnow.storage.records.record_types import RoundRecord
from winnow.tasks.campaign.blas_threads import on_one_thread
from winnow.tasks.campaign.lease import now
from winnow.tasks.campaign.session import CampaignSession

Ask = Callable[[np.random.Generator], Batch]


def plan_rounds(campaign: CampaignSession, *, begins: bool) -> list[RoundRecord]:
    """Plan further rounds until as many are in flight as allowed; return these rounds.

    A further round is planned from all observations so far, while at most `lookahead` others are in flight.
    If candidates join with it, it waits until all others are finished: these were planned without the new
    candidates, and a selector's state depends on the order of observations and joins.

    Args:
        campaign: The running campaign, whose selector has observed all finished rounds.
        begins: Whether further rounds can begin.

    Returns:
        The rounds in order. Empty if no round is in flight and no round can begin, or if the selector
            proposes no further
        batch.
    """
    with campaign.database.reading() as session:
        planned = round_records.unfinished_rounds(session, campaign.record.id)
    while begins and len(planned) <= campaign.checked.lookahead:
        if planned and planned[-1].number + 1 in campaign.checked.first_rounds:
            break
        new = plan_new(campaign, campaign.selector.ask, n_in_flight=len(planned))
        if new is None:
            break
        planned.append(new)
    campaign.n_in_flight = len(planned)
    return planned


def plan_round(campaign: CampaignSession) -> RoundRecord | None:
    """The plan of the next round: the stored one if unfinished, else a new proposal.

    Returns:
        None if the selector proposes no further batch.
    """
    return stored_plan(campaign) or plan_new(campaign, campaign.selector.ask)


def stored_plan(campaign: CampaignSession) -> RoundRecord | None:
    """The stored plan of an unfinished round; None if all rounds are finished."""
    with campaign.database.reading() as session:
        stored = round_records.unfinished_round(session, campaign.record.id)
    if stored is not None:
        campaign.checked.at_round(campaign.selector, stored.number)
    return stored


@on_one_thread
def plan_new(campaign: CampaignSession, ask: Ask, *, n_in_flight: int = 0) -> RoundRecord | None:
    """Store a proposed batch as the next round; None if the batch is empty.

    Args:
        campaign: The running campaign.
        ask: Function that proposes the batch.
        n_in_flight: Number of rounds in flight before it.
    """
    with campaign.database.reading() as session:
        number = round_records.next_round_number(session, campaign.record.id)
    campaign.checked.at_round(campaign.selector, number)
    batch = ask(round_rng(campaign.seed_of_draws, number))
    if len(batch) == 0:
        return None
    arms, examples = batch.arms.tolist(), batch.examples.tolist()
    propensities = None if batch.propensities is None else batch.propensities.tolist()
    with writing_under(campaign.database, campaign.lease) as session:
        return round_records.add_round(
            session,
            campaign.record.id,
            number=number,
            planned_after=number - n_in_flight,
            arms=arms,
            examples=examples,
            propensities=propensities,
            now=now(),
        )
