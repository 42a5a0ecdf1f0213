"""The form in which a model rates one output by a rubric, on a scale."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import median
from typing import Literal

from winnow.tasks.engines.probabilities import expected_value
from winnow.tasks.errors import TemplateError
from winnow.tasks.judges.asking.calls import (
    NO_PROBABILITIES,
    PROMPT_FAILED,
    VERDICT_MISSING,
    Completed,
    JudgeCall,
)
from winnow.tasks.judges.asking.panel import Prompts
from winnow.tasks.judges.pointwise.points import Points
from winnow.tasks.judges.pointwise.rating_prompt import prompt
from winnow.tasks.judges.protocol import NO_TARGET, Sample, Verdict

Aggregation = Literal["mean", "median", "majority"]
Read = Literal["probabilities", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """See `tasks.judges.asking.panel.Form`."""

    points: Points
    beginning: str
    """The beginning of every prompt."""
    reference: bool
    """Whether the targets are shown."""
    weighs: bool
    aggregation: Aggregation

    @property
    def labels(self) -> Sequence[str]:
        """The points of the scale."""
        return tuple(self.points.choices)

    @property
    def identity(self) -> Mapping[str, object]:
        """Nothing: its prompts are part of the judge's code."""
        return {}

    @property
    def is_deterministic(self) -> bool:
        """No: outputs are scored by themselves."""
        return False

    def prompts(self, subject: Sample, /) -> Prompts | Verdict:
        """The one prompt about an output."""
        if self.reference and not subject.targets:
            return Verdict.unscored(NO_TARGET)
        asked = subject.fields.get("input", "")
        question = asked if isinstance(asked, str) else json.dumps(asked, ensure_ascii=False)
        references = subject.targets if self.reference else ()
        try:
            return {"original": prompt(self.beginning, question, references, subject.output)}
        except TemplateError as error:
            return Verdict.unscored(PROMPT_FAILED, detail=error.message)

    def reminder(self, number: int) -> str:
        """See `Points`."""
        return self.points.reminder(number)

    def seed(self, subject: Sample, place: Sequence[object], /) -> None:
        """None: equal questions about any output have one reply in a campaign."""

    def read(self, call: JudgeCall, reply: Completed, /) -> tuple[float | None, str | None]:
        """The mean under the probabilities of the points, or the point that a text ends with."""
        if call.sampling.choices:
            values = {choice: self.points.scores[label] for choice, label in self.points.choices.items()}
            score = expected_value(values, reply.choice_logprobs)
            return score, NO_PROBABILITIES if score is None else None
        label = self.points.in_text(reply.text, is_cut=reply.finish_reason == "length")
        return (None, VERDICT_MISSING) if label is None else (self.points.scores[label], None)

    def of_orders(self, values: Sequence[float]) -> float:
        """The value of the only order."""
        return values[0]

    def aggregated(self, values: Sequence[float]) -> float:
        """Combine one or more scores; a single one is returned unchanged.

        Under "majority" each score is a vote for the nearest point of the scale; if several points have the
        most votes, it is the mean of these.
        """
        if len(values) == 1:
            return values[0]
        if self.aggregation == "median":
            return median(values)
        if self.aggregation == "mean":
            return min(1.0, fsum(values) / len(values))
        votes = Counter(map(self.points.nearest, values))
        most = max(votes.values())
        leading = [point for point, count in votes.items() if count == most]
        return min(1.0, fsum(leading) / len(leading))

    def shown(self, value: float) -> str:
        """Empty: its prompts are part of the judge's code."""
        return self.points.shown(value)
