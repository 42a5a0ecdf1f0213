"""The status of a campaign, derived from its rows and its lease on each request."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from sqlalchemy.orm import Session

from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.errors import CampaignUnreadable
from winnow.storage.json_types import JsonView
from winnow.storage.objectives import traits_of
from winnow.storage.queries import campaign_views
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import canaries as canary_records
from winnow.storage.records import leases
from winnow.storage.records.record_types import CampaignRecord, DecisionRecord
from winnow.tasks.answer.derive import answer_of
from winnow.tasks.answer.model import Answer, People
from winnow.tasks.answer.outcome import reason_of
from winnow.tasks.campaign.budget import BudgetTracker, BudgetUsage, ending_limit, total_price
from winnow.tasks.campaign.lease import how_left, now, seems_gone
from winnow.tasks.campaign.look import Look
from winnow.tasks.spec.judge_tree import is_human
from winnow.tasks.spec.stored_spec import limits_of, own_kind

if TYPE_CHECKING:
    from winnow.tasks.objectives.certify.certificate import Certificate
    from winnow.tasks.objectives.route.status import Standing
    from winnow.tasks.queries.warnings.from_spec import CampaignWarning

State = Literal["running", "ended", "waiting", "interrupted", "new"]
"""State of a campaign. How it ended is the outcome of its answer:

* running: a process that seems alive (see `tasks.campaign.lease`) holds its lease, and work is left.
* ended: nothing is left to evaluate, or a limit is spent.
* waiting: it needs labels or judgments from annotators; then `winnow resume` continues.
* interrupted: it began and no process runs it; `winnow resume` continues.
* new: it was stored and no round is finished; `winnow resume` starts it.
"""


AT_REST = ("ended", "waiting")
"""States without work to do, unless the budget was raised or prompts arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignStatus:
    """A campaign's progress and current answer."""

    name: str
    objective: str
    state: State
    answer: Answer
    """The results so far, with their confidence."""
    budget: int | None
    """The limit that the selector counts: human labels for certify, else comparisons; None without a
    limit.
    """
    budgets: tuple[BudgetUsage, ...]
    """Every limit and the amount spent, after the last finished round."""
    stopped_by: BudgetUsage | None
    """The spent limit that prevents a further round; None without one, or if the selector itself
    enforces it.
    """
    totals: JsonView
    """Numbers of rounds, comparisons, scores, generations and tokens, engine seconds, loads of models with
    their time, and the size of the full grid.
    """
    warnings: "tuple[CampaignWarning, ...]"
    """Possible problems although nothing failed; computed only for the full answer."""
    holder: str | None
    """The process that runs the campaign; None if no process runs it."""
    canaries: JsonView | None = None
    """Canary prompts: `prompts` sent to its servers, number of `different` ones, and their `tokens`. They
    count for limits, but are not in totals. Computed only for the full answer.
    """
    price: float | None = None
    """Price of its outputs so far, in `currency`; None if one of its models has no price. Computed only for
    the full answer.
    """
    currency: str | None = None
    """Currency of `price`; None without a price, or if the file names no currency."""
    left: str | None = None
    """How the last process ended, for a campaign that should continue and that no process runs; else None."""
    has_room: bool = False
    """Whether the campaign can continue now although its latest decision is to stop."""

    def headline_sentences(self) -> list[str]:
        """Sentences of the headline, and one on candidates whose scores may be wrong."""
        from winnow.tasks.answer.sentences.headline import headline_sentences
        from winnow.tasks.queries.warnings.from_spec import check_first

        return [*headline_sentences(self.answer, self.totals), *check_first(self.warnings)]

    @property
    def share_of_grid(self) -> float:
        """Comparisons so far, as a share of those of an exhaustive evaluation."""
        grid: int = self.totals["grid"]
        return self.totals["answered"] / grid if grid else 0.0

    @property
    def share_of_loading(self) -> float:
        """Time to load models, as a share of the time to load and generate."""
        loading: float = self.totals["load_seconds"]
        return loading / (loading + self.totals["engine_seconds"]) if loading else 0.0

    @property
    def is_settled(self) -> bool:
        """Whether it has ended, and another run would evaluate nothing more."""
        return self.state in AT_REST and not self.has_room


PROGRESS_OF_PEOPLE = "winnow.tasks.objectives.human.annotating:progress_of"
"""Import path of the function, so that campaigns without annotators do not import it."""


def campaign_status(look: Look, *, in_full: bool = False) -> CampaignStatus:
    """The current status of a campaign.

    Args:
        look: The campaign.
        in_full: Whether to include new examples and warnings, which needs every comparison of two candidates.
    """
    decision = look.decision
    lease = leases.find(look.session, look.record.id)
    live = lease is not None and leases.is_live(lease, is_gone=partial(seems_gone, now=now()))
    traits = traits_of(look.record.objective)
    details = None if traits.details is None else object_at(traits.details)(look)
    certificate: Certificate | None = details if traits.measures_risk else None
    standing: Standing | None = details if traits.is_stream else None
    budgets = BudgetTracker(look.record).usage(look.session)
    stopped_by = ending_limit(look.session, look.record, decision, budgets)
    totals, own_budget = campaign_views.totals(look.session, look.record.id), _own_budget(look.record)
    reason = reason_of(decision, stopped_by)
    people = People(*object_at(PROGRESS_OF_PEOPLE)(look)) if is_human(look.record.spec) else None
    waits = bool((certificate and certificate.waits_for) or (people and people.wanted))
    state = _state(decision, reason, waits=waits)
    # A decided campaign has ended even if a process holds its lease, as it does while it reads the decision.
    raised = reason == "budget" and _is_raised(look, budgets)
    statuses = decision.status if decision else ()
    has_room = stopped_by is None and (raised or _has_news(reason, statuses, own_budget, standing, totals))
    if live and (has_room or state not in AT_REST):
        state = "running"
    answer = answer_of(
        look,
        decision=decision,
        has_ended=state == "ended",
        waits=state == "waiting",
        stopped_by=stopped_by,
        budgets=budgets,
        n_examples=totals["examples"],
        without_text=totals["comparisons"] - totals["answered"],
        people=people,
        certificate=certificate,
        standing=standing,
    )
    status = CampaignStatus(
        name=look.record.name,
        objective=look.record.objective,
        state=state,
        answer=answer,
        budget=own_budget,
        budgets=budgets,
        stopped_by=stopped_by,
        totals=totals,
        warnings=(),
        holder=str(lease.holder) if lease and live else None,
        left=how_left(lease) if lease and state in ("interrupted", "new") else None,
        has_room=has_room,
    )
    return told_in_full(look, status) if in_full else status


