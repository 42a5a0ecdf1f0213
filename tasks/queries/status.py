"""The status of a campaign: derived from its rows and its lease each time it is requested, stored nowhere."""

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
"""The state of a campaign; the way it ended is its answer's outcome:

* running: a process holds its lease, seems to live (see `tasks.campaign.lease`), and there is more to do.
* ended: nothing more is to be asked, or nothing more may be spent.
* waiting: it needs labels or judgments that people have not given yet; then `winnow resume` continues.
* interrupted: it began and nobody runs it; `winnow resume` continues.
* new: it was stored and no round is finished; `winnow resume` begins.
"""


AT_REST = ("ended", "waiting")
"""The states in which a campaign has nothing to do, unless its budget was raised or prompts arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignStatus:
    """A campaign's progress and present answer."""

    name: str
    objective: str
    state: State
    answer: Answer
    """The findings so far, and how sure they are."""
    budget: int | None
    """Limit of what the algorithm may spend: human labels to certify, else comparisons; None without one."""
    budgets: tuple[BudgetUsage, ...]
    """Every limit and what is spent of it, after the last finished round."""
    stopped_by: BudgetUsage | None
    """The limit that is spent and lets no further round begin; None if that is the algorithm's own."""
    totals: JsonView
    """Rounds, comparisons, scored, generations, tokens, engine seconds, loads of models and what they took,
    and the size of the full grid."""
    warnings: "tuple[CampaignWarning, ...]"
    """Possible faults though nothing failed; looked for where the answer is given in full."""
    holder: str | None
    """The process that runs it."""
    canaries: JsonView | None = None
    """Canary `prompts` that its servers were asked, how many `different` ones, and their `tokens`. They count
    against its limits and are in no total; looked for where the answer is given in full."""
    price: float | None = None
    """Cost of its texts so far, in the currency of its prices; None if not all of its models have one. Looked
    for where the answer is given in full."""
    left: str | None = None
    """The process that ran it last and how that ended, where nobody runs it and it is to continue."""
    has_room: bool = False
    """Whether it would ask more now, though its latest decision is to stop."""

    def headline_sentences(self) -> list[str]:
        """The sentences of the headline, and one on candidates whose scores may be wrong."""
        from winnow.tasks.answer.sentences.headline import headline_sentences
        from winnow.tasks.queries.warnings.from_spec import check_first

        return [*headline_sentences(self.answer, self.totals), *check_first(self.warnings)]

    @property
    def share_of_grid(self) -> float:
        """Comparisons spent over those of an exhaustive evaluation."""
        grid: int = self.totals["grid"]
        return self.totals["answered"] / grid if grid else 0.0

    @property
    def share_of_loading(self) -> float:
        """Seconds that models took to load, over those and the ones that they took to answer."""
        loading: float = self.totals["load_seconds"]
        return loading / (loading + self.totals["engine_seconds"]) if loading else 0.0

    @property
    def is_settled(self) -> bool:
        """Whether it has ended and running it again would ask nothing more."""
        return self.state in AT_REST and not self.has_room


PROGRESS_OF_PEOPLE = "winnow.tasks.objectives.human.annotating:progress_of"
"""Address of the function, so that campaigns without annotators do not load it."""


def campaign_status(look: Look, *, in_full: bool = False) -> CampaignStatus:
    """The status of a campaign at this moment.

    Args:
        look: The campaign as it is now.
        in_full: Whether to say as well what follows for new examples and what may be wrong: that reads every
            comparison of two candidates.
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
    # A decided campaign that another process has just taken, to find it decided, has ended all the same.
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
    """What is said of a campaign whose status could not be derived, in place of the status."""
    if isinstance(error, CampaignUnreadable):
        return "is left out, because its answer depends on a campaign that cannot be read"
    kind = type(error).__name__
    return f"is left out, because values that its answer needs are unreadable ({kind}): see winnow db check"


def each_status(session: Session) -> tuple[list[tuple[CampaignRecord, CampaignStatus]], list[str]]:
    """Every campaign with its status, oldest first, and a sentence for each one that cannot be read."""
    records, unreadable = campaign_records.readable_campaigns(session)
    found, wrong = [], [str(each) for each in unreadable]
    for record in records:
        try:
            found.append((record, campaign_status(Look(session, record))))
        except campaign_records.UNREADABLE as error:
            wrong.append(f"campaign '{record.name}' {left_out(error)}")
    return found, wrong


def taking_history(session: Session, leaving: Collection[str]) -> dict[str, str]:
    """By each campaign to be deleted: one that stays, has not ended, and takes its history from it."""
    from winnow.tasks.data.score_tables import CAMPAIGN

    found = {}
    for each in campaign_records.campaigns(session):
        sources = {source.removeprefix(CAMPAIGN) for source in each.spec.get("history") or ()}
        needed = sources & {*leaving} if each.name not in leaving else set()
        if needed and campaign_status(Look(session, each)).state != "ended":
            found.update(dict.fromkeys(needed, each.name))
    return found


def told_in_full(look: Look, status: CampaignStatus) -> CampaignStatus:
    """The status, with what follows for new examples and what may be wrong; see `campaign_status`."""
    # Imported here: they read outputs, which `winnow status` without a name does not.
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
        price=total_price(look.session, look.record),
    )


def _own_budget(campaign: CampaignRecord) -> int | None:
    limits = limits_of(campaign.execution["budget"], campaign.objective)
    limit = limits.get(own_kind(campaign.objective))
    return None if limit is None else int(limit)


def _is_raised(look: Look, budgets: Sequence[BudgetUsage]) -> bool:
    """Whether more may be asked of a campaign that ended when a budget was spent."""
    if any(each.is_spent for each in budgets):
        return False
    if look.record.spec.get("holdout") is None:
        return True
    from winnow.tasks.objectives.best_mean.holdout.results import lets_ask  # it needs numpy

    own = own_kind(look.record.objective)
    return all(lets_ask(look, look.names, look.decision, each) for each in budgets if each.kind == own)


def _has_news(
    reason: str,
    statuses: Sequence[str],
    budget: int | None,
    standing: "Standing | None",
    totals: JsonView,
) -> bool:
    """Whether a campaign that routes has ended, and prompts or candidates have come since."""
    if standing is None:
        return False
    if reason == "all-dropped" and "active" in statuses:
        return True  # one that joined since, of which nobody has asked anything yet
    prompts = min(budget or standing.prompts, standing.prompts)
    return standing.unfinished or (reason == "exhausted" and totals["comparisons"] < prompts)


def _state(decision: DecisionRecord | None, reason: str, *, waits: bool) -> State:
    """The state that a campaign would have if no process ran it."""
    if reason == "running":
        return "waiting" if waits else "interrupted" if decision is not None else "new"
    return "ended"
