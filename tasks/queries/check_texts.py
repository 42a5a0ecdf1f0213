"""Check whether every recorded comparison refers to the correct outputs.

An output's key is computed from everything that determines it. So each comparison's requests are created
again, from the stored campaign, candidates and example, and from the outputs shown to a judge. The prompt and
key of each must match the output that the comparison refers to. No checkpoint is read.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from winnow.storage.admin.recorded_comparisons import (
    RecordedComparison,
    RecordedExample,
    RecordedText,
    recorded_comparisons,
)
from winnow.storage.objectives import traits_of
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import labels
from winnow.storage.records.record_types import CampaignRecord, NewCandidate
from winnow.tasks.campaign.planned_outputs import PlannedGeneration
from winnow.tasks.candidates.candidates import StoredCandidate
from winnow.tasks.candidates.likelihood_scoring import Asked, Weighing, asked_of, weighing_of
from winnow.tasks.candidates.text_rules import rules_of
from winnow.tasks.data.datasets import Example
from winnow.tasks.errors import WinnowError
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.target_forms import has_forms
from winnow.tasks.objectives.best_duel.judging import duel_on, duel_seed
from winnow.tasks.queries.check_decisions import JudgesAgain, Unchecked, mismatch, said
from winnow.tasks.rounds.generate import plan_text
from winnow.tasks.rounds.score import ScoredText, reduced
from winnow.tasks.spec.campaign import ChoicesSpec
from winnow.tasks.spec.sections.generate_config import SamplesSpec
from winnow.tasks.spec.stored_spec import cuts_at_stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A fault of one comparison, or the reason why it could not be checked."""

    campaign: str
    round_number: int
    position: int
    candidate: str
    """Name of the candidate; in a duel, of the side concerned, or of both."""
    example: str
    """Key of the example."""
    sentence: str
    is_wrong: bool
    """Whether the comparison is wrong; False if it could not be checked."""

    def __str__(self) -> str:
        place = f"round {self.round_number + 1}, position {self.position + 1}"  # stored from 0
        return f"campaign '{self.campaign}', {place} ({self.candidate} on {self.example}): {self.sentence}"


def findings(session: Session) -> Iterator[Finding]:
    """Yield faults of all recorded comparisons, and parts that could not be checked.

    Memory does not grow with the number of comparisons.
    """
    for campaign in campaign_records.campaigns(session):
        auditor = _Auditor(session, campaign, campaign_records.candidates(session, campaign.id))
        for comparison in recorded_comparisons(session, campaign.id):
            yield from auditor.findings(comparison)


