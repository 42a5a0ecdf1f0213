"""A warning if a single example decides: without it the two best candidates would be much closer."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from winnow.storage.queries import warnings as warning_views
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.record_types import SET_ASIDE, CampaignRecord, DecisionRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.warnings.from_spec import CampaignWarning
from winnow.tasks.spec.stored_spec import baseline_name, grouping_of

MOST_OF_THE_GAP = 1 / 3
"""Share of the gap between the two best candidates above which one example causes a warning."""


def one_example(look: Look, decision: DecisionRecord) -> CampaignWarning | None:
    """A warning if one example accounts for more than a third of the gap between the best two."""
    names = campaign_records.candidate_names(look.session, look.record.id)
    if decision.best is None or not _compares_two(look.record):
        return None
    best = names.index(decision.best)
    second = _second(decision, best)
    if second is None:
        return None
    ids = campaign_records.candidate_ids(look.session, look.record.id)
    if look.record.spec.get("holdout") is None:  # its scores are in the stats too
        told = Gap.of_sums(*warning_views.score_sums(look.session, ids[best], ids[second]))
        if told.size <= 0.0 or told.most_worth <= MOST_OF_THE_GAP * told.size:
            return None  # without a look at every score
    pairs = partial(_pairs, look, ids[best], ids[second])
    gap = Gap.of((a, b) for _, a, b in pairs())
    if gap.size < ROUNDING or min(gap.counts) < 2:
        return None
    worth, key = max((gap.size - gap.without(a, b), key) for key, a, b in pairs())
    if worth <= MOST_OF_THE_GAP * gap.size:
        return None
    return CampaignWarning(
        kind="one-example",
        sentence=f"without example {key!r}, {names[best]} would be {_ahead(gap.size - worth)} "
        f"{names[second]} in the mean of the scored examples, and not {_ahead(gap.size)} it: check that "
        "example and its target, and use more examples",
    )


def _compares_two(campaign: CampaignRecord) -> bool:
    """Whether the answer depends on the gap between the two best means; not for gates or `top_m`."""
    selector = campaign.spec["selector"]
    is_plain = baseline_name(selector) is None and grouping_of(campaign.spec) is None
    return is_plain and selector["params"].get("top_m", 1) == 1


def _pairs(look: Look, first: int, second: int) -> Iterator[tuple[str, float | None, float | None]]:
    """Key and both scores of each example on which the two were compared, without held-out ones."""
    found = warning_views.score_pairs(look.session, first, second)
    if look.record.spec.get("holdout") is None:
        return found
    from winnow.tasks.objectives.best_mean.holdout.split import selection_keys

    seen = selection_keys(look)
    return (each for each in found if each[0] in seen)


ROUNDING = 1e-9
"""Rounding tolerance: means that differ by less are equal."""


def _ahead(gap: float) -> str:
    if abs(gap) < ROUNDING:
        return "level with"
    texts = [f"{abs(gap):.{decimals}f}" for decimals in range(4, 13)]
    return f"{next(text for text in texts if float(text))} {'ahead of' if gap > 0 else 'behind'}"


def _second(decision: DecisionRecord, best: int) -> int | None:
    """The closest opponent of the best, as in an answer's runner-up; None without one.

    With known worst cases, a high estimate on a few examples is not enough; without them it is the highest
    estimate.
    """
    found = decision.differences
    known: Sequence[float | None] = found["lower"] if found is not None and found["against"] == best else ()
    # Of candidates that joined after the decision it says nothing.
    lower = [*known, *[None] * (len(decision.status) - len(known))]
    rivals: Sequence[tuple[bool, float, float, int]] = [
        (status == "active", -2.0 if behind is None else behind, estimate, -arm)
        # Of who joined since, who has no estimate either, `lower` says nothing.
        for arm, (estimate, status, behind) in enumerate(
            zip(decision.estimates, decision.status, lower, strict=False)
        )
        if arm != best and estimate is not None and status not in SET_ASIDE
    ]
    return -max(rivals)[-1] if rivals else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The difference between two candidates' mean scores."""

    sums: tuple[float, float]
    counts: tuple[int, int]

    @classmethod
    def of(cls, pairs: Iterable[tuple[float | None, float | None]]) -> "Gap":
        """The gap from both scores on each example, None if missing; scores are read once and not kept."""
        sums, counts = [0.0, 0.0], [0, 0]
        for pair in pairs:
            for side, score in enumerate(pair):
                if score is not None:
                    sums[side] += score
                    counts[side] += 1
        return cls(sums=(sums[0], sums[1]), counts=(counts[0], counts[1]))

    @classmethod
    def of_sums(cls, first: tuple[float, int], second: tuple[float, int]) -> "Gap":
        """The gap from the sum and number of each candidate's scores."""
        return cls(sums=(first[0], second[0]), counts=(first[1], second[1]))

    @property
    def most_worth(self) -> float:
        """The largest possible effect of leaving out one example: scores are in [0, 1]."""
        return sum(1.0 / (count - 1) if count > 1 else math.inf for count in self.counts)

    @property
    def size(self) -> float:
        """In score units, positive if the first is ahead; 0 if one of them has no score."""
        return self.without(None, None) if min(self.counts) else 0.0

    def without(self, first: float | None, second: float | None) -> float:
        """The gap without an example with these scores; each candidate has others."""
        ahead, behind = (
            (total - (score or 0.0)) / (count - (score is not None))
            for total, count, score in zip(self.sums, self.counts, (first, second), strict=True)
        )
        return ahead - behind
