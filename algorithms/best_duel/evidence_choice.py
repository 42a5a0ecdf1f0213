"""Which evidence a record of duels is read by: counts, or the Bradley-Terry model while it fits."""

from winnow.algorithms.best_duel.bradley_terry.evidence import BradleyTerryEvidence
from winnow.algorithms.best_duel.counts.evidence import CountEvidence
from winnow.algorithms.best_duel.duel_record import DuelRecord
from winnow.algorithms.best_duel.evidence import Evidence
from winnow.algorithms.best_duel.setting import Setting


def evidence_of(setting: Setting, record: DuelRecord) -> Evidence:
    """The evidence of a record: by the Bradley-Terry model where the arms have features, else by counts."""
    if setting.features is None:
        return CountEvidence(setting, record)
    return BradleyTerryEvidence(setting, record)


def in_force(evidence: Evidence) -> Evidence:
    """What to go by after a tell: the evidence, or that by counts once the duels refute its model."""
    if isinstance(evidence, BradleyTerryEvidence) and evidence.is_refuted:
        return evidence.by_counts
    return evidence