class _Auditor:
    """Rebuilds the requests of one campaign, to compare them with stored ones."""

    def __init__(
        self, session: Session, campaign: CampaignRecord, candidates: Sequence[NewCandidate]
    ) -> None:
        self._session, self._campaign, self._records = session, campaign, candidates
        self._candidates: dict[int, StoredCandidate] = {}
        self._judges = JudgesAgain(campaign)

    def findings(self, comparison: RecordedComparison) -> Iterator[Finding]:
        """Yield the faults of a comparison, and why parts of it could not be checked."""
        both = " against ".join(comparison.candidates)
        if (wrong := _unlike_its_plan(comparison)) is not None:
            yield self._finding(comparison, both, wrong)
            return
        for side, text in enumerate(comparison.texts):
            name = comparison.candidates[side]
            if text is None:
                if comparison.is_scored:
                    yield self._finding(comparison, name, "it is scored, but its output is missing")
                continue
            try:
                planned = self._planned(comparison, side, text.replicate)
                wrong = mismatch(text, planned, "its output")
            except Unchecked as error:
                yield self._finding(comparison, name, str(error), is_wrong=False)
                continue
            if wrong is not None:
                yield self._finding(comparison, name, wrong)
        yield from self._wrong_outputs(comparison)
        if comparison.judgments:
            is_duel = len(comparison.candidates) == 2
            whys = [self._wrong_judgments(comparison)] if is_duel else self._wrong_scores(comparison)
            for why in whys:
                try:
                    for wrong in why:
                        yield self._finding(comparison, both, wrong)
                except Unchecked as error:
                    yield self._finding(comparison, both, str(error), is_wrong=False)

    def _wrong_outputs(self, comparison: RecordedComparison) -> Iterator[Finding]:
        """Yield faults of a comparison's several outputs and of the combined outcome."""
        name = comparison.candidates[0]
        for output in comparison.outputs:
            which = f"output {output.number} of several"
            try:
                wrong = mismatch(output.text, self._planned(comparison, 0, output.number), which)
            except Unchecked as error:
                yield self._finding(comparison, name, str(error), is_wrong=False)
                continue
            if wrong is not None:
                yield self._finding(comparison, name, wrong)
        samples = self._campaign.spec.get("samples")
        if samples is None:
            return
        try:
            texts = [self._judged(comparison, 0, each.text) for each in comparison.outputs]
        except Unchecked:  # already reported for each output
            return
        if wrong := _unlike_its_outputs(comparison, texts, SamplesSpec(**samples)):
            yield self._finding(comparison, name, wrong)

    def _planned(self, comparison: RecordedComparison, side: int, replicate: int) -> PlannedGeneration:
        """The request that a side's output should answer."""
        candidate = self._candidate(comparison, side)
        return plan_text(
            candidate.model,
            candidate.fingerprint,
            self._asked(comparison, side),
            candidate.sampling,
            seed=self._campaign.seed,
            rules=rules_of(self._campaign.spec),
            replicate=replicate,
        )

    def _weighing(self, example: RecordedExample) -> Weighing | None:
        spec = self._campaign.spec
        choices = None if spec.get("choices") is None else ChoicesSpec(**spec["choices"])
        return weighing_of(
            spec.get("output_type", "generate"),
            choices,
            spec.get("target_delimiter"),
            example.fields,
            {example.key: example.targets},
        )

    def _asked(self, comparison: RecordedComparison, side: int) -> Asked:
        candidate, example = self._candidate(comparison, side), _known(comparison.example)
        try:
            return asked_of(candidate, self._weighing(example), example.fields, example.key)
        except (WinnowError, KeyError, TypeError, ValueError) as error:
            raise Unchecked(f"its prompt cannot be rendered: {said(error)}") from error

    def _candidate(self, comparison: RecordedComparison, side: int) -> StoredCandidate:
        arm, example = comparison.arms[side], _known(comparison.example)
        assert arm is not None
        if arm not in self._candidates:
            record = self._records[arm]
            try:
                # Every example has the fields that the templates use.
                self._candidates[arm] = StoredCandidate.from_record(record, example.fields)
            except (WinnowError, KeyError, TypeError, ValueError) as error:
                raise Unchecked(f"the candidate cannot be read: {said(error)}") from error
        return self._candidates[arm]

    def _wrong_judgments(self, comparison: RecordedComparison) -> Iterator[str]:
        """Yield faults in the calls of a duel's judge, which is run again."""
        example = _known(comparison.example)
        sides = enumerate(comparison.texts)
        answers = [self._judged(comparison, side, text) for side, text in sides if text is not None]
        if len(answers) < 2:
            yield "it has judgments, but lacks one of the two outputs"
            return
        seed = duel_seed(self._campaign.seed, comparison.round_number, comparison.position)
        shown = Example(key=example.key, fields=example.fields, targets=tuple(example.targets))
        try:
            duel = duel_on(shown, *answers, has_forms=has_forms(self._campaign.spec), seed=seed)
        except KeyError as error:
            raise Unchecked(f"its example lacks {error}") from error
        left = list(comparison.judgments)
        yield from self._judges.wrong_of(None, duel, left)
        for each in left:
            order = each.presentation_order
            yield f"the judgment of judge {each.judge} ({order}) belongs to no call of the judge"

    def _wrong_scores(self, comparison: RecordedComparison) -> list[Iterator[str]]:
        """Faults in the calls of each judge of single outputs that made calls."""
        metrics = dict.fromkeys(judgment.metric for judgment in comparison.judgments)
        return [self._wrong_or_unchecked(comparison, metric) for metric in metrics]

    def _wrong_or_unchecked(self, comparison: RecordedComparison, metric: str | None) -> Iterator[str]:
        """Yield faults in the calls of one judge.

        A plug-in's fault is raised as `Unchecked` instead: its calls can depend on things not available here,
        such as a clock.
        """
        for sentence in self._wrong_calls(comparison, metric):
            if self._judges.is_of_plugin(metric):
                raise Unchecked(f"{sentence}; the calls of a plug-in can depend on more than what is stored")
            yield sentence

    def _wrong_calls(self, comparison: RecordedComparison, metric: str | None) -> Iterator[str]:
        """Yield faults in the calls for a metric, or for the outcome.

        The judge is run again.
        """
        left = [each for each in comparison.judgments if each.metric == metric]
        if metric is not None and not self._judges.has_metric(metric):
            yield f"a reply of judge {left[0].judge} is for {metric!r}, which is not a metric of the campaign"
            return
        texts = comparison.texts
        if comparison.outputs:
            texts = [output.text for output in comparison.outputs]
        for text in texts:
            if text is None:
                yield "it has replies of a judge, but no output"
                return
            yield from self._judges.wrong_of(metric, self._sample(comparison, text), left)
        for judgment in left:
            yield f"the reply of judge {judgment.judge} belongs to no call of the judge"

    def _sample(self, comparison: RecordedComparison, text: RecordedText) -> Sample:
        """An output as a judge received it, without the names of its candidate's choices."""
        asked, example = self._asked(comparison, 0), _known(comparison.example)
        told = text.choice_logprobs or {}
        return Sample(
            output=self._judged(comparison, 0, text),
            targets=self._targets(example),
            has_forms=has_forms(self._campaign.spec),
            fields=example.fields,
            example=example.key,
            prompt=text.prompt,
            reasoning=text.reasoning,
            finish_reason=text.finish_reason,
            input_tokens=text.input_tokens,
            output_tokens=text.output_tokens,
            logprobs=text.token_logprobs,
            choices=asked.texts,
            loglikelihoods=[told.get(each, math.nan) for each in asked.continuations],
            reported={} if asked.continuations else told,
        )

    def _judged(self, comparison: RecordedComparison, side: int, text: RecordedText) -> str:
        """The part of a side's output that judges receive."""
        if not cuts_at_stop(self._campaign.spec):
            return text.text
        planned = self._planned(comparison, side, text.replicate)
        return replace(planned, cut_at_stop=True).judged(text.text)

    def _targets(self, example: RecordedExample) -> Sequence[str]:
        """Targets shown to the judge.

        For certify, a human label if the dataset has no target.
        """
        if not traits_of(self._campaign.objective).measures_risk or example.position is None:
            return example.targets
        known = labels.targets(self._session, self._campaign.dataset_id, [example.position])
        return known.get(example.position) or ()

    def _finding(
        self, comparison: RecordedComparison, candidate: str, sentence: str, *, is_wrong: bool = True
    ) -> Finding:
        return Finding(
            campaign=self._campaign.name,
            round_number=comparison.round_number,
            position=comparison.position,
            candidate=candidate,
            example="?" if comparison.example is None else comparison.example.key,
            sentence=sentence,
            is_wrong=is_wrong,
        )


def _unlike_its_outputs(
    comparison: RecordedComparison, texts: Sequence[str], samples: SamplesSpec
) -> str | None:
    """Difference between an outcome and its outputs' combined scores, in words.

    None if they agree or the comparison has no outcome.
    """
    if comparison.outcome is None:
        return None
    known = [
        ScoredText(
            text=text,
            score=each.score,
            answer=each.answer,
            no_answer=each.no_answer,
            preference=each.preference,
        )
        for each, text in zip(comparison.outputs, texts, strict=True)
        if each.score is not None
    ]
    if len(known) < samples.n:
        return f"it needs the scores of {samples.n} outputs, and only {len(known)} have scores"
    if (expected := reduced(samples, known).score) != comparison.outcome:
        return f"its outcome is {comparison.outcome:g}, but the scores of its outputs give {expected:g}"
    return None


def _unlike_its_plan(comparison: RecordedComparison) -> str | None:
    if list(comparison.arms) != list(comparison.planned_arms):
        return "its round planned another candidate here"
    example = comparison.example
    if example is not None and example.position != comparison.planned_example:
        return "its round planned another example here"
    return None


def _known(example: RecordedExample | None) -> RecordedExample:
    if example is None:
        raise Unchecked("its example no longer exists")
    return example
