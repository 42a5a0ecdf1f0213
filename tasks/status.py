"""Where a campaign stands: derived from its rows and its lease each time it is asked, stored nowhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy.orm import Session

from storage import campaign_records, leases, outcome_records, round_records, views
from storage.records import CampaignRecord, DecisionRecord, LeaseRecord
from tasks.budget_kinds import limits_of, own_kind
from tasks.budgets import Ledger, Spending, overspent
from tasks.certifying.certificate import Certificate, certificate_of
from tasks.leasing import is_gone, now
from tasks.modelled import uses_features
from tasks.routing.standing import Standing, standing_of

State = Literal["running", "decided", "undecided", "waiting", "interrupted", "new"]
"""What a campaign is doing:

* running: a live process holds its lease.
* decided: it ended with the answer it was asked for.
* undecided: it ended without: the budget is spent, nothing is certified, or no candidate can be judged.
* waiting: it needs labels that a human has not given yet; then `winnow resume` goes on.
* interrupted: it was begun and nobody runs it; `winnow resume` goes on.
* new: it was stored and no round is finished; `winnow resume` begins.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignStatus:
    """A campaign's progress and present answer."""

    name: str
    objective: str
    state: State
    reason: str
    """Why it ended, as the selector says, or "running"; "budget" whichever limit of it is spent."""
    best: str | None
    estimate: float | None
    lower: float | None
    upper: float | None
    contenders: tuple[str, ...]
    """Candidates that the intervals do not yet rule out as best, the best included, best estimate first."""
    delta: float | None
    """Error probability that was asked for; None where only the budget ends the campaign."""
    epsilon: float
    trusts_a_model: bool
    """Whether what is believed of duels follows a model of the candidates, and holds as far as that does."""
    budget: int | None
    """What the algorithm may spend: human labels to certify, else comparisons; None where that is all."""
    budgets: tuple[Spending, ...]
    """Every limit and what is spent of it, after the last finished round."""
    stopped_by: Spending | None
    """The limit that is spent and lets no further round begin; None where that is the algorithm's own."""
    totals: Mapping[str, Any]
    """Rounds, comparisons, scored, generations, tokens, engine seconds, loads of models and what they took,
    and the size of the full grid."""
    holder: str | None
    """The process that runs it."""
    left: str | None = None
    """Where nobody runs it and it is to go on: which process did last, and how that ended."""
    certificate: Certificate | None = None
    """What more there is to say of a campaign that certifies."""
    standing: Standing | None = None
    """What more there is to say of a campaign that routes."""

    @property
    def share_of_grid(self) -> float:
        """Comparisons spent over those of an exhaustive evaluation."""
        grid: int = self.totals["grid"]
        return self.totals["comparisons"] / grid if grid else 0.0

    @property
    def share_of_loading(self) -> float:
        """Seconds that models took to load, over those and the ones that they took to answer."""
        loading: float = self.totals["load_seconds"]
        return loading / (loading + self.totals["engine_seconds"]) if loading else 0.0

    @property
    def is_settled(self) -> bool:
        """Whether it has ended and running it again would ask nothing more."""
        has_ended = self.state in ("decided", "undecided", "waiting")
        if self.stopped_by is not None:
            return has_ended
        room = self.reason == "budget" and not any(each.is_spent for each in self.budgets)
        if self.standing is not None:
            prompts = self.standing.prompts
            arrived = self.reason == "exhausted" and (
                self.totals["comparisons"] < min(self.budget or prompts, prompts)
            )
            room = room or arrived or self.standing.unfinished
        return has_ended and not room

    @property
    def is_guaranteed(self) -> bool:
        """Whether the answer holds with the stated error probability, or is exact."""
        if self.certificate is not None:
            return self.state == "decided" and self.certificate.is_reliable
        if self.standing is not None:
            return False
        proven = ("confident", "confident", "exhausted")
        # Without a model the best must be shown to beat every other, whatever the threshold.
        shown = self.reason == "confident" and not self.trusts_a_model
        return self.state == "decided" and (self.reason in proven or shown)


