"""Log a running campaign: its beginning, every round, dropped candidates, loads and warnings."""

import logging
import math
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from winnow.algorithms.decision import Decision
from winnow.flows.run.log_format import RunContext
from winnow.flows.run.signals import Interrupts
from winnow.storage.queries import campaign_views
from winnow.storage.queries import unscored as unscored_views
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import rounds as round_records
from winnow.storage.records.record_types import RoundRecord
from winnow.tasks.answer.sentences.answer_lines import headline, subject
from winnow.tasks.queries.status import CampaignStatus
from winnow.tasks.queries.warnings.campaign_warnings import EarlyWarnings
from winnow.tasks.queries.warnings.from_spec import CampaignWarning
from winnow.tasks.spec.stored_spec import left_out_of

if TYPE_CHECKING:  # `log_answer` is also used by commands that run no round
    from winnow.tasks.campaign.session import CampaignSession
    from winnow.tasks.objectives.runner import JudgedRound

LOGGER = logging.getLogger("winnow.campaign")


class RoundLog:
    """A callback that logs a run, and sets the campaign and round for all log lines."""

    def __init__(self, interrupts: Interrupts, context: RunContext) -> None:
        from winnow.tasks.queries.warnings.first_outputs import FirstOutputs

        self._interrupts = interrupts
        self._context = context
        self._dropped: set[str] = set()
        self._loads_logged = 0
        self._early_warnings = EarlyWarnings()
        self._first_outputs = FirstOutputs()

    @property
    def wants_to_stop(self) -> bool:
        """See `Callback`."""
        return self._interrupts.asked

    def begun(self, campaign: "CampaignSession") -> None:
        """See `Callback`."""
        with campaign.database.reading() as session:
            stored = campaign_views.totals(session, campaign.record.id)
            unfinished = round_records.unfinished_round(session, campaign.record.id)
            following = round_records.next_round_number(session, campaign.record.id)
            self._context.round = following if unfinished is None else unfinished.number
        self._context.campaign = campaign.record.name
        self._dropped = _dropped(campaign, campaign.selector.decision())
        self._loads_logged = stored["loads"]
        LOGGER.info(
            "campaign %s continues with %s comparisons stored",
            campaign.record.name,
            stored["comparisons"],
            extra={
                "event": "campaign_begun",
                "candidates": stored["candidates"],
                "examples": stored["examples"],
                "comparisons": stored["comparisons"],
            },
        )

    def round_judged(self, campaign: "CampaignSession", judged: "JudgedRound") -> Collection[int]:
        """See `Callback`."""
        found = self._first_outputs.look(campaign, judged)
        self._early_warnings.were_told(found.warnings)
        self._warn(found.warnings)
        return ()

    def round_done(self, campaign: "CampaignSession", round_: RoundRecord, decision: Decision) -> None:
        """See `Callback`."""
        self._context.round = round_.number
        self._log_loads(campaign)
        self._log_round(campaign, round_, decision)
        self._log_unscored(campaign, round_)
        self._log_dropped(campaign, decision)
        self._log_warnings(campaign, decision)
        self._context.round = round_.number + 1

    def ended(self) -> None:
        """See `Callback`."""
        self._context.round = None

    def _log_loads(self, campaign: "CampaignSession") -> None:
        with campaign.database.reading() as session:
            new = campaign_records.list_loads(session, campaign.record.id, skip=self._loads_logged)
        self._loads_logged += len(new)
        for row in new:
            LOGGER.info(
                "model %s was ready after %.1f s",
                row["model"],
                row["seconds"],
                extra={"event": f"model_{row['kind']}", "model": row["model"], "seconds": row["seconds"]},
            )

    def _log_round(self, campaign: "CampaignSession", round_: RoundRecord, decision: Decision) -> None:
        arm = decision.best
        names = [each.name for each in campaign.checked.candidates]
        with campaign.database.reading() as session:
            budgets = campaign.budgets.usage(session)
        best = {} if arm is None else {
            "best": names[arm],
            "estimate": _known(decision.estimates[arm]),
            "lower": _known(decision.lower[arm]),
            "upper": _known(decision.upper[arm]),
        }  # fmt: skip
        LOGGER.info(
            "round %d is recorded: %s",
            round_.number + 1,
            ", ".join(str(each) for each in budgets),
            extra={
                "event": "round_recorded",
                "comparisons": len(round_.examples),
                **best,
                "stop": decision.stop,
                "reason": decision.reason,
                "spent": {each.kind: each.spent for each in budgets},
            },
        )

    def _log_unscored(self, campaign: "CampaignSession", round_: RoundRecord) -> None:
        with campaign.database.reading() as session:
            unscored = unscored_views.of_round(session, round_.id)
        for row in unscored:
            LOGGER.warning(
                "%d comparisons of %s have no outcome: %s",
                row["comparisons"],
                row["candidate"],
                row["reason"],
                extra={"event": "comparisons_unscored", **row},
            )

    def _log_dropped(self, campaign: "CampaignSession", decision: Decision) -> None:
        for name in sorted(dropped_now := _dropped(campaign, decision) - self._dropped):
            is_left_out = name in left_out_of(campaign.record.execution)
            why = "the user excluded it" if is_left_out else "too many of its comparisons have no outcome"
            LOGGER.warning(
                "%s is dropped: %s", name, why, extra={"event": "candidate_dropped", "candidate": name}
            )
        self._dropped |= dropped_now

    def _log_warnings(self, campaign: "CampaignSession", decision: Decision) -> None:
        found = self._early_warnings.new(
            campaign.database,
            campaign.record,
            comparisons=campaign.allowance.answered,
            stop=decision.stop,
            statuses=decision.status,
        )
        self._warn(found)

    def _warn(self, warnings: Sequence[CampaignWarning]) -> None:
        for warning in warnings:
            LOGGER.warning(
                "check: %s", warning.sentence, extra={"event": "campaign_warning", "kind": warning.kind}
            )


def _dropped(campaign: "CampaignSession", decision: Decision) -> set[str]:
    """Names of the candidates that the selector has dropped."""
    names = [each.name for each in campaign.checked.candidates]
    # Candidates that joined during the round are not in the decision yet.
    return {name for name, status in zip(names, decision.status, strict=False) if status == "dropped"}


def log_answer(status: CampaignStatus) -> None:
    """Log the answer of a campaign as an event `campaign_ended`."""
    answer, best = status.answer, status.answer.of_best
    LOGGER.info(
        "campaign %s: %s, %s",
        status.name,
        headline(answer, status.state),
        subject(answer),
        extra={
            "event": "campaign_ended",
            "campaign": status.name,
            "state": status.state,
            "outcome": answer.outcome,
            "claim": asdict(answer.claim),
            "reason": answer.reason,
            "budget": None if status.stopped_by is None else status.stopped_by.kind,
            "best": best and best.name,
            "tied": answer.tied,
            "dropped": [each.name for each in answer.dropped],
            "estimate": best and best.estimate,
            "lower": best and best.lower,
            "upper": best and best.upper,
            "held_out": answer.held_out_mean,
        },
    )


def _known(value: float) -> float | None:
    """The value as a float; None for NaN, which JSON lacks."""
    return None if math.isnan(value) else float(value)
