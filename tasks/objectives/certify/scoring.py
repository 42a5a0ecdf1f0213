"""From answers to losses: with the human label, with the autoevaluator's answer, and on unlabelled examples.

The loss of an answer is 1 - score, or against a baseline max(0, the baseline's score - score); the judge
scores both against the same targets. What was answered always has a loss, even if it cannot be read:

* An output that the judge cannot read scores 0.
* Where people rate the outputs themselves, no label is needed, and an output that they find unclear has the
  loss 1.
* Where no human can answer an example, or where the label or the autoevaluator's answer cannot be read, the
  loss is 1, whatever the candidate says; so it is where the judge gave what is no score, or failed, and
  where a model that judges gave no reply that can be read.

All of these follow from an example and what models say of it. Each text is asked for once, on labelled and
unlabelled examples alike (where an engine fails, both are asked again as often), so that the autoevaluator's
losses on the one and the other keep the same mean: nothing is biased, and nothing has to be assumed.

A loss is unknown only where an engine gave no text that it takes. Those behind the mean over a block of
unlabelled examples are left out of the mean, and their share is told with it: the algorithm counts every
single unknown loss at its worst.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from winnow.storage.records.human import labels
from winnow.storage.records.values import NewComparison, RoundRecord, StoredText
from winnow.storage.text import storable
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.candidates.weighing import Asked
from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.errors import LabelMissing
from winnow.tasks.judges.asking.calls import PROMPT_FAILED
from winnow.tasks.judges.isolated.libraries import JUDGE_LIMIT
from winnow.tasks.judges.pointwise.human import UNCLEAR, HumanJudge
from winnow.tasks.judges.protocol import INVALID_SCORE, JUDGE_FAILED, Judge, Sample, Verdict, ahead
from winnow.tasks.objectives.certify.check import Certification
from winnow.tasks.rounds.ask import ask_models
from winnow.tasks.rounds.generate import have_outputs, plan_generation, plan_text, rendered
from winnow.tasks.rounds.generation_batch import GenerationBatch, PlannedGeneration
from winnow.tasks.rounds.score import sample_of, scored

Author = int | None
"""Who answers: an arm, or None for the autoevaluator."""
Answer = tuple[Author, int]
"""An author and an example position."""


def generate_answers(
    campaign: CampaignSession, certification: Certification, round_: RoundRecord
) -> GenerationBatch:
    """Have every answer of `answers_of`, in that order; raises like `have_texts`."""
    planned = [
        _planned(campaign, certification, author, example)
        for author, example in answers_of(certification, round_)
    ]
    return have_outputs(campaign, round_, planned)


def answers_of(certification: Certification, round_: RoundRecord) -> list[Answer]:
    """Each answer once: of every arm, of the baseline and of the autoevaluator, pair by pair as planned."""
    wanted: dict[Answer, None] = {}
    for arm, example in zip(round_.arms, round_.examples, strict=True):
        authors: list[Author] = [arm]
        examples = [example]
        if certification.baseline is not None:
            authors.append(certification.baseline)
        if certification.autoevaluator is not None:
            examples += certification.parts.block(example)
            authors.append(None)
        wanted |= dict.fromkeys((author, each) for author in authors for each in examples)
    return list(wanted)


def _planned(
    campaign: CampaignSession, certification: Certification, author: Author, example: int
) -> PlannedGeneration:
    if author is not None:
        return plan_generation(campaign, author, example, 0)
    autoevaluator = certification.autoevaluator
    assert autoevaluator is not None
    return plan_text(
        autoevaluator.model,
        campaign.checked.judge_fingerprints[autoevaluator.model.name],
        rendered(lambda: Asked(prompt=autoevaluator.prompt(campaign.checked.dataset.examples[example]))),
        autoevaluator.sampling,
        seed=campaign.record.seed,
    )


WORST_FOR_ALL = frozenset(
    {"no_target", "unreadable_target", INVALID_SCORE, JUDGE_FAILED, JUDGE_LIMIT, PROMPT_FAILED, UNCLEAR}
)
"""Reasons of verdicts that are, or may be, about the targets or the judge and not about the output."""
UNREADABLE_LOSS = 1.0
UNANSWERABLE = "no human can answer the example, which counts as a loss of 1"


def score_losses(
    campaign: CampaignSession,
    certification: Certification,
    judge: Judge,
    round_: RoundRecord,
    texts: GenerationBatch,
) -> list[NewComparison]:
    """One comparison per planned pair, in planned order, with its losses.

    Raises:
        LabelMissing: If an example of the round has no label.
        EngineDied, EngineTimeout, LeaseLost: As `have_texts`, where a model judges.
    """
    by_label = not isinstance(judge, HumanJudge)
    targets = _labels(campaign, round_) if by_label else dict.fromkeys(round_.examples, ())
    scorer = _scorer(campaign, certification, judge, round_, texts)
    shown = _shown(scorer, round_, targets)
    asked = ask_models(campaign, judge, round_, shown)
    ahead(asked.judge, shown)
    scorer = replace(scorer, judge=asked.judge)
    comparisons = []
    for position, (arm, example) in enumerate(zip(round_.arms, round_.examples, strict=True)):
        human = targets[example]
        sample = scorer.sample(arm, example, human)
        comparison = scored(campaign, asked, position, arm, example, scorer.answers[arm, example], sample)
        unlabelled = scorer.unlabelled(arm, example)
        comparisons.append(
            replace(
                comparison,
                detail=comparison.detail
                or scorer.trouble(arm, example)
                or (UNANSWERABLE if by_label and not human else None),
                human_loss=scorer.loss(arm, example, human),
                auto_loss=scorer.auto_loss(arm, example),
                unlabelled_loss=unlabelled.mean,
                unlabelled_missing=unlabelled.missing,
            )
        )
    return comparisons


def _labels(campaign: CampaignSession, round_: RoundRecord) -> Mapping[int, Sequence[str]]:
    """The label of each example of a round; raises `LabelMissing`."""
    with campaign.database.reading() as session:
        known = labels.targets(session, campaign.record.dataset_id, sorted(set(round_.examples)))
    found = {}
    for example, human in known.items():
        if human is None:
            raise LabelMissing(campaign.checked.dataset.examples[example].key)
        found[example] = human
    return found


def _scorer(
    campaign: CampaignSession,
    certification: Certification,
    judge: Judge,
    round_: RoundRecord,
    texts: GenerationBatch,
) -> "Scorer":
    places = {answer: place for place, answer in enumerate(answers_of(certification, round_))}
    return Scorer(
        certification=certification,
        judge=judge,
        by_label=not isinstance(judge, HumanJudge),
        answers={answer: texts[place] for answer, place in places.items()},
        samples={
            (arm, example): sample
            for (arm, example), place in places.items()
            if arm is not None and (sample := sample_of(campaign, arm, example, texts, place)) is not None
        },
    )


class _SampleList:
    """A judge that only writes down what it is shown."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []

    def judge(self, sample: Sample) -> Verdict:
        """See `Judge`; the verdict is worth nothing."""
        self.samples.append(sample)
        return Verdict(score=0.0)


