"""The protocol of judges: the output or the two answers that a judge sees, and the verdict that it gives.

A verdict is a score or a reason, never both and never neither. The reasons of the built-in judges:

* no_answer          the pattern of `extract` or of the judge is not in the output
* extract_timeout    the `extract` pattern took too long on this output
* pattern_timeout    the judge's own pattern took too long on this output
* no_number          the output holds no number that can be read
* no_score           the output says that there is no score
* no_choice          the output names no option, or several without saying which
* no_likelihoods     the models of the campaign write texts, and the judge reads log-likelihoods of choices
* no_target          the example has no target to compare with, or no tests
* unreadable_target  the example has targets or tests, but none that this judge can read
* invalid_score      a plug-in or a user's function gave what is not a number in its range, such as NaN
* judge_failed       a plug-in raised an exception, see `tasks.plugins.entry_points`, or a user's function
  did, took too long or ended its process, or there was no sandbox to be had
* judge_limit        a library took more time or memory on this output than it may
* part_unscored      a part of a combination found no answer, and is not to take that as wrong
* verdict_missing    the reply of a model that judges holds no verdict that can be read
* prompt_failed      what a model would be asked cannot be rendered or is longer than any context window
* no_probabilities   the engine gave no probabilities of the labels, or none that can be used
* no_preference      a program's function gave none for two answers
* too_few_judges     of several models, fewer than `min_valid_judges` gave a verdict
* and those of a `GenerationFailure`, where a model that judges gave no reply

An output with the reason no_answer, no_number or no_choice holds no answer: it counts as wrong, unless the
judge's option `no_answer` is "unscored"; see `tasks.judges.options`.

A score is in [0, 1] and has the unit that it was measured in. What plug-ins give is not taken on trust.
Everything that is proved of scores is proved of numbers in [0, 1]: a measure with another range is mapped
there, by the same formula for every output, whatever others are like.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Generic, Self, TypeVar

from winnow.algorithms.errors import at_bound
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.judges.asking.calls import JudgeCall, ReadReply, Replies
from winnow.tasks.plugins.entry_points import PluginFailed

NO_TARGET = "no_target"
"""The reason why a judge that compares outputs with targets scores none on an example that has no target."""

UNREADABLE_TARGET = "unreadable_target"
"""The reason why a judge that can read none of an example's targets scores no output on it."""

BEST_OF = "best-of"
"""The judge that chooses among the texts of a pair, and the way to reduce them that needs it."""


INVALID_SCORE = "invalid_score"
"""Reason of a comparison whose judge gave no valid verdict."""

JUDGE_FAILED = "judge_failed"
"""Reason of a comparison whose judge, a plug-in, raised an exception."""

MOST_OF_A_REASON = 64
"""Characters of a reason, which is a short name."""

Expected = TypeVar("Expected")


class InvalidScore(ValueError):
    """A judge gave something that is not a number in [0, 1], or no verdict at all."""


def checked_score(value: object, what: str) -> float:
    """The value as a plain `float`, such as a database stores; `what` names it in the message.

    Raises:
        InvalidScore: If it is not a number in [0, 1]; NaN is not.
    """
    if type(value) is float and 0.0 <= value <= 1.0:  # as nearly all are
        return value
    if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
        return float(bool(value))  # as a comparison of arrays has it; it is no number to Python
    score = at_bound(float(value)) if isinstance(value, Real) else math.nan
    if not 0.0 <= score <= 1.0:
        raise InvalidScore(f"{what} lies in [0, 1], got {repr(value)[:100]}")
    return score


def checked_kind(value: object, kind: type[Expected]) -> Expected:
    """The value, where it is of this kind.

    Raises:
        InvalidScore: If it is of another one.
    """
    if not isinstance(value, kind):
        raise InvalidScore(f"a judge returns a {kind.__name__}, got {type(value).__name__}")
    return value