def campaign_status(session: Session, campaign: CampaignRecord) -> CampaignStatus:
    """Where a campaign stands at this moment."""
    decision = outcome_records.latest_decision(session, campaign.id)
    lease = leases.find(session, campaign.id)
    live = lease is not None and leases.is_live(lease, now=now(), is_gone=is_gone)
    names = campaign_records.candidate_names(session, campaign.id)
    stopping = campaign.spec["stopping"]
    position = names.index(decision.best) if decision and decision.best else None
    certifies = campaign.objective == "certify"
    certificate = certificate_of(session, campaign, names, decision) if certifies else None
    routes = campaign.objective == "route"
    budgets = Ledger(campaign).look(session)
    stopped_by = None
    if decision and round_records.unfinished_round(session, campaign.id) is None:
        stopped_by = overspent(budgets, own_kind(campaign.objective))
    reason = _reason(decision, None if live else stopped_by)
    # To route is no question with an answer that could stay open.
    state = _state(decision, reason, live, None if routes else stopping["delta"])
    waits = certificate is not None and certificate.waits_for and state in ("interrupted", "new")
    return CampaignStatus(
        name=campaign.name,
        objective=campaign.objective,
        state="waiting" if waits else state,
        reason=reason,
        best=decision.best if decision else None,
        estimate=decision.estimates[position] if decision and position is not None else None,
        lower=decision.lower[position] if decision and position is not None else None,
        upper=decision.upper[position] if decision and position is not None else None,
        contenders=() if certifies or routes else _contenders(names, decision, position),
        delta=stopping["delta"],
        epsilon=stopping["epsilon"],
        trusts_a_model=uses_features(campaign.spec.get("selector", {})),
        budget=_own_budget(campaign),
        budgets=budgets,
        stopped_by=stopped_by,
        totals=views.totals(session, campaign.id),
        holder=str(lease.holder) if lease and live else None,
        left=_left(lease) if lease and state in ("interrupted", "new") else None,
        certificate=certificate,
        standing=standing_of(session, campaign, decision.best if decision else None) if routes else None,
    )


def _own_budget(campaign: CampaignRecord) -> int | None:
    limits = limits_of(campaign.execution["budget"], campaign.objective)
    limit = limits.get(own_kind(campaign.objective))
    return None if limit is None else int(limit)


def _reason(decision: DecisionRecord | None, stopped_by: Spending | None) -> str:
    """The selector's, unless it would go on and may not."""
    if decision is None:
        return "running"
    return "budget" if stopped_by is not None and not decision.stop else decision.reason


def _state(decision: DecisionRecord | None, reason: str, live: bool, delta: float | None) -> State:
    if live:
        return "running"
    if decision is None:
        return "new"
    if reason == "running":
        return "interrupted"
    is_answer = reason.startswith("confident") or reason in ("exhausted", "certified")
    if is_answer or (reason == "budget" and delta is None):
        return "decided"
    return "undecided"


def _left(lease: LeaseRecord) -> str:
    """How the last holder of a lease that is not live came to leave it."""
    if lease.released_at is not None:
        return f"{lease.holder} stopped in order at {lease.released_at:%Y-%m-%d %H:%M:%S} UTC"
    ended = "is gone" if is_gone(lease.holder) else "is not heard of any more"
    return f"{lease.holder} {ended}; its last heartbeat was at {lease.heartbeat_at:%Y-%m-%d %H:%M:%S} UTC"


def _contenders(names: list[str], decision: DecisionRecord | None, best: int | None) -> tuple[str, ...]:
    if decision is None or best is None:
        return ()
    floor = decision.lower[best] or 0.0
    alive = [
        arm
        for arm, (estimate, upper) in enumerate(zip(decision.estimates, decision.upper, strict=True))
        if arm == best or (estimate is not None and (upper is None or upper > floor))
    ]
    alive.sort(key=lambda arm: (arm != best, -(decision.estimates[arm] or 0.0)))
    return tuple(names[arm] for arm in alive)
