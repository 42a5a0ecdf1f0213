"""Warnings about possible problems of a campaign, each with the part to check."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy.orm import Session

from winnow.storage.engine.database import Database
from winnow.storage.objectives import traits_of
from winnow.storage.queries import warnings as warning_views
from winnow.storage.queries.candidate_outputs import ids_without_point
from winnow.storage.queries.warnings import Counts
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.record_types import OUT, SET_ASIDE, CampaignRecord, DecisionRecord
from winnow.tasks.answer.unit_costs import engines_by_model
from winnow.tasks.campaign.look import Look
from winnow.tasks.engines.known_providers import ELSEWHERE
from winnow.tasks.judges.asking.calls import FALLS_BACK, TOO_FEW_JUDGES, VERDICT_MISSING
from winnow.tasks.queries.warnings.from_outputs import (
    FEWEST_WITHOUT_POINT,
    MOST_FLAGGED,
    output_warnings,
)
from winnow.tasks.queries.warnings.from_spec import (
    CampaignWarning,
    Kind,
    begun_twice,
    hidden_thoughts,
    judge_changed,
    own_judge,
    there_twice,
)
from winnow.tasks.spec.judge_tree import JudgeNode, judge_tree, judging_models
from winnow.tasks.spec.stored_spec import baseline_name, grouping_of
from winnow.tasks.text.phrases import count_of, example_name, percentage

MOST_OF_THE_GAP = 1 / 3
"""Share of the gap between the two best candidates above which one example causes a warning."""


def one_example(look: Look, decision: DecisionRecord) -> CampaignWarning | None:
    """Warn if one example accounts for more than a third of the best two's gap."""
    names = campaign_records.candidate_names(look.session, look.record.id)
    if decision.best is None or not _compares_two(look.record):
        return None
    best = names.index(decision.best)
    second = _second(decision, best)
    if second is None:
        return None
    ids = campaign_records.candidate_ids(look.session, look.record.id)
    if look.record.spec.get("holdout") is None:  # otherwise the stats include held-out scores
        told = Gap.of_sums(*warning_views.score_sums(look.session, ids[best], ids[second]))
        if told.size <= 0.0 or told.most_worth <= MOST_OF_THE_GAP * told.size:
            return None  # without reading every score
    pairs = partial(_pairs, look, ids[best], ids[second])
    gap = Gap.of((a, b) for *_, a, b in pairs())
    if gap.size < ROUNDING or min(gap.counts) < 2:
        return None
    worth, key, number = max((gap.size - gap.without(a, b), key, number) for key, number, a, b in pairs())
    if worth <= MOST_OF_THE_GAP * gap.size:
        return None
    name = example_name(key, number)
    named = name if name.startswith("#") else repr(name)
    return CampaignWarning(
        kind="one-example",
        sentence=f"without example {named}, {names[best]} would be {_ahead(gap.size - worth)} "
        f"{names[second]} in the mean of the scored examples, and not {_ahead(gap.size)} it: check that "
        "example and its target, and use more examples",
    )


def _compares_two(campaign: CampaignRecord) -> bool:
    """Whether the answer depends on the gap between the two best means.

    It does not for gates, groups and `top_m`.
    """
    selector = campaign.spec["selector"]
    is_plain = baseline_name(selector) is None and grouping_of(campaign.spec) is None
    return is_plain and selector["params"].get("top_m", 1) == 1


def _pairs(look: Look, first: int, second: int) -> Iterator[tuple[str, int, float | None, float | None]]:
    """Key, position and both scores of each example on which two candidates were compared.

    Held-out examples are excluded.
    """
    found = warning_views.score_pairs(look.session, first, second)
    if look.record.spec.get("holdout") is None:
        return found
    from winnow.tasks.objectives.best_mean.holdout.split import selection_keys

    seen = selection_keys(look)
    return (each for each in found if each[0] in seen)


ROUNDING = 1e-9
"""Tolerance for rounding: means that differ by less are equal."""


def _ahead(gap: float) -> str:
    if abs(gap) < ROUNDING:
        return "level with"
    texts = [f"{abs(gap):.{decimals}f}" for decimals in range(4, 13)]
    return f"{next(text for text in texts if float(text))} {'ahead of' if gap > 0 else 'behind'}"


