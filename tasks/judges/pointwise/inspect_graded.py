"""Grading by a model as in Inspect's `model_graded_qa` and `model_graded_fact`.

The prompt, the parsing of a grade, and its value are those of Inspect 0.3.285 (MIT licence). As there, a
reply without a grade is not requested again, and the output is unscored.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from string import Formatter
from typing import Annotated, Literal, Self

import regex
from pydantic import Field

from winnow.storage.json_types import JsonObject
from winnow.tasks.data.sandboxed_templates import MAX_CHARACTERS
from winnow.tasks.engines.protocol import GenerationFailure, ModelRef
from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.asking.calls import (
    PATTERN_TIMEOUT,
    PROMPT_FAILED,
    VERDICT_MISSING,
    JudgeCall,
    ReadReply,
    Replies,
)
from winnow.tasks.judges.asking.judge_models import JudgeModel, judge_model
from winnow.tasks.judges.protocol import INVALID_SCORE, Judge, Sample, Scale, Verdict
from winnow.tasks.spec.sections.generate_config import GenerateConfig
from winnow.tasks.text.canonical_json import sha256
from winnow.tasks.text.patterns import TIMEOUT_SECONDS, compiled

QA = """
You are assessing a submitted answer on a given task based on a criterion. Here is the data:

[BEGIN DATA]
***
[Task]: {question}
***
[Submission]: {answer}
***
[Criterion]: {criterion}
***
[END DATA]

Does the submission meet the criterion?

{instructions}
"""

FACT = """
You are comparing a submitted answer to an expert answer on a given question. Here is the data:

[BEGIN DATA]
************
[Question]: {question}
************
[Expert]: {criterion}
************
[Submission]: {answer}
************
[END DATA]

Compare the factual content of the submitted answer with the expert answer. Ignore any differences in \
style, grammar, or punctuation.

Does the submission contain the content in the expert answer?

{instructions}
"""

TEMPLATES = {"model_graded_qa": QA, "model_graded_fact": FACT}


def _instructions_for(partial_credit: bool) -> str:
    """Default instructions on how to reply, as in Inspect."""
    letter, partly = ("P", '"P" for partially correct answers,') if partial_credit else ("", "")
    return f"""
After assessing the submitted answer, reply with 'GRADE: $LETTER' (without quotes) where LETTER is one of \
C{letter}I.  Please choose ONE option for the grade: either "C" for correct answers, {partly}or "I" for \
incorrect answers.

For example, after reviewing a correct answer you might write 'GRADE: C' or after reviewing an incorrect \
answer you might write 'GRADE: I'.

First, write out in a step by step manner your reasoning about the criterion to be sure that your \
conclusion is correct. Avoid simply stating the correct answers at the outset. Then, end with your answer \
formatted as 'GRADE: $LETTER' (without quotes) where LETTER is one of C{letter}I.
"""


_SPACING = r"[\s\u200b\u200c\u200d\u200e\u200f\u2060\u2063\ufeff]*"
_GRADE = rf"(?is).*(?<!\w)GRADE(?!\w){_SPACING}:{_SPACING}"
ANY_GRADE, LETTER = compiled(rf"{_GRADE}(\w*)"), compiled(rf"{_GRADE}([CPI])")
"""Patterns of a reply's last grade: any word, or one of the letters."""

WORDS = {"c": "C", "correct": "C", "i": "I", "incorrect": "I", "p": "P", "partial": "P"}

WORTH = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}

_FIELD = re.compile(r"(\w+)((?:\[\w+\])*)")


