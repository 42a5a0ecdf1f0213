"""What may be wrong with a campaign though nothing failed, each in a sentence that says what to check."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from sqlalchemy.orm import Session

from winnow.storage.engine.database import Database
from winnow.storage.json_types import JsonObject, JsonView
from winnow.storage.queries import warnings as warning_views
from winnow.storage.queries.warnings import Counts
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.values import SET_ASIDE, CampaignRecord, DecisionRecord
from winnow.tasks.answer.running import engines_by_model
from winnow.tasks.answer.sentences.rounding import count_of
from winnow.tasks.engines.providers import REMOTE
from winnow.tasks.judges.asking.calls import TOO_FEW_JUDGES, VERDICT_MISSING
from winnow.tasks.spec.stored_spec import (
    baseline_name,
    grouping_of,
    judge_parts,
    judging_fingerprints,
    judging_models,
)

Kind = Literal[
    "all-zero",
    "all-equal",
    "truncated",
    "no-answer",
    "one-example",
    "own-judge",
    "one-side",
    "twice",
    "cut-reply",
    "other-engine",
]
"""What a warning is about:

* all-zero: no output got any point.
* all-equal: every output got the same score.
* truncated: texts were ended by max_tokens or the context window.
* no-answer: texts hold no answer, and count as wrong or as unscored, as the judge was told.
* cut-reply: replies of models that judge were ended by max_tokens before they came to a verdict.
* one-side: every duel was won by the side that was shown first, or second.
* own-judge: a model judges outputs of its own.
* twice: two models, prompts, guardrails or generate_configs differ in nothing but their names.
* other-engine: a model's first and last texts were written by different engines.
* one-example: without one of the examples, the best and the second would be much closer, or change places.
"""

MOST_FLAGGED = 0.02
"""Share of the texts beyond which it is worth a warning that they were cut off, or hold no answer."""

FEWEST_EQUAL = 10
"""Scores for each candidate that has any before it is worth a warning that all are equal; fewer often are."""

HARD_ENOUGH = ", and whether the examples are hard enough to tell candidates apart"

FEWEST_OF_ONE_SIDE = 20
"""Duels of pairs that met either way round before it is worth a warning that one side always won: a judge
that looks at answers alone would do so in one of half a million such campaigns of even candidates, and hardly
ever where one of a pair is better."""

MOST_OF_THE_GAP = 1 / 3
"""Share of the gap between the two best candidates beyond which one example is worth a warning."""

FEWEST_TOLD_EARLY = 50
"""Comparisons before anything is warned of while a campaign runs: the first few say little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignWarning:
    """One thing that may be wrong."""

    kind: Kind
    sentence: str
    """What was found and what to check."""


def campaign_warnings(
    session: Session, campaign: CampaignRecord, *, has_ended: bool
) -> list[CampaignWarning]:
    """What may be wrong with a campaign, after its last finished round.

    All of it is read from the candidates' stats, but for what one example is worth: that is looked up in
    the scores of two candidates, and only where a best-mean campaign has ended with a best one. Of duels the
    first are looked at until each side has won one, and of each model the first text and the last.

    Args:
        session: Reads the results.
        campaign: The campaign.
        has_ended: Whether nothing is asked any more.
    """
    counts = warning_views.counts(session, campaign.id)
    found = [
        _equal_scores(counts, campaign.objective, has_ended=has_ended),
        _truncated(counts),
        _no_answer(counts, campaign),
        _cut_replies(session, campaign),
        own_judge(campaign.spec),
        there_twice(campaign.spec),
        _one_side(session, campaign),
        _other_engine(session, campaign),
    ]
    if has_ended and campaign.objective == "best-mean":
        decision = outcome_records.latest_decision(session, campaign.id)
        found.append(None if decision is None else _one_example(session, campaign, decision))
    return [warning for warning in found if warning is not None]


