"""Compute losses against human labels and against an autoevaluator's answers.

The loss of an answer is 1 - score. With a baseline it is max(0, the baseline's score - score), where the
judge scores both against the same targets. Every answer has a loss, even if it is unreadable:

* An output that the judge cannot read scores 0.
* If annotators rate the outputs themselves, no label is needed. An output that they mark as unclear has the
  loss 1.
* The loss is 1 for every candidate if no human can answer an example, or if the label or the autoevaluator's
  answer is unreadable. The same holds if the judge returned an invalid score or failed, or if a judge model
  gave no readable reply. The baseline's own loss is still 0, because it is never below itself.

All of these depend only on an example and the models' outputs for it. Each output is requested once, on
labelled and unlabelled examples alike (after an engine failure, both are requested again equally often). So
the autoevaluator's losses on both kinds of examples have the same mean: there is no bias, and no assumption
is needed.

If a candidate generates several outputs for an example, its score combines theirs; each unreadable one scores
0 among them. This is one number for each example and label, a fixed function of the example, its label and
its outputs. So all statements about the loss of one output hold for it.

A loss is unknown only if an engine returned no usable output. Unknown losses in a block of unlabelled
examples are excluded from the block's mean, and their share is reported with it. The selector counts every
single unknown loss at its worst.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from winnow.storage.records import labels
from winnow.storage.records.record_types import NewComparison, RoundRecord, StoredText
from winnow.storage.text import storable
from winnow.tasks.campaign.planned_outputs import GenerationBatch, PlannedGeneration
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.candidates.likelihood_scoring import Asked
from winnow.tasks.engines.protocol import GenerationFailure, ModelRef
from winnow.tasks.errors import LabelMissing
from winnow.tasks.judges.asking.calls import PROMPT_FAILED
from winnow.tasks.judges.human import UNCLEAR, HumanJudge
from winnow.tasks.judges.isolated.libraries import JUDGE_LIMIT
from winnow.tasks.judges.protocol import INVALID_SCORE, JUDGE_FAILED, Judge, Sample, Verdict
from winnow.tasks.objectives.certify.certificate import AUTOEVALUATOR, BASELINE, OWN
from winnow.tasks.objectives.certify.check import Certification
from winnow.tasks.objectives.certify.human_labels import lacks_labels
from winnow.tasks.objectives.certify.objective import Certify, needed_by_losses
from winnow.tasks.objectives.protocol import RoundSteps
from winnow.tasks.rounds.generate import have_outputs, plan_generation, plan_text, rendered
from winnow.tasks.rounds.judge_calls import AskedJudge, ask_models
from winnow.tasks.rounds.score import ScoredText, found_in, reduced, scored, shown_of, with_metrics

Author = int | None
"""Author of an answer: an arm, or None for the autoevaluator."""
Answer = tuple[Author, int]
"""Author and example position of an answer."""


def generate_answers(
    campaign: CampaignSession, certification: Certification, round_: RoundRecord
) -> GenerationBatch:
    """Generate all answers of `answers_of`, in its order.

    Raises the errors of `have_texts`.
    """
    planned = [
        _planned(campaign, certification, author, example, number)
        for author, example in answers_of(certification, round_)
        for number in range(_texts_of(certification, author))
    ]
    return have_outputs(campaign, round_, planned)


def answers_of(certification: Certification, round_: RoundRecord) -> list[Answer]:
    """The answers that a round needs, each once, pair by pair as planned.

    They are those of every arm, of the baseline and of the autoevaluator.
    """
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


def _texts_of(certification: Certification, author: Author) -> int:
    """Number of outputs per author and example; 1 for the autoevaluator."""
    return 1 if author is None else certification.texts


def _planned(
    campaign: CampaignSession, certification: Certification, author: Author, example: int, number: int
) -> PlannedGeneration:
    if author is not None:
        return plan_generation(campaign, author, example, number)
    autoevaluator = certification.autoevaluator
    assert autoevaluator is not None
    return plan_text(
        autoevaluator.model,
        campaign.checked.judge_fingerprints[autoevaluator.model.name],
        rendered(lambda: Asked(prompt=autoevaluator.prompt(campaign.checked.dataset.examples[example]))),
        autoevaluator.sampling,
        seed=campaign.record.seed,
        rules=campaign.checked.text_rules,
    )


WORST_FOR_ALL = frozenset(
    {"no_target", "unreadable_target", INVALID_SCORE, JUDGE_FAILED, JUDGE_LIMIT, PROMPT_FAILED, UNCLEAR}
)
"""Reasons of verdicts that are, or may be, caused by the targets or the judge, not by the output."""
UNREADABLE_LOSS = 1.0
WORST = -1.0
"""Placeholder of a score whose loss is `UNREADABLE_LOSS`, whatever it is compared with."""
UNANSWERABLE = "no human can answer the example, which counts as a loss of 1"


def score_losses(
    campaign: CampaignSession,
    certification: Certification,
    judge: Judge[Sample],
    round_: RoundRecord,
    texts: GenerationBatch,
) -> list[NewComparison]:
    """Return one comparison per planned pair, in planned order, with its losses.

    Raises:
        LabelMissing: An example of the round has no label.
        EngineDied, EngineTimeout, LeaseLost: As in `have_texts`, with a judge model.
    """
    by_label = not isinstance(judge, HumanJudge)
    targets = _labels(campaign, round_) if by_label else dict.fromkeys(round_.examples, ())
    scorer = _scorer(campaign, certification, judge, round_, texts)
    shown = _shown(scorer, round_, targets)
    [asked] = ask_models(campaign, [judge], round_, shown)
    metrics = _asked_metrics(campaign, scorer, round_, targets)
    scorer = replace(scorer, judge=asked.judge)
    comparisons = []
    for position, (arm, example) in enumerate(zip(round_.arms, round_.examples, strict=True)):
        human = targets[example]
        comparison = _compared(campaign, asked, scorer, position, (arm, example), human)
        unlabelled = scorer.unlabelled(arm, example)
        comparisons.append(
            replace(
                with_metrics(comparison, metrics, scorer.measured(arm, example, human)),
                detail=comparison.detail
                or scorer.trouble(arm, example)
                or (UNANSWERABLE if by_label and not human and arm != certification.baseline else None),
                human_loss=scorer.loss(arm, example, human),
                auto_loss=scorer.auto_loss(arm, example),
                unlabelled_loss=unlabelled.mean,
                unlabelled_missing=unlabelled.missing,
            )
        )
    return comparisons


def _compared(
    campaign: CampaignSession,
    asked: AskedJudge[Sample],
    scorer: "Scorer",
    position: int,
    answer: tuple[int, int],
    targets: Sequence[str],
) -> NewComparison:
    """Compare an arm's outputs with the targets, without losses."""
    arm, example = answer
    texts, shown = scorer.answers[answer], scorer.shown(arm, example, targets)
    samples = scorer.certification.samples
    if samples is None:
        return scored(campaign, asked, position, arm, example, texts[0], shown[0] if shown else None)
    return NewComparison(
        position=position,
        candidate_a_id=campaign.candidate_ids[arm],
        example_id=campaign.example_ids[example],
        judge=campaign.judge_id,
        **found_in(samples, asked, texts, shown),
    )


