"""threshold: the checked campaign, its outcome, and a view of its own."""

from dataclasses import dataclass

from winnow.tasks.campaign.scored import ScoredCampaign, check_judges
from winnow.tasks.candidates.candidates import build_candidates


@dataclass(frozen=True, kw_only=True)
class Threshold(ScoredCampaign):
    """Every output is scored; a candidate is above or below the threshold."""

    @classmethod
    def check(cls, spec, dataset, *, is_allowed=True):
        candidates = build_candidates(spec, dataset, is_allowed=is_allowed)
        return cls(spec=spec, dataset=dataset, **check_judges(spec, candidates), candidates=candidates)


def outcome_of(decision, reason, claim):
    """Decided once each candidate is above or below."""
    return "undecided" if "active" in decision.status else "decided"


def above(look):
    """The candidates above the threshold."""
    statuses = () if look.decision is None else look.decision.status
    return [{"arm": arm} for arm, status in enumerate(statuses) if status == "certified"]


def lines_of(answer):
    """The candidates on either side, and how sure that is."""
    sides = [("above", answer.named("certified")), ("below", answer.named("refuted"))]
    lines = [(label, ", ".join(names) or "none") for label, names in sides]
    sure = (
        f"wrong with probability {answer.claim.delta:g} at most" if answer.outcome == "decided" else "nothing"
    )
    return [*lines, ("confidence", sure)]