def left_out(error: Exception) -> str:
    """Clause shown instead of a campaign's status if the status cannot be derived."""
    if isinstance(error, CampaignUnreadable):
        return "is not shown, because its answer depends on a campaign that cannot be read"
    kind = type(error).__name__
    return f"is not shown, because values of its answer are unreadable ({kind}); run winnow db check"


def each_status(session: Session) -> tuple[list[tuple[CampaignRecord, CampaignStatus]], list[str]]:
    """All campaigns with their status, oldest first, and sentences on unreadable ones."""
    records, unreadable = campaign_records.readable_campaigns(session)
    found, wrong = [], [str(each) for each in unreadable]
    for record in records:
        try:
            found.append((record, campaign_status(Look(session, record))))
        except campaign_records.UNREADABLE as error:
            wrong.append(f"campaign '{record.name}' {left_out(error)}")
    return found, wrong


def taking_history(session: Session, leaving: Collection[str]) -> dict[str, str]:
    """Unfinished campaigns that use campaigns to be deleted as history.

    The result maps the name of each such campaign to be deleted to an unfinished one.
    """
    from winnow.tasks.data.score_tables import CAMPAIGN

    found = {}
    for each in campaign_records.campaigns(session):
        sources = {source.removeprefix(CAMPAIGN) for source in each.spec.get("history") or ()}
        needed = sources & {*leaving} if each.name not in leaving else set()
        if needed and campaign_status(Look(session, each)).state != "ended":
            found.update(dict.fromkeys(needed, each.name))
    return found


def with_output_warnings(look: Look, status: CampaignStatus) -> CampaignStatus:
    """The status with the warnings about outputs, of which it reads a limited number."""
    from winnow.tasks.queries.warnings.from_outputs import output_warnings

    found = output_warnings(look, has_ended=status.state == "ended")
    return replace(status, warnings=(*status.warnings, *found))


def told_in_full(look: Look, status: CampaignStatus) -> CampaignStatus:
    """Add new examples and warnings to a status; see `campaign_status`."""
    # Imported here because only the full status needs them.
    from winnow.tasks.answer import follow_ups
    from winnow.tasks.answer.earlier_campaigns import n_shown
    from winnow.tasks.answer.unit_costs import unsteady_engines
    from winnow.tasks.queries.warnings.campaign_warnings import campaign_warnings

    answer = status.answer
    return replace(
        status,
        answer=replace(
            answer,
            beyond=follow_ups.beyond_the_benchmark(look, answer),
            shown=n_shown(look),
            running=follow_ups.running_of(look, answer),
            unsteady=unsteady_engines(look),
            asked_before=follow_ups.same_questions(look, answer),
            next_step=follow_ups.next_step_of(look, answer),
        ),
        warnings=tuple(campaign_warnings(look, has_ended=status.state == "ended")),
        canaries=canary_records.spent(look.session, look.record.id),
        price=(price := total_price(look.session, look.record)),
        currency=None if price is None else look.record.execution["execution"].get("currency"),
    )


def _own_budget(campaign: CampaignRecord) -> int | None:
    limits = limits_of(campaign.execution["budget"], campaign.objective)
    limit = limits.get(own_kind(campaign.objective))
    return None if limit is None else int(limit)


def _is_raised(look: Look, budgets: Sequence[BudgetUsage]) -> bool:
    """Whether a campaign that ended by a spent budget can continue with a higher one."""
    if any(each.is_spent for each in budgets):
        return False
    if look.record.spec.get("holdout") is None:
        return True
    from winnow.tasks.objectives.best_mean.holdout.results import lets_ask  # it needs numpy

    own = own_kind(look.record.objective)
    return all(lets_ask(look, look.names, look.decision, each) for each in budgets if each.kind == own)


def _has_news(
    reason: str, statuses: Sequence[str], budget: int | None, standing: "Standing | None", totals: JsonView
) -> bool:
    """Whether an ended route campaign has new prompts or candidates."""
    if standing is None:
        return False
    if reason == "all-dropped" and "active" in statuses:
        return True  # a candidate joined since, and has no comparison yet
    prompts = min(budget or standing.prompts, standing.prompts)
    return standing.unfinished or (reason == "exhausted" and totals["comparisons"] < prompts)


def _state(decision: DecisionRecord | None, reason: str, *, waits: bool) -> State:
    """State of a campaign if no process runs it."""
    if reason == "running":
        return "waiting" if waits else "interrupted" if decision is not None else "new"
    return "ended"