class EarlyWarnings:
    """What may be wrong with a campaign while it runs, each kind once, for whoever shows it.

    It is looked for whenever there are twice as many comparisons as at the last time, and not in the last
    round, behind which the answer has it.
    """

    def __init__(self) -> None:
        self._told: set[Kind] = set()
        self._next = FEWEST_TOLD_EARLY

    def new(
        self, database: Database, campaign: CampaignRecord, *, comparisons: int, stop: bool
    ) -> list[CampaignWarning]:
        """What was found for the first time.

        Args:
            database: Where the campaign is.
            campaign: It.
            comparisons: How many there are.
            stop: Whether it stops after this round.
        """
        if stop or comparisons < self._next:
            return []
        self._next = 2 * comparisons
        with database.reading() as session:
            found = campaign_warnings(session, campaign, has_ended=False)
        new = [warning for warning in found if warning.kind not in self._told]
        self._told.update(warning.kind for warning in new)
        return new


def _equal_scores(counts: Counts, objective: str, *, has_ended: bool) -> CampaignWarning | None:
    if counts.scored < 2 or counts.lowest is None or counts.lowest != counts.highest:
        return None
    if counts.scored < FEWEST_EQUAL * counts.candidates and not has_ended:
        return None
    if objective == "best-duel":
        return CampaignWarning(
            kind="all-equal",
            sentence=f"all {count_of(counts.scored // 2, 'scored duel')} are ties: check the judge's replies "
            "and whether the candidates' answers differ at all",
        )
    if counts.lowest == 0.0:
        return CampaignWarning(
            kind="all-zero",
            sentence=f"all {counts.scored:,} scores are 0: check some outputs against their targets, the "
            "judge and its parameters, and whether the prompts ask for the answer in the form that it reads",
        )
    # A certificate is about each candidate by itself.
    hard = "" if objective == "certify" else HARD_ENOUGH
    return CampaignWarning(
        kind="all-equal",
        sentence=f"all {counts.scored:,} scores are {counts.lowest:g}: check whether the judge can tell "
        f"right from wrong{hard}",
    )


def _one_side(session: Session, campaign: CampaignRecord) -> CampaignWarning | None:
    """Whether the place of an answer alone decides: in duels, or in all that models were asked about them."""
    if campaign.objective != "best-duel":
        return None
    look = warning_views.side_that_won
    if any(True for _ in judging_models(campaign.spec)):  # which are shown the answers in either order
        look = warning_views.place_that_won
    found = look(session, campaign.id)
    if found is None or found.duels < FEWEST_OF_ONE_SIDE:
        return None
    place = "first" if found.is_first else "second"
    return CampaignWarning(
        kind="one-side",
        sentence=f"the answer shown {place} was always preferred, also where the same two candidates stood "
        "the other way round: check whether the judge looks at the answers at all",
    )


def _truncated(counts: Counts) -> CampaignWarning | None:
    if counts.truncated <= MOST_FLAGGED * counts.texts:
        return None
    were, are, ends = (
        ("was", "is judged as it stands", "its end")
        if counts.truncated == 1
        else ("were", "are judged as they stand", "their ends")
    )
    return CampaignWarning(
        kind="truncated",
        sentence=f"{_share(counts.truncated, counts.texts)} {were} cut off by max_tokens or the context "
        f"window and {are}: check whether answers are missing at {ends}, and raise max_tokens",
    )


def _no_answer(counts: Counts, campaign: CampaignRecord) -> CampaignWarning | None:
    if counts.no_answer <= MOST_FLAGGED * counts.texts:
        return None
    hold, are, some = ("holds", "is", "it") if counts.no_answer == 1 else ("hold", "are", "some of them")
    return CampaignWarning(
        kind="no-answer",
        sentence=f"{_share(counts.no_answer, counts.texts)} {hold} no answer that the judge can read and "
        f"{are} {_fate(campaign)}: check {some}, the prompt's instructions, and the judge's extract",
    )


