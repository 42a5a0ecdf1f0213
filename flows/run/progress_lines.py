"""A campaign's progress in lines: counts, and one line a round."""

import time

import numpy as np

from winnow.algorithms.decision import Decision
from winnow.flows.reports.output import tell
from winnow.flows.run.signals import Interrupts
from winnow.storage.objectives import traits_of
from winnow.storage.records.record_types import RoundRecord
from winnow.tasks.campaign.canaries.sizes import canary_words
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.queries.warnings.campaign_warnings import EarlyWarnings
from winnow.tasks.spec.selector_traits import GATE, TRUSTS_A_MEAN
from winnow.tasks.text.phrases import amount, ends, percentage, rounded

IN_QUESTION = "active"
UNFIT = {"infeasible", "unfit"}


class Tally:
    """The counts of a progress display: comparisons that had their texts so far, and how fast they come."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts
        self.told = 0
        self._told_at_start = 0
        self._campaign: CampaignSession | None = None
        self._stalled_at_start = 0.0
        self._started = time.monotonic()
        self._early_warnings = EarlyWarnings()

    @property
    def wants_to_stop(self) -> bool:
        """See `Callback`."""
        return self._interrupts.asked

    def begin(self, campaign: CampaignSession) -> None:
        """Take up the counts of a campaign that may have been begun before.

        The time counts from the moment at which the texts of the first round were asked for.
        """
        self.told = self._told_at_start = campaign.allowance.answered
        self._campaign, self._stalled_at_start = campaign, campaign.engines.stalled
        early = campaign.head_start
        self._started = time.monotonic() if early is None else early.began

    def take_up_round(self, campaign: CampaignSession, decision: Decision) -> list[str]:
        """Take up the counts of a round; return what to check since then, in sentences."""
        self.told = campaign.allowance.answered
        found = self._early_warnings.new(
            campaign.database,
            campaign.record,
            comparisons=self.told,
            stop=decision.stop,
            statuses=decision.status,
        )
        return [f"check: {warning.sentence}" for warning in found]

    def ended(self) -> None:
        """See `Callback`: the answer is printed by others."""

    @property
    def elapsed(self) -> float:
        """Seconds since the campaign was taken up."""
        return time.monotonic() - self._started

    @property
    def stalled(self) -> float:
        """Seconds of these in which models were being loaded and no engine was at work."""
        return 0.0 if self._campaign is None else self._campaign.engines.stalled - self._stalled_at_start

    @property
    def rate(self) -> float:
        """Comparisons a second since then, without the time that loading took."""
        return (self.told - self._told_at_start) / max(self.elapsed - self.stalled, 1e-9)

    @property
    def pace(self) -> str:
        """The rate as it is shown; large models on a processor take many seconds for one comparison."""
        return f"{self.rate:.0f}/s" if self.rate >= 10.0 else f"{self.rate:.2g}/s"

    def line(self, campaign: CampaignSession, round_: RoundRecord, decision: Decision) -> str:
        """The standing of the campaign, in one line."""
        most = campaign.checked.most
        spent = (
            f"{amount(self.told)} of {amount(most)} comparisons "
            f"({percentage(self.told / campaign.checked.grid)} of the grid)"
            if campaign.labels_used is None
            else f"{amount(self.told)} comparisons, {campaign.labels_used} of {amount(most)} labels"
        )
        spent += "".join(f", {each}" for each in campaign.other_budgets)
        return (
            f"round {round_.number + 1}: {spent}, {best_so_far(campaign, decision)}, "
            f"{self.pace}, {self.elapsed:.0f} s"
        )


class PlainProgress(Tally):
    """One line a round."""

    def begun(self, campaign: CampaignSession) -> None:
        """See `Callback`."""
        self.begin(campaign)
        checked = campaign.checked
        tell(
            f"campaign {campaign.record.name}: {len(checked.candidates)} candidates x "
            f"{amount(len(checked.dataset.examples))} examples, {amount(self.told)} comparisons stored"
        )
        if (asked := canary_words(checked)) is not None:
            tell(f"served models are asked first: {asked}")

    def round_done(self, campaign: CampaignSession, round_: RoundRecord, decision: Decision) -> None:
        """See `Callback`."""
        to_check = self.take_up_round(campaign, decision)
        tell(self.line(campaign, round_, decision))
        for sentence in to_check:
            tell(sentence)


def best_so_far(campaign: CampaignSession, decision: Decision) -> str:
    """The leader, in a few words; of a gate, the number of candidates it has still to settle."""
    spec = campaign.checked.spec
    if spec.selector.name == GATE:
        return f"{decision.status.count(IN_QUESTION)} open against {spec.selector.params['baseline']}"
    certifies = traits_of(spec.objective).measures_risk
    trusts_a_mean = spec.selector.name in TRUSTS_A_MEAN
    if decision.best is None:
        nobody = "no candidate meets the constraints" if {*decision.status} <= UNFIT else "nothing known yet"
        return "nothing certified yet" if certifies else nobody
    arm, word = decision.best, "certified" if certifies and not trusts_a_mean else "best"
    name = campaign.checked.candidates[arm].name
    if certifies and spec.certify is not None and name == spec.certify.baseline:
        return f"{word} {name}, the baseline itself"
    return f"{word} {name} {number(decision.estimates[arm])} {interval(decision, arm)}".rstrip()


def interval(decision: Decision, arm: int) -> str:
    """An arm's interval; empty where there is none."""
    if np.isnan(decision.lower[arm]):
        return ""
    return "[{}, {}]".format(*ends(float(decision.lower[arm]), float(decision.upper[arm])))


def number(value: float) -> str:
    """A score as sentences have it; a dash where there is none."""
    return "-" if np.isnan(value) else rounded(value)
