"""Waiting for humans: a planned round whose examples lack labels is left as it is until they arrive."""

from storage import labels
from storage.records import RoundRecord
from tasks.planning import plan_round
from tasks.running import RunningCampaign


def awaits_labels(campaign: RunningCampaign, round_: RoundRecord) -> bool:
    """Whether a round cannot go on before a human has labelled some of its examples."""
    if campaign.checked.certification is None:
        return False
    with campaign.database.reading() as session:
        return bool(labels.keys_without(session, campaign.record.dataset_id, round_.examples))


def can_begin(campaign: RunningCampaign) -> bool:
    """Whether there is a round to generate now, so that it is worth loading models."""
    if campaign.checked.certification is None:
        return True
    round_ = plan_round(campaign)
    return round_ is not None and not awaits_labels(campaign, round_)