def _second(decision: DecisionRecord, best: int) -> int | None:
    """The arm of the closest opponent of the best, as in an answer's `runner_up`.

    If lower ends are known, a high estimate on a few examples is not enough. Otherwise it is the candidate
    with the highest estimate. None without an opponent.
    """
    found = decision.differences
    known: Sequence[float | None] = found["lower"] if found is not None and found["against"] == best else ()
    # The decision has no difference for candidates that joined after it.
    lower = [*known, *[None] * (len(decision.status) - len(known))]
    rivals: Sequence[tuple[bool, float, float, int]] = [
        (status == "active", -2.0 if behind is None else behind, estimate, -arm)
        # `lower` is shorter if candidates joined since, and these have no estimate either.
        for arm, (estimate, status, behind) in enumerate(
            zip(decision.estimates, decision.status, lower, strict=False)
        )
        if arm != best and estimate is not None and status not in SET_ASIDE
    ]
    return -max(rivals)[-1] if rivals else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Difference between the mean scores of two candidates."""

    sums: tuple[float, float]
    counts: tuple[int, int]

    @classmethod
    def of(cls, pairs: Iterable[tuple[float | None, float | None]]) -> "Gap":
        """The gap from both scores of each example; None for a missing score.

        Scores are read once and not stored.
        """
        sums, counts = [0.0, 0.0], [0, 0]
        for pair in pairs:
            for side, score in enumerate(pair):
                if score is not None:
                    sums[side] += score
                    counts[side] += 1
        return cls(sums=(sums[0], sums[1]), counts=(counts[0], counts[1]))

    @classmethod
    def of_sums(cls, first: tuple[float, int], second: tuple[float, int]) -> "Gap":
        """The gap from the sum and the number of each candidate's scores."""
        return cls(sums=(first[0], second[0]), counts=(first[1], second[1]))

    @property
    def most_worth(self) -> float:
        """Largest possible effect of excluding one example, for scores in [0, 1]."""
        return sum(1.0 / (count - 1) if count > 1 else math.inf for count in self.counts)

    @property
    def size(self) -> float:
        """Difference of the means, positive if the first is higher; 0 if one has no score."""
        return self.without(None, None) if min(self.counts) else 0.0

    def without(self, first: float | None, second: float | None) -> float:
        """The gap without an example with these scores; each candidate must have others."""
        ahead, behind = (
            (total - (score or 0.0)) / (count - (score is not None))
            for total, count, score in zip(self.sums, self.counts, (first, second), strict=True)
        )
        return ahead - behind


FEWEST_EQUAL = 10
"""Minimum number of scores per scored candidate for the warning that all are equal, because a few often
are.
"""

HARD_ENOUGH = ", and whether the examples are hard enough to tell candidates apart"

FEWEST_OF_ONE_SIDE = 20
"""Minimum number of duels of pairs shown in both orders for the warning that one side always won. For a judge
without position bias, this happens in one of half a million campaigns of equal candidates, and almost
never if one of a pair is better.
"""

FIRST_ROUNDS = 3
"""Number of first rounds inspected for models without probabilities.
Servers do not change in this respect.
"""

FEWEST_TOLD_EARLY = 50
"""Minimum number of comparisons before a running campaign gets warnings, because fewer are not
informative.
"""


def campaign_warnings(look: Look, *, has_ended: bool) -> list[CampaignWarning]:
    """The warnings about a campaign after its last finished round.

    Almost everything is read from the candidates' stats. The scores of two candidates are read only if a
    best-mean campaign ended with a best candidate, for the influence of one example. Duels are read until
    each side has won one. Of each model, the first and the last output are read.
    """
    counts = warning_views.counts(look.session, look.record.id)
    of_outputs = output_warnings(look, has_ended=has_ended)
    found = [
        _equal_scores(counts, look.record.objective, has_ended=has_ended),
        *of_outputs,
        _no_answer(counts, look.record, told=sum(each.unread for each in of_outputs)),
        _cut_replies(look),
        _no_probabilities(look),
        hidden_thoughts(look.record.spec),
        begun_twice(look.record.spec),
        own_judge(look.record.spec),
        there_twice(look.record.spec),
        _one_side(look),
        _other_engine(look),
    ]
    if has_ended and traits_of(look.record.objective).can_be_rescored:
        found.append(judge_changed(look.record.name, look.record.spec))
    if has_ended and traits_of(look.record.objective).scores_a_benchmark:
        decision = outcome_records.latest_decision(look.session, look.record.id)
        found.append(None if decision is None else one_example(look, decision))
    return [warning for warning in found if warning is not None]


