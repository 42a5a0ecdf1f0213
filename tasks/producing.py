"""The texts of a round, by what the campaign asks."""

from storage.records import RoundRecord
from tasks.certifying.answers import generate_answers
from tasks.generating import Texts, generate_meetings
from tasks.running import RunningCampaign


def generate_round(campaign: RunningCampaign, round_: RoundRecord) -> Texts:
    """Have every text that the round needs stored, or know why one cannot be made; see `have_texts`.

    Raises:
        EngineDied, EngineTimeout: Transient; what was committed stays.
        LeaseLost: If another process took the campaign over.
    """
    if campaign.checked.certification is not None:
        return generate_answers(campaign, round_)
    return generate_meetings(campaign, round_)
