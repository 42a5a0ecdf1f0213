"""Waiting for humans: a planned round whose examples lack labels is left as it is until they arrive."""

from winnow.storage.records.human import labels
from winnow.storage.records.values import RoundRecord
from winnow.tasks.campaign.session import CampaignSession


def lacks_labels(campaign: CampaignSession, round_: RoundRecord) -> bool:
    """Whether a round cannot go on before a human has labelled some of its examples."""
    with campaign.database.reading() as session:
        return bool(labels.keys_without(session, campaign.record.dataset_id, round_.examples))