def _cut_replies(session: Session, campaign: CampaignRecord) -> CampaignWarning | None:
    cut, replies = warning_views.cut_replies(session, campaign.id, (VERDICT_MISSING, TOO_FEW_JUDGES))
    if cut <= MOST_FLAGGED * replies:
        return None
    return CampaignWarning(
        kind="cut-reply",
        sentence=f"{cut:,} of {replies:,} replies of judges without a verdict "
        f"{'was' if cut == 1 else 'were'} cut off: raise the judge's max_tokens, or ask for a shorter reply",
    )


def _other_engine(session: Session, campaign: CampaignRecord) -> CampaignWarning | None:
    """Whether a model's engine was exchanged between two runs; what a server runs is known by its answers."""
    found = engines_by_model(session, campaign)
    changed = {
        model: engines
        for model, engines in found.items()
        if len(engines) > 1 and not any(each.split(" ")[0] in REMOTE for each in engines)
    }
    if not changed:
        return None
    model, (first, last) = next(iter(changed.items()))
    others = f", and {count_of(len(changed) - 1, 'more model')} likewise" if len(changed) > 1 else ""
    return CampaignWarning(
        kind="other-engine",
        sentence=f"the first texts of {model} are by {first}, the last by {last}{others}: engines may write "
        "different texts, so that a model's name stands in part for the one and in part for the other; "
        "compare some of both, or run the campaign anew under another name with reuse: none",
    )


def _fate(campaign: CampaignRecord) -> str:
    """What becomes of a text without an answer; of a judge that is made of others, each part has its own."""
    parts = list(judge_parts(campaign.spec.get("judge", {})))
    fates = {"left unscored" if each.get("no_answer") == "unscored" else "counted as wrong" for each in parts}
    return " or ".join(sorted(fates)) + (" by the part of it that reads none" if len(parts) > 1 else "")


def own_judge(identity: JsonView) -> CampaignWarning | None:
    """Whether a model of the judge, or of a metric's, is one of the candidates' as well, by its weights.

    Args:
        identity: Of the campaign, as it is stored.
    """
    known = judging_fingerprints(identity)
    names = [each.get("name", each.get("judge_id")) for _, each in judging_models(identity)]
    judging = {known[name]: name for name in names if name in known}
    for candidate, fingerprint in identity.get("model_fingerprints", {}).items():
        if fingerprint in judging:
            return CampaignWarning(
                kind="own-judge",
                sentence=f"{judging[fingerprint]} judges outputs of its own, those of {candidate}; models "
                "tend to favour those: let another one judge, or hold some verdicts against a human's",
            )
    return None


LISTS = ("models", "prompts", "guardrails", "generate_configs")

WEIGHTS = ("model", "revision", "lora", "chat_template", "served_identity", "model_base_url")
"""Keys of a model that its fingerprint stands for, wherever a copy of it is."""


def there_twice(identity: JsonView) -> CampaignWarning | None:
    """Whether two of the choices that make candidates are the same, so that these are asked the same.

    Args:
        identity: Of the campaign, as it is stored; one that excludes candidates may have only one of two.
    """
    if identity.get("exclude"):
        return None
    for kind in LISTS:
        known: dict[str, str] = {}
        for choice in identity.get(kind) or ():
            name = choice["name"]
            first = known.setdefault(json.dumps(_content(identity, kind, choice), sort_keys=True), name)
            if first != name:
                return CampaignWarning(
                    kind="twice",
                    sentence=f"{kind} {first} and {name} differ in nothing but their names: candidates that "
                    "differ only in these are asked the same, and comparisons are spent on them twice; "
                    "leave one out",
                )
    return None


def _content(identity: JsonView, kind: str, choice: JsonView) -> JsonObject:
    """What a choice is, whatever its name."""
    name = choice["name"]
    content = {key: value for key, value in choice.items() if key != "name"}
    if kind == "prompts":
        content["shown"] = identity.get("few_shot_examples", {}).get(name)
    if kind == "models":
        content = {key: value for key, value in content.items() if key not in WEIGHTS}
        content["fingerprint"] = identity.get("model_fingerprints", {}).get(name, name)
    return content