def _shown(scorer: "Scorer", round_: RoundRecord, targets: Mapping[int, Sequence[str]]) -> Sequence[Sample]:
    """All that the judge will be shown of a round; one that only looks on is asked in its place."""
    listing = _SampleList()
    scorer = replace(scorer, judge=listing)
    for arm, example in zip(round_.arms, round_.examples, strict=True):
        if (sample := scorer.sample(arm, example, targets[example])) is not None:
            listing.judge(sample)
        scorer.loss(arm, example, targets[example])
        scorer.auto_loss(arm, example)
        scorer.unlabelled(arm, example)
    return listing.samples


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockLosses:
    """The losses on the unlabelled examples that belong to a labelled one."""

    mean: float | None
    """Of those that are known; None where none is."""
    missing: float | None
    """Share of them that are not known, in [0, 1]; None where no examples belong to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """The losses of answers."""

    certification: Certification
    judge: Judge
    by_label: bool = True
    """Whether the judge holds outputs against a label; False where people rate them as they are."""
    answers: Mapping[Answer, StoredText | GenerationFailure]
    """By author and example; of every text that the losses asked for need."""
    samples: Mapping[Answer, Sample]
    """What the judge sees of each answer of an arm that has a text; targets are put in for it."""

    def loss(self, arm: int, example: int, targets: Sequence[str]) -> float | None:
        """The loss of an arm's answer against targets; None where an engine gave no text."""
        if self.by_label and not targets:
            return UNREADABLE_LOSS
        verdict = self._verdict(arm, example, targets)
        if verdict is None:
            return None
        standard = None
        if self.certification.baseline is not None:
            standard = self._verdict(self.certification.baseline, example, targets)
            if standard is None:
                return None
        if _is_worst(verdict) or (standard is not None and _is_worst(standard)):
            return UNREADABLE_LOSS
        return max(0.0, (1.0 if standard is None else standard.score or 0.0) - (verdict.score or 0.0))

    def auto_loss(self, arm: int, example: int) -> float | None:
        """The same with the autoevaluator's answer for a target; None without one, too."""
        if self.certification.autoevaluator is None:
            return None
        text = self.answers[None, example]
        if not isinstance(text, StoredText):
            return None
        answer = self.certification.autoevaluator.answer(text.text)
        return self.loss(arm, example, [] if answer is None else [answer])

    def unlabelled(self, arm: int, example: int) -> BlockLosses:
        """The same on the unlabelled examples that belong to a labelled one."""
        losses = [self.auto_loss(arm, each) for each in self.certification.parts.block(example)]
        known = [loss for loss in losses if loss is not None]
        return BlockLosses(
            mean=sum(known) / len(known) if known else None,
            missing=(len(losses) - len(known)) / len(losses) if losses else None,
        )

    def trouble(self, arm: int, example: int) -> str | None:
        """Why a loss of a pair is not known: what became of its first text that is missing."""
        authors: list[tuple[str, Author]] = [("candidate", arm)]
        block: list[int] = []
        if self.certification.baseline is not None:
            authors.append(("baseline", self.certification.baseline))
        if self.certification.autoevaluator is not None:
            authors.append(("autoevaluator", None))
            block = self.certification.parts.block(example)
        for role, author in authors:
            for each in (example, *block):
                text = self.answers[author, each]
                if isinstance(text, GenerationFailure):
                    return storable(f"{role}: {text.reason}: {text.detail}")
        return None

    def sample(self, arm: int, example: int, targets: Sequence[str]) -> Sample | None:
        """What the judge sees of an arm's answer beside targets; None where an engine gave no text."""
        sample = self.samples.get((arm, example))
        return None if sample is None else replace(sample, targets=targets)

    def _verdict(self, arm: int, example: int, targets: Sequence[str]) -> Verdict | None:
        sample = self.sample(arm, example, targets)
        return None if sample is None else self.judge.judge(sample)


def _is_worst(verdict: Verdict) -> bool:
    """Whether there is no score because of the targets or the judge."""
    return verdict.reason in WORST_FOR_ALL or (verdict.reason is not None and len(verdict.replies) > 0)
