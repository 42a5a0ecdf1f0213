"""Protocol of judges: the outputs that a judge sees, and its verdict.

A verdict has either a score or a reason, never both or neither. The reasons of the built-in judges:

* no_answer          the pattern of `extract` or of the judge is not in the output
* extract_timeout    the `extract` pattern took too long on this output
* pattern_timeout    the judge's own pattern took too long on this output
* no_number          the output has no readable number
* no_score           a user's function returned no score, or the output reports none
* not_reported       the agent did not report the number
* no_choice          the output names no option, or several without choosing
* no_likelihoods     the judge reads log-likelihoods of choices, but the campaign's models generate
* no_target          the example has no target to compare with, or no tests
* unreadable_target  the judge can read none of the example's targets or tests
* invalid_score      a plug-in or a user's function returned no number in its range, for example NaN
* judge_failed       a plug-in raised an exception, see `tasks.plugins.entry_points`; or a user's function
  raised one, took too long or ended its process; or no sandbox was available
* judge_limit        a library exceeded its limit of time or memory on this output
* part_unscored      a part of a combination found no answer, and its `no_answer` is "unscored"
* verdict_missing    the reply of a judge model has no readable verdict
* prompt_failed      the prompt for a judge model cannot be rendered or exceeds any context window
* no_probabilities   the engine returned no usable probabilities of the labels
* no_preference      a program's function returned no preference between two answers
* too_few_judges     of several models, fewer than `min_valid_judges` gave a verdict
* any reason of a `GenerationFailure`, if a judge model gave no reply

An output with the reason no_answer, no_number or no_choice has no answer: it counts as wrong, unless the
judge's option `no_answer` is "unscored"; see `tasks.judges.options`.

A score is in [0, 1]; the judge's `Scale` has its unit. Results of plug-ins are checked. All proofs are about
scores in [0, 1]: a measure with another range is mapped to it by the same formula for every output,
independent of other outputs.
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
"""Reason if a judge compares outputs with targets, and the example has no target."""

UNREADABLE_TARGET = "unreadable_target"
"""Reason if a judge can read none of an example's targets."""

BEST_OF = "best-of"
"""Name of the judge that chooses among several outputs, and of the `reduce` that needs it."""


INVALID_SCORE = "invalid_score"
"""Reason if a judge returned no valid verdict."""

JUDGE_FAILED = "judge_failed"
"""Reason if a third-party judge raised an exception."""

MOST_OF_A_REASON = 64
"""Maximum length of a reason, which is a short name."""

Expected = TypeVar("Expected")


class InvalidScore(ValueError):
    """A judge's result is not a number in [0, 1], or not a verdict."""


def checked_score(value: object, what: str) -> float:
    """Convert a score to a plain `float` for the database.

    `what` names the value in the message.

    Raises:
        InvalidScore: If the value is not a number in [0, 1]; NaN is refused too.
    """
    if type(value) is float and 0.0 <= value <= 1.0:  # the usual case
        return value
    if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
        return float(bool(value))  # result of an array comparison, which is no `numbers.Real`
    score = at_bound(float(value)) if isinstance(value, Real) else math.nan
    if not 0.0 <= score <= 1.0:
        raise InvalidScore(f"{what} must be in [0, 1], got {repr(value)[:100]}")
    return score


def checked_kind(value: object, kind: type[Expected]) -> Expected:
    """Return the value if it has the expected type.

    Raises:
        InvalidScore: If the value has another type.
    """
    if not isinstance(value, kind):
        raise InvalidScore(f"a judge must return a {kind.__name__}, got {type(value).__name__}")
    return value