class InspectGradedJudge:
    """Grade by a language model as in Inspect's model_graded_qa or model_graded_fact."""

    scale = Scale(unit="C, P or I; or a number, 0 to 1", formula="1 for C, 0.5 for P, 0 for I; as it is")

    @staticmethod
    def code(**params: object) -> JsonObject:
        """Digest of the texts that prompts use besides the judge's parameters."""
        return {"prompt": sha256([QA, FACT, _instructions_for(True), _instructions_for(False)])}

    def __call__(
        self,
        *,
        model: Mapping[str, object],
        scorer: Literal["model_graded_qa", "model_graded_fact"] = "model_graded_qa",
        template: str | None = None,
        instructions: str | None = None,
        grade_pattern: str | None = None,
        include_history: bool = False,
        partial_credit: bool = False,
        max_tokens: Annotated[int, Field(ge=1)] = 1024,
        temperature: Annotated[float, Field(ge=0.0, le=10.0)] = 0.0,
    ) -> "Grader":
        """Create the judge.

        Args:
            model: The model that grades, with the keys of a campaign's models.
            scorer: The scorer of Inspect whose template is the default.
            template: The prompt, with {question}, {answer}, {criterion}, {instructions} and keys of metadata.
            instructions: Instructions on how to reply; None requests GRADE: and a letter.
            grade_pattern: A regular expression whose first group is the grade.
            include_history: Whether the question includes all messages before the answer.
            partial_credit: Whether the grade P is allowed, if instructions are not given.
            max_tokens: Maximum length of a reply, in tokens.
            temperature: Sampling temperature; 0 means greedy decoding.

        Raises:
            SpecError: If a parameter is invalid; the message names it and what to do.
        """
        return Grader(
            grader=judge_model(
                model, GenerateConfig(temperature=temperature, max_tokens=max_tokens), "judge.model"
            ),
            template=_checked(template or TEMPLATES[scorer]),
            instructions=instructions or _instructions_for(partial_credit),
            pattern=_pattern(grade_pattern, is_free=bool(instructions)),
            is_own_pattern=bool(grade_pattern),
            offered=None if instructions or grade_pattern else "CPI" if partial_credit else "CI",
            include_history=include_history,
        )


inspect_graded_judge = InspectGradedJudge()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grader(Judge[Sample]):
    """Judge that consists of one grading model; see the module."""

    grader: JudgeModel
    template: str
    instructions: str
    pattern: regex.Pattern[str]
    is_own_pattern: bool
    """Whether the user set the pattern; its group is then the grade, unchanged."""
    offered: str | None
    """Grades that Inspect's instructions offer, any other counts as no grade; None accepts every grade."""
    include_history: bool
    replies: Replies = field(default_factory=dict, repr=False, compare=False)
    """Replies that are already available."""

    @property
    def models(self) -> Sequence[ModelRef]:
        """See `Judge`."""
        return (self.grader.ref,)

    def told(self, replies: Replies, /) -> Self:
        """See `Judge`."""
        return replace(self, replies=replies)

    def calls(self, sample: Sample, replies: Replies, /) -> Sequence[JudgeCall]:
        """See `Judge`."""
        call = self._call(sample)
        return () if isinstance(call, Verdict) or call in replies else (call,)

    def judge(self, sample: Sample) -> Verdict:
        """Value of the grade, or the reason why the output is unscored.

        Raises:
            ValueError: If the reply is still missing.
        """
        call = self._call(sample)
        if isinstance(call, Verdict):
            return call
        if call not in self.replies:
            raise ValueError(f"the verdict is not ready: judge {call.judge!r} has not replied yet")
        reply = self.replies[call]
        if isinstance(reply, GenerationFailure):
            return self._unscored(call, reply.reason)
        try:
            grade = self._grade(reply.text)
        except (TimeoutError, MemoryError):
            return self._unscored(call, PATTERN_TIMEOUT)
        if grade is None:
            return self._unscored(call, VERDICT_MISSING)
        if not 0.0 <= (score := _worth(grade)) <= 1.0:
            return self._unscored(call, INVALID_SCORE)
        return Verdict(score=score, answer=grade[:100], replies=(ReadReply(call=call, score=score),))

    def _unscored(self, call: JudgeCall, reason: str) -> Verdict:
        return replace(Verdict.unscored(reason), replies=(ReadReply(call=call, reason=reason),))

    def _call(self, sample: Sample) -> JudgeCall | Verdict:
        try:
            prompt = self._prompt(sample)
        except (LookupError, TypeError, ValueError) as error:
            return Verdict.unscored(
                PROMPT_FAILED, detail=f"the template uses {error}, which the example lacks"
            )
        if len(prompt) > MAX_CHARACTERS:
            return Verdict.unscored(PROMPT_FAILED, detail=f"the prompt has over {MAX_CHARACTERS} characters")
        return JudgeCall(
            judge=self.grader.id, model=self.grader.ref, prompt=prompt, sampling=self.grader.sampling
        )

    def _prompt(self, sample: Sample) -> str:
        metadata = sample.fields.get("metadata")
        values: dict[str, object] = {
            **(metadata if isinstance(metadata, dict) else {}),
            "question": _history(sample) if self.include_history else str(sample.fields.get("input", "")),
            "answer": sample.output,
            "criterion": "".join(sample.targets),
        }
        values = {name: _without_marks(value) for name, value in values.items()}
        return _filled(self.template, {**values, "instructions": self.instructions})

    def _grade(self, text: str) -> str | None:
        found = self.pattern.search(text, timeout=TIMEOUT_SECONDS)
        said = None if found is None else found.group(1)
        if said is None or self.is_own_pattern:
            return said
        folded = said.strip().lower()
        grade = WORDS.get(folded) or (folded.upper() if len(folded) == 1 else None)
        return grade if grade and (self.offered is None or grade in self.offered) else None