def check_words(reason: object, **others: object) -> None:
    """Refuse a reason that is none, and other values that are neither a text nor None.

    Raises:
        InvalidScore: If a reason is empty, longer than `MOST_OF_A_REASON` or no text, or another is no text.
    """
    for name, value in {"reason": reason, **others}.items():
        if not isinstance(value, str | None):
            raise InvalidScore(f"{name} is a text or None, got {type(value).__name__}")
    if isinstance(reason, str) and not 0 < len(reason) <= MOST_OF_A_REASON:
        raise InvalidScore(f"a reason has 1 to {MOST_OF_A_REASON} characters, got {len(reason)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """All that a judge sees of one output.

    What is not known is None or empty: to judges of duels, who must not know whose answer it is, the scorer
    of `rules` among them, no more than the output, the targets and the example's fields are shown.
    """

    output: str
    """The candidate's output, up to its stop sequences. Untrusted, of any length and content."""
    targets: Sequence[str] = ()
    """The accepted answers; none if the example has none."""
    has_forms: bool = False
    """Whether the targets count in their other forms too; see `tasks.judges.target_forms`."""
    fields: Mapping[str, object] = field(default_factory=dict)
    """The example's fields but the target's, as JSON values; `input` is among them."""
    example: str | None = None
    """The example's key."""
    prompt: str | None = None
    """The prompt that the candidate was given, as rendered; a chat as a JSON list of messages."""
    reasoning: str | None = None
    """The candidate's thoughts before the output, where its model says how they are told apart; no judge of
    Winnow's looks at them."""
    finish_reason: str | None = None
    """"stop", or "length" where the output was cut off."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    logprobs: Sequence[float] | None = None
    """The natural log-probability of each token that was written, where its sampling asks for that."""
    choices: Sequence[str] = ()
    """The example's choices, where models weigh those; `output` is what is added to the prompt with one."""
    loglikelihoods: Sequence[float] = ()
    """The natural log-likelihood of each choice after the prompt."""
    candidate: Mapping[str, str] = field(default_factory=dict)
    """The names of the choices that make the candidate: model, prompt, guardrail, generate_config."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duel:
    """Two answers to one question."""

    question: str
    """The example's input."""
    answer_a: str
    """Untrusted, any characters."""
    answer_b: str
    """Untrusted, any characters."""
    targets: Sequence[str] = ()
    """The example's targets; none if it has none."""
    has_forms: bool = False
    """Whether the targets count in their other forms too; see `tasks.judges.target_forms`."""
    fields: Mapping[str, object] = field(default_factory=dict)
    """The example's other fields, JSON values."""
    seed: int
    """Source of the duel's coins and of what a judge samples; the same whenever the duel is judged again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One judge's opinion of one output or of one duel."""

    score: float | None = None
    """In [0, 1]; None when there could be no judgment, which is not a zero. Of a duel: 1 if A is preferred, 0
    if B is, 0.5 for a tie; between them for probabilities and means."""
    answer: str | None = None
    """The text read from the output and compared, or a value measured of it, with its unit; else None."""
    reason: str | None = None
    """The reason why there is no score, a short name such as "no_number"; None when there is one."""
    detail: str | None = None
    """The reason in a sentence, where there is more to say."""
    no_answer: bool = False
    """Whether the output holds no answer, however that is scored; set by `create_judge`, not by a judge."""
    preference: float | None = None
    """The preference for the output over others of its pair, in [0, 1]; of judge best-of alone."""
    replies: Sequence[ReadReply] = ()
    """Replies of models that were asked, earlier attempts included."""

    def __post_init__(self) -> None:
        check_words(self.reason, answer=self.answer, detail=self.detail)
        if (self.score is None) == (self.reason is None):
            raise InvalidScore(
                f"a verdict has a score or a reason, got score={self.score!r}, reason={self.reason!r}"
            )
        if self.score is not None:
            object.__setattr__(self, "score", checked_score(self.score, "a score"))
        object.__setattr__(self, "replies", tuple(checked_kind(each, ReadReply) for each in self.replies))

    @classmethod
    def scored(cls, right: bool, answer: str | None) -> Self:
        """One if the answer is right, zero if it is wrong."""
        return cls(score=float(right), answer=answer)

    @classmethod
    def unscored(cls, reason: str, answer: str | None = None, *, detail: str | None = None) -> Self:
        """No score, and why."""
        return cls(reason=reason, answer=answer, detail=detail)


SAME_ANSWER = Verdict(score=0.5, answer="the same answer twice")
"""The verdict on two answers that are the same, character for character, about which nobody is asked."""

SIDES = {1.0: "A", 0.0: "B", 0.5: "tie"}
"""Verdicts on a duel as notes have them."""

SubjectT = TypeVar("SubjectT", bound="Sample | Duel", contravariant=True)
"""What a judge judges: a single output, or two answers to one question."""


class Judge(ABC, Generic[SubjectT]):
    """Scores an output, most often by the targets of its example, or prefers one of two answers.

    A judge keeps nothing between calls: the same subject gets the same verdict. It raises nothing because of
    an output. Only time limits depend on the machine.

    A judge that asks models makes no call itself. It says in `models` which models it asks, and in `calls`
    which calls it still wants, given the replies to earlier ones; `told` returns the same judge with the
    replies available, which then judges. Winnow makes the calls and keeps the replies, so that a run that was
    interrupted continues with those that were stored. `winnow db check` asks for the calls once more, of what
    is stored: so they depend on the subject and the replies alone, and neither on a clock nor on
    `Sample.candidate`, which is empty then.

    A judge of another package needs no base class: a method `judge` is enough for one that scores outputs,
    and all other members are optional. Its class, or whatever else builds it, may have an attribute `scale`,
    a `tasks.judges.protocol.Scale`: what it measures in, and the map to scores.
    """

    __slots__ = ()

    @property
    def models(self) -> Sequence[ModelRef]:
        """The models that it asks; none of most judges."""
        return ()

    @property
    def parts(self) -> "Sequence[Judge[SubjectT]]":
        """The judges that it is made of, if any."""
        return ()

    @property
    def identity(self) -> Mapping[str, object]:
        """JSON values that its verdicts depend on and the spec does not hold, such as a template's text."""
        return {}

    @property
    def is_deterministic(self) -> bool:
        """Whether the same two answers always get the same verdict, whichever is A and whatever the seed."""
        return False

    def try_out(self) -> None:
        """Load what it runs.

        This is called when a campaign's file is checked, once its user has allowed what it does: what would
        fail on every output then fails before a text is made.

        Raises:
            JudgeError: In place of whatever goes wrong.
        """

    def ahead(self, subjects: Sequence[SubjectT], /) -> None:
        """Take note of what is about to be judged, so that processes can run side by side.

        Verdicts are the same without.
        """

    def calls(self, subject: SubjectT, replies: Replies, /) -> Sequence[JudgeCall]:
        """The calls still wanted, given the replies so far; none once it can judge."""
        return ()

    def told(self, replies: Replies, /) -> Self:
        """The judge with the replies to all calls that it wants available."""
        return self

    @abstractmethod
    def judge(self, subject: SubjectT, /) -> Verdict:
        """The verdict; of an output with several targets it is enough to be right about one of them."""


def lacks_target(judge: Judge[Sample], sample: Sample) -> bool:
    """Whether a judge can score no output of the sample's example for want of a target.

    Not known of a judge that asks models, which is asked nothing.
    """
    return not judge.calls(sample, {}) and judge.judge(sample).reason == NO_TARGET


def verdict_of(verdict: Callable[[], object]) -> Verdict:
    """The verdict that a function returns; unscored if it returns none or a plug-in raises in it."""
    try:
        return checked_kind(verdict(), Verdict)
    except InvalidScore as error:
        return Verdict.unscored(INVALID_SCORE, detail=str(error))
    except PluginFailed as failed:
        return Verdict.unscored(JUDGE_FAILED, detail=failed.what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The unit in which a judge measures, and the map of its values to scores."""

    unit: str
    """The native unit, with its range where it has one."""
    formula: str
    """The map, as users read it."""
    convert: Callable[[float], float] = float
    """The map: native value -> score; what it gives beyond [0, 1] is cut off there."""

    def score(self, value: float) -> float:
        """The score of a native value, in [0, 1]; NaN for NaN."""
        converted = self.convert(value)
        return converted if 0.0 <= converted <= 1.0 or converted != converted else float(converted > 0.5)


RIGHT_OR_WRONG = Scale(unit="right or wrong", formula="1 if right, 0 if wrong")
PERCENT = Scale(unit="points, 0 to 100", formula="points / 100", convert=lambda points: points / 100.0)
SHARE = Scale(unit="score, 0 to 1", formula="as it is")
