"""The certificate of a campaign, derived only from its stored rows."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from winnow.algorithms.claims import Claim
from winnow.storage.queries import costs
from winnow.storage.queries.objective import certify as certify_views
from winnow.storage.queries.objective.earlier_campaigns import scored_positions
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records import labels
from winnow.storage.records import rounds as round_records
from winnow.storage.records.record_types import CampaignRecord, DecisionRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.spec.judge_tree import is_human
from winnow.tasks.spec.selector_traits import BY_MODEL, HUMAN_ONLY, TRUSTS_A_MEAN

ROUNDING = 1e-9
"""Largest difference by rounding between two sums of the same losses, for example in two databases."""

OWN, BASELINE, AUTOEVALUATOR = "candidate", "baseline", "autoevaluator"
"""Sources of missing outputs. The detail of a comparison without a loss begins with one of these words."""

BONFERRONI = "bonferroni"
"""Name of the procedure that tests all candidates simultaneously."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The terms of a certificate, the labels used, and the result of a plain mean."""

    risk: float
    """The allowed mean loss."""
    baseline: str | None
    """Name of the candidate from whose scores drops are measured; None if losses are 1 - score."""
    selector: str
    costs: Mapping[str, float]
    """Cost of each candidate, in testing order."""
    cost: str
    """Kind of the costs: the value of `certify.cost`."""
    labels_used: int
    unanswerable: int
    """Number of used labels that mark their example as unanswerable."""
    unreadable: int
    """Number of used labels that the judge cannot read."""
    unclear: int
    """Number of outputs that annotators marked as unclear; each is a loss of 1."""
    waits_for: tuple[str, ...]
    """Keys of the examples for which the planned round needs labels."""
    incomplete: int
    """Number of comparisons that lack a loss because an engine returned no output.
    Selectors that are `is_reliable` count each at its worst; others exclude it from their mean.
    """
    plain: str | None
    """The cheapest candidate whose mean human loss is within the limit, without a guarantee; None without
    one.
    """
    plain_mean: float | None
    means: Mapping[str, float | None]
    """Plain mean of human losses, by candidate; None if no loss is known."""
    in_sequence: bool
    """Whether candidates are tested one after the other, up to the first failure, instead of
    simultaneously.
    """

    @property
    def losses(self) -> str:
        """Name of the means that estimate the risks."""
        return losses_of(self.selector, self.baseline)

    @property
    def is_reliable(self) -> bool:
        """Whether certificates hold with the stated probability."""
        return self.selector not in TRUSTS_A_MEAN

    @property
    def reads_autoevaluator(self) -> bool:
        """Whether the certificate also depends on the autoevaluator's answers."""
        return self.selector not in HUMAN_ONLY


def is_at_most(mean: float, risk: float) -> bool:
    """Whether a mean of losses is at most a risk, up to rounding errors."""
    return mean <= risk + ROUNDING


def risk_of(campaign: CampaignRecord) -> float:
    """The mean loss, or mean drop below the baseline, that a certify campaign allows."""
    section = campaign.spec["certify"]
    risk: float = section["drop"] if section["alpha"] is None else section["alpha"]
    return risk


def losses_of(selector: str, baseline: str | None) -> str:
    """Name of the means that a selector estimates; with a baseline, losses are drops."""
    what = "loss" if baseline is None else f"drop below {baseline}"
    whose = "the autoevaluator's answers" if selector == BY_MODEL else "human labels"
    return f"mean {what} against {whose}"


def certificate_of(look: Look) -> Certificate:
    """The current certificate of a certify campaign."""
    from winnow.tasks.judges.human import UNCLEAR

    section = look.record.spec["certify"]
    risk = risk_of(look.record)
    means = labels.mean_losses(look.session, look.record.id)
    passing = [arm for arm, mean in enumerate(means) if mean is not None and is_at_most(mean, risk)]
    return Certificate(
        risk=risk,
        baseline=section["baseline"],
        selector=look.record.spec["selector"]["name"],
        costs={name: look.record.spec["candidate_costs"][name] for name in look.names},
        cost=section["cost"],
        labels_used=costs.labels_used(look.session, look.record.id),
        unanswerable=certify_views.unanswerable(look.session, look.record.id),
        unreadable=certify_views.with_reason(look.session, look.record.id, "unreadable_target")[1],
        unclear=certify_views.with_reason(look.session, look.record.id, UNCLEAR)[0],
        waits_for=tuple(waits_for(look)),
        incomplete=sum(labels.incomplete(look.session, look.record.id, reads_auto=_reads_auto(look.record))),
        plain=look.names[passing[-1]] if passing else None,
        plain_mean=means[passing[-1]] if passing else None,
        means=dict(zip(look.names, means, strict=True)),
        in_sequence=look.record.spec["selector"]["params"].get("procedure") != BONFERRONI,
    )


def missing_losses(look: Look) -> dict[int, tuple[int, str | None]]:
    """Number of comparisons without a loss that counts, and the main cause, by arm.

    The cause is the most frequent known one: the source of the missing output, and the reason. It can be an
    output of the baseline or of the autoevaluator, although the candidate's own output exists and has a
    score.
    """
    numbers: Counter[int] = Counter()
    causes: dict[int, Counter[str]] = {}
    found = labels.causes_of_lacking(look.session, look.record.id, reads_auto=_reads_auto(look.record))
    for position, reason, detail, count in found:
        numbers[position] += count
        whose, _, rest = (detail or "").partition(": ")
        why = rest.partition(": ")[0]
        said = (
            f"{whose}: {why}"
            if whose in (BASELINE, AUTOEVALUATOR)
            else reason or (why if whose == OWN else None)
        )
        if said:
            causes.setdefault(position, Counter())[said] += count
    most = {position: min(each, key=lambda said: (-each[said], said)) for position, each in causes.items()}
    return {position: (number, most.get(position)) for position, number in numbers.items()}


def _reads_auto(campaign: CampaignRecord) -> bool:
    return campaign.spec["selector"]["name"] not in HUMAN_ONLY


def waits_for(look: Look) -> list[str]:
    """Keys of unlabelled examples that a campaign's planned round needs, in order.

    Empty if annotators rate the outputs themselves.
    """
    if is_human(look.record.spec):
        return []
    round_ = round_records.unfinished_round(look.session, look.record.id)
    return (
        [] if round_ is None else labels.keys_without(look.session, look.record.dataset_id, round_.examples)
    )


def outcome_of(decision: DecisionRecord, reason: str, claim: Claim) -> Literal["winner", "none", "undecided"]:
    """The outcome of an ended campaign."""
    if decision.best is not None and claim.kind != "none":
        return "winner"
    return "none" if reason == "none-certified" else "undecided"


def fresh_positions(look: Look) -> set[int]:
    """Positions of the labelled examples and of their unlabelled ones.

    The unlabelled ones count only if the selector uses an autoevaluator. A candidate that was improved after
    failures on them also looks better on them than elsewhere.
    """
    labelled = scored_positions(look.session, look.record)
    if look.record.spec["selector"]["name"] in HUMAN_ONLY:
        return labelled
    from winnow.tasks.objectives.certify.split import parts_of  # it needs numpy

    parts = parts_of(look.record, dataset_records.examples(look.session, look.record.dataset_id))
    return labelled | {each for example in labelled for each in parts.block(example)}