class EarlyWarnings:
    """Warnings about a running campaign, each kind once.

    They are computed whenever the number of comparisons has doubled, except in the last round, because the
    answer then has them. Warnings about single candidates are also computed when another candidate has only
    zeros, or is eliminated. So a candidate is named before or at its elimination.
    """

    def __init__(self) -> None:
        self._told: set[tuple[Kind, str | None]] = set()
        self._next = FEWEST_TOLD_EARLY
        self._suspects: set[int] = set()

    def new(
        self,
        database: Database,
        campaign: CampaignRecord,
        *,
        comparisons: int,
        stop: bool,
        statuses: Sequence[str] = (),
    ) -> list[CampaignWarning]:
        """Return warnings of kinds, or about candidates, that were not returned before.

        Args:
            database: The database of the campaign.
            campaign: The running campaign.
            comparisons: Number of comparisons so far.
            stop: Whether the campaign stops after this round.
            statuses: Statuses of the candidates after this round, by arm.
        """
        if stop:
            return []
        with database.reading() as session:
            suspects = self._new_suspects(session, campaign, statuses)
            if comparisons >= self._next:
                self._next = 2 * comparisons
                found = campaign_warnings(Look(session, campaign), has_ended=False)
            elif suspects:
                warnings = output_warnings(Look(session, campaign), has_ended=False, only=suspects)
                found = [each for each in warnings if each.about]
            else:
                return []
        new = [each for each in found if not _keys(each) <= self._told]
        self._told.update(key for warning in new for key in _keys(warning))
        return new

    def were_told(self, warnings: Sequence[CampaignWarning]) -> None:
        """Record warnings that were shown without being returned by `new`."""
        self._told.update(key for warning in warnings for key in _keys(warning))

    def _new_suspects(self, session: Session, campaign: CampaignRecord, statuses: Sequence[str]) -> set[int]:
        """Candidates that got only zeros, or were eliminated, since the last call."""
        suspects = ids_without_point(session, campaign.id, fewest=FEWEST_WITHOUT_POINT)
        if any(status in OUT for status in statuses):
            ids = campaign_records.candidate_ids(session, campaign.id)
            suspects |= {id_ for id_, status in zip(ids, statuses, strict=False) if status in OUT}
        new, self._suspects = suspects - self._suspects, suspects | self._suspects
        return new


def _keys(warning: CampaignWarning) -> set[tuple[Kind, str | None]]:
    """The kind of a warning, with each candidate that it is about."""
    return {(warning.kind, name) for name in warning.about or (None,)}


def _equal_scores(counts: Counts, objective: str, *, has_ended: bool) -> CampaignWarning | None:
    if counts.scored < 2 or counts.lowest is None or counts.lowest != counts.highest:
        return None
    if counts.scored < FEWEST_EQUAL * counts.candidates and not has_ended:
        return None
    if traits_of(objective).compares_pairs:
        return CampaignWarning(
            kind="all-equal",
            sentence=f"all {count_of(counts.scored // 2, 'scored duel')} are ties: check the judge's replies "
            "and whether the candidates' outputs differ at all",
        )
    if counts.lowest == 0.0:
        return CampaignWarning(
            kind="all-zero",
            sentence=f"all {counts.scored:,} scores are 0: compare some outputs with their targets, and "
            "check the judge's parameters and whether the prompts ask for answers in the form that it reads",
        )
    # A certificate is about each candidate by itself.
    hard = "" if traits_of(objective).measures_risk else HARD_ENOUGH
    return CampaignWarning(
        kind="all-equal",
        sentence=f"all {counts.scored:,} scores are {counts.lowest:g}: check whether the judge can tell "
        f"right from wrong{hard}",
    )


def _one_side(look: Look) -> CampaignWarning | None:
    """Warn if an output's position alone decides duels, or all calls of judge models."""
    if not traits_of(look.record.objective).compares_pairs:
        return None
    ask = warning_views.side_that_won
    if any(True for _ in judging_models(look.record.spec)):  # they receive the outputs in either order
        ask = warning_views.place_that_won
    found = ask(look.session, look.record.id)
    if found is None or found.duels < FEWEST_OF_ONE_SIDE:
        return None
    place = "first" if found.is_first else "second"
    return CampaignWarning(
        kind="one-side",
        sentence=f"the output shown {place} was always preferred, even when the same two candidates were "
        "swapped: check whether the judge reads the outputs at all",
    )