def check_words(reason: object, **others: object) -> None:
    """Check a verdict's reason and its other texts.

    Raises:
        InvalidScore: If a value is neither text nor None, or the reason is empty or longer than
            `MOST_OF_A_REASON`.
    """
    for name, value in {"reason": reason, **others}.items():
        if not isinstance(value, str | None):
            raise InvalidScore(f"{name} must be a text or None, got {type(value).__name__}")
    if isinstance(reason, str) and not 0 < len(reason) <= MOST_OF_A_REASON:
        raise InvalidScore(f"a reason must have 1 to {MOST_OF_A_REASON} characters, got {len(reason)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Everything that a judge can see of one output.

    Unknown fields are None or empty. Judges of duels, including the scorer of `rules`, see only the output,
    the targets and the example's fields, so that they cannot tell which candidate gave an answer.
    """

    output: str
    """The candidate's output, up to its stop sequences. Untrusted, of any length and content."""
    targets: Sequence[str] = ()
    """The accepted answers; empty if the example has no target."""
    has_forms: bool = False
    """Whether targets are also accepted in their other forms; see `tasks.judges.target_forms`."""
    fields: Mapping[str, object] = field(default_factory=dict)
    """The example's fields except its target, as JSON values; includes `input`."""
    example: str | None = None
    """The example's key."""
    prompt: str | None = None
    """The candidate's prompt as rendered; a chat as a JSON list of messages."""
    reasoning: str | None = None
    """The candidate's reasoning before the output, if its model separates it; no built-in judge uses it."""
    finish_reason: str | None = None
    """"stop", or "length" if the output was cut off."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    logprobs: Sequence[float] | None = None
    """Natural log-probability of each generated token, if its sampling settings request them."""
    choices: Sequence[str] = ()
    """The example's choices, if models score choices; `output` is then one choice as added to the prompt."""
    loglikelihoods: Sequence[float] = ()
    """Natural log-likelihood of each choice after the prompt."""
    reported: Mapping[str, float] = field(default_factory=dict)
    """For an agent: the metrics and the `cost` that it reported for its run."""
    candidate: Mapping[str, str] = field(default_factory=dict)
    """Names of the candidate's parts, by kind: model, prompt, guardrail, generate_config."""


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
    """The example's targets; empty if it has no target."""
    has_forms: bool = False
    """Whether targets are also accepted in their other forms; see `tasks.judges.target_forms`."""
    fields: Mapping[str, object] = field(default_factory=dict)
    """The example's other fields, as JSON values."""
    seed: int
    """Seed of the duel's random choices and of a judge's sampling; the same if the duel is judged again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One judge's verdict on one output or one duel."""

    score: float | None = None
    """Score in [0, 1]; None if the output is unscored, which is not a zero. For a duel: 1 if A is preferred,
    0 if B is, 0.5 for a tie; numbers in between for probabilities and means."""
    answer: str | None = None
    """The text that was read from the output and compared, or a measured value with its unit; else None."""
    reason: str | None = None
    """Reason why the score is missing, as a short name such as "no_number"; None if `score` is set."""
    detail: str | None = None
    """The reason as a sentence, with more detail."""
    no_answer: bool = False
    """Whether the output has no answer, whatever its score; set by `create_judge`, not by a judge."""
    preference: float | None = None
    """The preference for this output over the other outputs of its pair, in [0, 1]; only from judge best-of.
    """
    replies: Sequence[ReadReply] = ()
    """Replies of judge models, earlier attempts included."""

    def __post_init__(self) -> None:
        check_words(self.reason, answer=self.answer, detail=self.detail)
        if (self.score is None) == (self.reason is None):
            raise InvalidScore(
                f"a verdict must have a score or a reason, got score={self.score!r}, reason={self.reason!r}"
            )
        if self.score is not None:
            object.__setattr__(self, "score", checked_score(self.score, "a score"))
        object.__setattr__(self, "replies", tuple(checked_kind(each, ReadReply) for each in self.replies))

    @classmethod
    def scored(cls, right: bool, answer: str | None) -> Self:
        """A verdict with score 1 if the answer is right, 0 if it is wrong."""
        return cls(score=float(right), answer=answer)

    @classmethod
    def unscored(cls, reason: str, answer: str | None = None, *, detail: str | None = None) -> Self:
        """A verdict without a score, with the reason."""
        return cls(reason=reason, answer=answer, detail=detail)


SAME_ANSWER = Verdict(score=0.5, answer="the same answer twice")
"""The verdict on two identical answers, which need no judgment."""

SIDES = {1.0: "A", 0.0: "B", 0.5: "tie"}
"""Names of a duel's outcomes in notes, by score."""

SubjectT = TypeVar("SubjectT", bound="Sample | Duel", contravariant=True)
"""Subject of a judge: a single output, or two answers to one question."""


class Judge(ABC, Generic[SubjectT]):
    """Interface of a judge: score an output, or prefer one of two answers.

    A judge keeps no state between calls: the same subject gets the same verdict. An output never causes an
    exception. Only time limits depend on the machine.

    A judge that uses models makes no call itself. `models` lists its models. `calls` returns the calls that
    are still missing, given the replies to earlier ones. `told` returns the same judge with the replies,
    ready to judge. Winnow makes the calls and stores the replies, so an interrupted run continues with the
    stored ones. `winnow db check` computes the calls again from stored data, so they must depend only on the
    subject and the replies, not on a clock or on `Sample.candidate`, which is empty then.

    A judge of another package needs no base class. One that scores outputs needs only a method `judge`; all
    other members are optional. Its class, or any other factory, may have an attribute `scale`, a
    `tasks.judges.protocol.Scale` with its unit and the map to scores.
    """

    __slots__ = ()

    @property
    def models(self) -> Sequence[ModelRef]:
        """The judge's models; empty for most judges."""
        return ()

    @property
    def parts(self) -> "Sequence[Judge[SubjectT]]":
        """Component judges; empty for most judges."""
        return ()

    @property
    def identity(self) -> Mapping[str, object]:
        """JSON values that verdicts depend on and the spec lacks, such as a template's text."""
        return {}

    @property
    def is_deterministic(self) -> bool:
        """Whether the same two answers always get the same verdict, in either order and for any seed."""
        return False

    def try_out(self) -> None:
        """Load the judge's code and models.

        Called when a campaign's file is checked, after the user has permitted what the judge does, so that an
        error that affects every output appears before anything is generated.

        Raises:
            JudgeError: In place of any error.
        """

    def ahead(self, subjects: Sequence[SubjectT], /) -> None:
        """Announce subjects that will be judged, so that processes can run in parallel.

        Verdicts do not depend on the announcement.
        """

    def calls(self, subject: SubjectT, replies: Replies, /) -> Sequence[JudgeCall]:
        """The calls that are still missing, given the replies so far; empty if it can judge."""
        return ()

    def told(self, replies: Replies, /) -> Self:
        """Return the judge with the replies to all its calls."""
        return self

    @abstractmethod
    def judge(self, subject: SubjectT, /) -> Verdict:
        """Verdict on a subject; with several targets, matching one of them is enough."""


def lacks_target(judge: Judge[Sample], sample: Sample) -> bool:
    """Whether the sample's example cannot be scored because it has no target.

    False for a judge that needs a model's reply first, because no model is called here.
    """
    return not judge.calls(sample, {}) and judge.judge(sample).reason == NO_TARGET


def verdict_of(verdict: Callable[[], object]) -> Verdict:
    """Verdict that a function returns; unscored if it is invalid or a plug-in raises."""
    try:
        return checked_kind(verdict(), Verdict)
    except InvalidScore as error:
        return Verdict.unscored(INVALID_SCORE, detail=str(error))
    except PluginFailed as failed:
        return Verdict.unscored(JUDGE_FAILED, detail=failed.what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Unit in which a judge measures, and the map from values to scores."""

    unit: str
    """The unit of measured values, with their range if it is limited."""
    formula: str
    """Formula of `convert`, as shown to users."""
    convert: Callable[[float], float] = float
    """The map from a measured value to a score; results outside [0, 1] are clipped."""

    def score(self, value: float) -> float:
        """Score of a measured value, in [0, 1]; NaN for NaN."""
        converted = self.convert(value)
        return converted if 0.0 <= converted <= 1.0 or converted != converted else float(converted > 0.5)


RIGHT_OR_WRONG = Scale(unit="right or wrong", formula="1 if right, 0 if wrong")
PERCENT = Scale(unit="points, 0 to 100", formula="points / 100", convert=lambda points: points / 100.0)
SHARE = Scale(unit="score, 0 to 1", formula="as it is")
