"""From texts to outcomes: a verdict for each comparison, or the reason there is none."""

from storage.records import NewComparison, RoundRecord
from tasks.certifying.scoring import score_losses
from tasks.duelling import judge_duels
from tasks.generating import Texts
from tasks.running import RunningCampaign
from tasks.scoring import score_outputs


def judge_round(campaign: RunningCampaign, round_: RoundRecord, texts: Texts) -> list[NewComparison]:
    """One comparison per planned pair or duel, in planned order; an unscored one says why.

    Raises:
        EngineDied, EngineTimeout: Transient, where models judge; replies that were committed stay.
        LabelMissing: If a label is not there any more; `awaits_labels` looks before a round goes on.
        LeaseLost: If another process took the campaign over.
    """
    objective = campaign.checked.spec.objective
    if objective == "best-duel":
        return judge_duels(campaign, round_, texts)
    if objective == "certify":
        return score_losses(campaign, round_, texts)
    return score_outputs(campaign, round_, texts)