def _asked_metrics(
    campaign: CampaignSession, scorer: "Scorer", round_: RoundRecord, targets: Mapping[int, Sequence[str]]
) -> dict[str, AskedJudge[Sample]]:
    """Run the judges of metrics on the arms' answers to labelled examples; by name."""
    metrics = campaign.checked.metrics
    pairs = zip(round_.arms, round_.examples, strict=True)
    samples = [sample for arm, each in pairs for sample in scorer.measured(arm, each, targets[each])]
    asked = ask_models(campaign, [*metrics.values()], round_, samples)
    return dict(zip(metrics, asked, strict=True))


def _labels(campaign: CampaignSession, round_: RoundRecord) -> Mapping[int, Sequence[str]]:
    """The label of each example of a round.

    Raises:
        LabelMissing: An example has no label.
    """
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
    judge: Judge[Sample],
    round_: RoundRecord,
    texts: GenerationBatch,
) -> "Scorer":
    places: dict[Answer, range] = {}
    stop = 0
    for answer in answers_of(certification, round_):
        start, stop = stop, stop + _texts_of(certification, answer[0])
        places[answer] = range(start, stop)
    return Scorer(
        certification=certification,
        judge=judge,
        by_label=not isinstance(judge, HumanJudge),
        answers={answer: [texts[place] for place in of_it] for answer, of_it in places.items()},
        samples={
            (arm, example): shown_of(campaign, arm, example, texts, of_it)
            for (arm, example), of_it in places.items()
            if arm is not None
        },
    )


