"""From answers to losses: with the human label, with the autoevaluator's answer, and on unlabelled examples.

The loss of an answer is 1 - score, or against a baseline max(0, the baseline's score - score); the judge
scores both against the same targets. A loss is unknown where one of its scores is, and the mean over a block
of unlabelled examples where one of its losses is: the algorithm counts either at its worst.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from storage import labels
from storage.columns import storable
from storage.records import NewComparison, RoundRecord, StoredText
from tasks.certifying.answers import Answer, Author, answers_of
from tasks.certifying.checking import Certification
from tasks.engines.protocol import GenerationFailure
from tasks.errors import LabelMissing
from tasks.generating import Texts
from tasks.judges.protocol import Judge
from tasks.running import RunningCampaign
from tasks.scoring import scored


def score_losses(
    campaign: RunningCampaign, certification: Certification, judge: Judge, round_: RoundRecord, texts: Texts
) -> list[NewComparison]:
    """One comparison per planned pair, in planned order, with its three losses.

    Raises:
        LabelMissing: If an example of the round has no label.
    """
    places = {answer: place for place, answer in enumerate(answers_of(certification, round_))}
    scorer = _Scorer(
        certification=certification,
        judge=judge,
        answers={answer: texts[place] for answer, place in places.items()},
    )
    with campaign.database.reading() as session:
        targets = labels.targets(session, campaign.record.dataset_id, sorted(set(round_.examples)))
    comparisons = []
    for position, (arm, example) in enumerate(zip(round_.arms, round_.examples, strict=True)):
        human = targets[example]
        if not human:
            raise LabelMissing(campaign.checked.dataset.examples[example].key)
        comparison = scored(campaign, judge, position, arm, example, scorer.answers[arm, example], human)
        comparisons.append(
            replace(
                comparison,
                detail=comparison.detail or scorer.trouble(arm, example),
                human_loss=scorer.loss(arm, example, human),
                auto_loss=scorer.auto_loss(arm, example),
                unlabelled_loss=scorer.unlabelled_loss(arm, example),
            )
        )
    return comparisons


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scorer:
    certification: Certification
    judge: Judge
    answers: Mapping[Answer, StoredText | GenerationFailure]

    def loss(self, arm: int, example: int, targets: Sequence[str]) -> float | None:
        score, baseline = self._score(arm, example, targets), self.certification.baseline
        if baseline is None:
            return None if score is None else 1.0 - score
        standard = self._score(baseline, example, targets)
        return None if score is None or standard is None else max(0.0, standard - score)

    def auto_loss(self, arm: int, example: int) -> float | None:
        if self.certification.autoevaluator is None:
            return None
        text = self.answers[None, example]
        answer = self._answer(text) if isinstance(text, StoredText) else None
        return None if answer is None else self.loss(arm, example, [answer])

    def unlabelled_loss(self, arm: int, example: int) -> float | None:
        losses = [self.auto_loss(arm, each) for each in self.certification.parts.block(example)]
        known = [loss for loss in losses if loss is not None]
        return sum(known) / len(known) if known and len(known) == len(losses) else None

    def trouble(self, arm: int, example: int) -> str | None:
        """Why a loss of a pair is not known, for its first text that is missing or says nothing."""
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
                if author is None and self._answer(text) is None:
                    return f"{role}: its text holds no answer"
        return None

    def _answer(self, text: StoredText) -> str | None:
        autoevaluator = self.certification.autoevaluator
        return None if autoevaluator is None else autoevaluator.answer(text.text)

    def _score(self, author: Author, example: int, targets: Sequence[str]) -> float | None:
        text = self.answers[author, example]
        return self.judge.judge(text.text, targets).score if isinstance(text, StoredText) else None
