"""What to run next: the algorithm asks, and the plan is stored before anything is generated."""

from algorithms.protocols import round_rng
from storage import repository
from storage.leases import writing_under
from storage.records import RoundRecord
from tasks.leasing import now
from tasks.running import RunningCampaign


def plan_round(campaign: RunningCampaign) -> RoundRecord | None:
    """The plan of the next round: the stored one if it is unfinished, else what the selector asks for.

    Returns:
        None when the selector wants nothing more.
    """
    with campaign.database.reading() as session:
        if stored := repository.unfinished_round(session, campaign.record.id):
            return stored
        number = repository.next_round_number(session, campaign.record.id)
    batch = campaign.checked.ask(campaign.selector, round_rng(campaign.record.seed, number))
    if len(batch) == 0:
        return None
    with writing_under(campaign.database, campaign.lease) as session:
        return repository.add_round(
            session,
            campaign.record.id,
            number=number,
            arms=batch.arms.tolist(),
            examples=batch.examples.tolist(),
            now=now(),
        )