def _worth(grade: str) -> float:
    """Value of a grade; an unknown grade has value 0, as in Inspect."""
    known = WORTH.get(grade, WORTH.get(grade.lower()) if len(grade) > 1 else None)
    if known is not None:
        return known
    try:
        number = float(grade)
    except ValueError:
        return 0.0
    return number if isfinite(number) else 0.0


def _pattern(given: str | None, *, is_free: bool) -> regex.Pattern[str]:
    if not given:
        return LETTER if is_free else ANY_GRADE
    try:
        pattern = compiled(given)
    except ValueError as error:
        raise JudgeError(str(error), "judge.grade_pattern") from error
    if not pattern.groups:
        raise JudgeError(f"{given!r} has no group; put the grade into a group", "judge.grade_pattern")
    return pattern


def _checked(template: str) -> str:
    """Refuse a template with more than fields and their keys, which could use unlimited memory."""
    try:
        parts = [part for part in Formatter().parse(template) if part[1] is not None]
    except ValueError as error:
        raise JudgeError(f"is not a template: {error}", "judge.template") from error
    for _, name, spec, conversion in parts:
        if not _FIELD.fullmatch(name or "") or spec or conversion:
            found = f"{name}{f'!{conversion}' if conversion else ''}{f':{spec}' if spec else ''}"
            raise JudgeError(
                f"contains {{{found[:60]}}}; use {{FIELD}} or {{FIELD[KEY]}}, without a conversion (!r) or a "
                "format (:>5)",
                "judge.template",
            )
    return template


def _filled(template: str, values: Mapping[str, object]) -> str:
    parts = []
    for text, name, _, _ in Formatter().parse(template):
        parts.append(text)
        if name is not None:
            found = _FIELD.fullmatch(name)
            assert found is not None
            parts.append(_found(values[found[1]], re.findall(r"\w+", found[2])))
    return "".join(parts)


def _found(value: object, keys: Sequence[str]) -> str:
    for key in keys:
        if isinstance(value, list):
            value = value[int(key)]
        elif isinstance(value, dict):
            value = value[key]
        else:
            raise LookupError(key)
    return str(value)


_MARKS = re.compile(r"\[(BEGIN|END) DATA\]", re.IGNORECASE)


def _without_marks(value: object) -> object:
    """Break up the marks that delimit quotations, so that quoted text cannot end its quotation."""
    if isinstance(value, str):
        return _MARKS.sub(lambda mark: mark[0].replace(" ", "-"), value)
    if isinstance(value, dict):
        return {key: _without_marks(inner) for key, inner in value.items()}
    return [_without_marks(inner) for inner in value] if isinstance(value, list) else value


def _history(sample: Sample) -> str:
    """All messages except the system's, then the answer; the first message has no role."""
    messages = sample.fields.get("messages")
    asked = [each for each in messages if each["role"] != "system"] if isinstance(messages, list) else []
    said = [*asked, {"role": "assistant", "content": sample.output}]
    texts = [f"{each['role'].capitalize()}: {each['content']}" for each in said[1:]]
    return "\n\n".join([said[0]["content"], *texts])