def _share(part: int, texts: int) -> str:
    return f"{part:,} of {texts:,} texts ({part / texts:.1%})"


def _one_example(
    session: Session, campaign: CampaignRecord, decision: DecisionRecord
) -> CampaignWarning | None:
    """Whether one example is worth more than a third of the gap between the best and the second."""
    names = campaign_records.candidate_names(session, campaign.id)
    if decision.best is None or not _compares_two(campaign):
        return None
    best = names.index(decision.best)
    second = _second(decision, best)
    if second is None:
        return None
    ids = campaign_records.candidate_ids(session, campaign.id)
    if campaign.spec.get("holdout") is None:  # its scores are in the stats too
        told = Gap.of_sums(*warning_views.score_sums(session, ids[best], ids[second]))
        if told.size <= 0.0 or told.most_worth <= MOST_OF_THE_GAP * told.size:
            return None  # without a look at every score
    pairs = partial(_pairs, session, campaign, ids[best], ids[second])
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
    """Whether the answer rests on how far the best mean is above the second; of gates and the m best not."""
    selector = campaign.spec["selector"]
    is_plain = baseline_name(selector) is None and grouping_of(campaign.spec) is None
    return is_plain and selector["params"].get("top_m", 1) == 1


def _pairs(
    session: Session, campaign: CampaignRecord, first: int, second: int
) -> Iterator[tuple[str, float | None, float | None]]:
    """Key and both scores of each example that the two were compared by; held-out ones had no part in it."""
    found = warning_views.score_pairs(session, first, second)
    if campaign.spec.get("holdout") is None:
        return found
    from winnow.tasks.objectives.best_mean.holdout.split import selection_keys

    seen = selection_keys(session, campaign)
    return (each for each in found if each[0] in seen)


ROUNDING = 1e-9
"""Means that differ by less are equal: what is left is what adding up has rounded."""


def _ahead(gap: float) -> str:
    if abs(gap) < ROUNDING:
        return "level with"
    texts = [f"{abs(gap):.{decimals}f}" for decimals in range(4, 13)]
    return f"{next(text for text in texts if float(text))} {'ahead of' if gap > 0 else 'behind'}"


def _second(decision: DecisionRecord, best: int) -> int | None:
    """The closest rival of the best, as an answer's runner-up is; None where there is no rival.

    A high estimate on a few examples makes none, where it is known how far everybody is behind in the worst
    case; elsewhere it is the highest estimate.
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
    """How far the mean of one candidate's scores is above another's."""

    sums: tuple[float, float]
    counts: tuple[int, int]

    @classmethod
    def of(cls, pairs: Iterable[tuple[float | None, float | None]]) -> "Gap":
        """From both scores on each example, None where there is none; they are read once and not kept."""
        sums, counts = [0.0, 0.0], [0, 0]
        for pair in pairs:
            for side, score in enumerate(pair):
                if score is not None:
                    sums[side] += score
                    counts[side] += 1
        return cls(sums=(sums[0], sums[1]), counts=(counts[0], counts[1]))

    @classmethod
    def of_sums(cls, first: tuple[float, int], second: tuple[float, int]) -> "Gap":
        """From the sum of each one's scores and how many they are."""
        return cls(sums=(first[0], second[0]), counts=(first[1], second[1]))

    @property
    def most_worth(self) -> float:
        """The most that leaving out one example can take away: no score is below 0 or above 1."""
        return sum(1.0 / (count - 1) if count > 1 else math.inf for count in self.counts)

    @property
    def size(self) -> float:
        """In score units, positive where the first is ahead; 0 where one of them has no score."""
        return self.without(None, None) if min(self.counts) else 0.0

    def without(self, first: float | None, second: float | None) -> float:
        """What it would be without an example on which they have these scores; each has others."""
        ahead, behind = (
            (total - (score or 0.0)) / (count - (score is not None))
            for total, count, score in zip(self.sums, self.counts, (first, second), strict=True)
        )
        return ahead - behind