def _no_answer(counts: Counts, campaign: CampaignRecord, *, told: int) -> CampaignWarning | None:
    """Warn about outputs without an answer, except those that other warnings explain."""
    unread = counts.no_answer - told
    if unread <= MOST_FLAGGED * counts.texts:
        return None
    share = _share(unread, counts.texts)
    share = share.replace(" of ", " more of ", 1) if told else share
    hold, are, some = ("has", "is", "it") if unread == 1 else ("have", "are", "some of them")
    return CampaignWarning(
        kind="no-answer",
        sentence=f"{share} {hold} no answer that the judge can read and "
        f"{are} {_fate(campaign)}: check {some}, the prompt's instructions, and the judge's extract",
    )


def _cut_replies(look: Look) -> CampaignWarning | None:
    cut, replies = warning_views.cut_replies(look.session, look.record.id, (VERDICT_MISSING, TOO_FEW_JUDGES))
    if cut <= MOST_FLAGGED * replies:
        return None
    return CampaignWarning(
        kind="cut-reply",
        sentence=f"{cut:,} of {replies:,} replies of judges without a verdict "
        f"{'was' if cut == 1 else 'were'} cut off: raise the judge's max_tokens, or ask for a shorter reply",
    )


def _no_probabilities(look: Look) -> CampaignWarning | None:
    """Warn if a judge model usually returns no probabilities of its verdicts."""
    parts = filter(_weighs_verdicts, judge_tree(look.record.spec.get("judge")).parts)
    weighing = {model.get("judge_id", model.get("name")) for part in parts for model in part.models}
    if traits_of(look.record.objective).compares_pairs or not weighing:
        return None
    found = warning_views.first_calls(look.session, look.record.id, rounds=FIRST_ROUNDS)
    calls = [(judge, reason) for judge, reason in found if judge in weighing]
    asked = Counter(judge for judge, _ in calls)
    in_vain = Counter(judge for judge, reason in calls if reason in FALLS_BACK)
    for judge, count in in_vain.most_common(1):
        if 2 * count > asked[judge]:
            return CampaignWarning(
                kind="no-probabilities",
                sentence=f"{judge} returned no probabilities of its verdicts for {count:,} of the first "
                f"{count_of(asked[judge], 'output')}, so most outputs needed a second call for text: use a "
                "server that returns log-probabilities, or set the judge's read: text",
            )
    return None


def _weighs_verdicts(judge: JudgeNode) -> bool:
    """Whether a judge first requests the probabilities of verdicts."""
    return judge.type == "llm" and judge.params.get("read", "probabilities") != "text"


def _other_engine(look: Look) -> CampaignWarning | None:
    """Warn if a model's engine changed between runs.

    Canaries detect changes of servers.
    """
    found = engines_by_model(look)
    changed = {
        model: engines
        for model, engines in found.items()
        if len(engines) > 1 and not any(each.split(" ")[0] in ELSEWHERE for each in engines)
    }
    if not changed:
        return None
    model, (first, last) = next(iter(changed.items()))
    others = f" (and {count_of(len(changed) - 1, 'more model')} changed)" if len(changed) > 1 else ""
    return CampaignWarning(
        kind="other-engine",
        sentence=f"the first outputs of {model} are from engine {first}, the last from {last}{others}: "
        "engines can generate different outputs for one model; compare some outputs of both, or run the "
        "campaign under another name with reuse: none",
    )


def _fate(campaign: CampaignRecord) -> str:
    """The score of an output without an answer, in words.

    The parts of a combined judge can differ in it.
    """
    parts = judge_tree(campaign.spec.get("judge")).parts
    fates = {
        "left unscored" if each.params.get("no_answer") == "unscored" else "counted as wrong"
        for each in parts
    }
    return " or ".join(sorted(fates)) + (" by the part that finds no answer" if len(parts) > 1 else "")


def _share(part: int, texts: int) -> str:
    return f"{part:,} of {texts:,} outputs ({percentage(part / texts)})"
