"""The steps of a round in which objectives differ, as plain functions."""

from winnow.storage.records.values import NewComparison, RoundRecord
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.judges.broken import require_sound_judge
from winnow.tasks.rounds.generate import Texts
from winnow.tasks.rounds.plan import plan_round


def can_begin(campaign: CampaignSession) -> bool:
    """Whether there is a round to generate now, so that it is worth loading models."""
    round_ = plan_round(campaign)
    return round_ is not None and not awaits_humans(campaign, round_)


def awaits_humans(campaign: CampaignSession, round_: RoundRecord) -> bool:
    """Whether a planned round cannot go on before a human has done something."""
    return campaign.checked.awaits_humans(campaign, round_)


def generate_round(campaign: CampaignSession, round_: RoundRecord) -> Texts:
    """Have every text that the round needs stored, or know why one cannot be made; see `have_texts`.

    Raises:
        EngineDied, EngineTimeout: Transient; what was committed stays.
        LeaseLost: If another process took the campaign over.
    """
    return campaign.checked.generate(campaign, round_)


def judge_round(campaign: CampaignSession, round_: RoundRecord, texts: Texts) -> list[NewComparison]:
    """One comparison per planned pair or duel, in planned order; an unscored one says why.

    Raises:
        EngineDied, EngineTimeout: Transient, where models judge; replies that were committed stay.
        JudgeBroken: If the judge is a plug-in that fails again and again.
        LabelMissing: If a label is not there any more; `awaits_humans` looks before a round goes on.
        LeaseLost: If another process took the campaign over.
    """
    comparisons = campaign.checked.judge_texts(campaign, round_, texts)
    require_sound_judge(campaign, comparisons)
    return comparisons