class _SampleList(Judge[Sample]):
    """A judge that only records the samples that it receives."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []

    def judge(self, sample: Sample, /) -> Verdict:
        """Record a sample; the verdict is a placeholder."""
        self.samples.append(sample)
        return Verdict(score=0.0)


def _shown(scorer: "Scorer", round_: RoundRecord, targets: Mapping[int, Sequence[str]]) -> Sequence[Sample]:
    """All samples that the judge will receive in a round."""
    listing = _SampleList()
    scorer = replace(scorer, judge=listing)
    for arm, example in zip(round_.arms, round_.examples, strict=True):
        for sample in scorer.shown(arm, example, targets[example]):
            listing.judge(sample)
        scorer.loss(arm, example, targets[example])
        scorer.auto_loss(arm, example)
        scorer.unlabelled(arm, example)
    return listing.samples


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockLosses:
    """Losses on the unlabelled examples of one labelled example."""

    mean: float | None
    """Mean of the known losses; None if no loss is known."""
    missing: float | None
    """Share of unknown losses, in [0, 1]; None if the block is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """Computes the losses of a round's answers."""

    certification: Certification
    judge: Judge[Sample]
    by_label: bool = True
    """Whether the judge compares outputs with a label; False if annotators rate outputs directly."""
    answers: Mapping[Answer, Sequence[StoredText | GenerationFailure]]
    """Outputs by author and example, as far as the losses need them."""
    samples: Mapping[Answer, Sequence[Sample]]
    """Samples of an arm's outputs for the judge, without targets; empty if an output is missing."""

    def loss(self, arm: int, example: int, targets: Sequence[str]) -> float | None:
        """Loss of an arm's answer against targets; None if an engine returned no output."""
        baseline = self.certification.baseline
        if arm == baseline:
            return 0.0
        if self.by_label and not targets:
            return UNREADABLE_LOSS
        score = self._score(arm, example, targets)
        standard = 1.0 if baseline is None else self._score(baseline, example, targets)
        if score is None or standard is None:
            return None
        if WORST in (score, standard):
            return UNREADABLE_LOSS
        return max(0.0, standard - score)

    def auto_loss(self, arm: int, example: int) -> float | None:
        """Loss of an arm's answer against the autoevaluator's; None if one is missing."""
        if self.certification.autoevaluator is None:
            return None
        text = self.answers[None, example][0]
        if not isinstance(text, StoredText):
            return None
        answer = self.certification.autoevaluator.answer(text.text)
        return self.loss(arm, example, [] if answer is None else [answer])

    def unlabelled(self, arm: int, example: int) -> BlockLosses:
        """Losses of an arm on the unlabelled examples of a labelled one."""
        losses = [self.auto_loss(arm, each) for each in self.certification.parts.block(example)]
        known = [loss for loss in losses if loss is not None]
        return BlockLosses(
            mean=sum(known) / len(known) if known else None,
            missing=(len(losses) - len(known)) / len(losses) if losses else None,
        )

    def trouble(self, arm: int, example: int) -> str | None:
        """The failure of a pair's first missing output, in words; None without a failure."""
        authors: list[tuple[str, Author]] = [(OWN, arm)]
        block: list[int] = []
        if self.certification.baseline is not None:
            authors.append((BASELINE, self.certification.baseline))
        if self.certification.autoevaluator is not None:
            authors.append((AUTOEVALUATOR, None))
            block = self.certification.parts.block(example)
        for role, author in authors:
            for each in (example, *block):
                for text in self.answers[author, each]:
                    if isinstance(text, GenerationFailure):
                        return storable(f"{role}: {text.reason}: {text.detail}")
        return None

    def shown(self, arm: int, example: int, targets: Sequence[str]) -> Sequence[Sample]:
        """Samples of an arm's outputs with targets, for the judge.

        Empty if an output is missing.
        """
        return [replace(sample, targets=targets) for sample in self.samples.get((arm, example), ())]

    def measured(self, arm: int, example: int, targets: Sequence[str]) -> Sequence[Sample]:
        """Samples for metrics; if annotators rate outputs, with the dataset's targets."""
        return self.shown(arm, example, targets) if self.by_label else self.samples.get((arm, example), ())

    def _score(self, arm: int, example: int, targets: Sequence[str]) -> float | None:
        """Score of an arm's outputs: `WORST` if undetermined, None if one is missing."""
        verdicts = [self.judge.judge(sample) for sample in self.shown(arm, example, targets)]
        if not verdicts:
            return None
        if any(_is_worst(verdict) for verdict in verdicts):
            return WORST
        if self.certification.samples is None:
            return verdicts[0].score or 0.0
        texts = [_scored_text(*each) for each in zip(self.samples[arm, example], verdicts, strict=True)]
        return reduced(self.certification.samples, texts).score


def _scored_text(sample: Sample, verdict: Verdict) -> ScoredText:
    """One of several outputs with its score.

    An unreadable output scores 0, and its answer does not count in a vote.
    """
    return ScoredText(
        text=sample.output,
        score=verdict.score or 0.0,
        answer=verdict.answer,
        no_answer=verdict.no_answer or verdict.score is None,
        preference=verdict.preference,
    )


def _is_worst(verdict: Verdict) -> bool:
    """Whether a score is missing because of the targets or the judge."""
    return verdict.reason in WORST_FOR_ALL or (verdict.reason is not None and len(verdict.replies) > 0)


class LossSteps(RoundSteps):
    """Steps of a round of a certify campaign, which scores losses."""

    counts_failures = True

    def lacks_labels(self, campaign: CampaignSession, round_: RoundRecord) -> bool:
        """See `RoundSteps`."""
        return lacks_labels(campaign, round_)

    def generate(self, campaign: CampaignSession, round_: RoundRecord) -> GenerationBatch:
        """See `RoundSteps`."""
        return generate_answers(campaign, _certification(campaign.checked), round_)

    def examples_of(self, campaign: CampaignSession, round_: RoundRecord) -> list[int]:
        """Position of the example of each output, outputs of a baseline included."""
        return [example for _, example in answers_of(_certification(campaign.checked), round_)]

    def judge(
        self,
        campaign: CampaignSession,
        checked: ResolvedCampaign,
        round_: RoundRecord,
        texts: GenerationBatch,
    ) -> list[NewComparison]:
        """See `RoundSteps`."""
        assert isinstance(checked, Certify)
        return score_losses(campaign, checked.certification, checked.judge, round_, texts)

    def models_needed(self, checked: ResolvedCampaign) -> Sequence[tuple[str, ModelRef]]:
        """The autoevaluator and the baseline, if used: every loss needs their outputs."""
        assert isinstance(checked, Certify)
        return needed_by_losses(checked)


def _certification(checked: ResolvedCampaign) -> Certification:
    assert isinstance(checked, Certify)
    return checked.certification
