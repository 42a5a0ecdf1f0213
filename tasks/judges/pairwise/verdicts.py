"""Verdicts that a judge can give, their scores, and how to find them in a reply.

If a reply has several verdicts, the last one counts, because a judge considers or quotes others before its
decision. If the last text in the form of a verdict is not a valid label, the reply has no verdict.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import regex

from winnow.tasks.engines.probabilities import expected_value
from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.asking.panel import IN_BRACKETS
from winnow.tasks.text.patterns import compiled, last_answer

Read = Literal["text", "choice", "probabilities"]
"""What a judge's reply is: a verdict after reasoning, only a verdict, or each verdict's probability."""

VerdictFormatName = Literal["[[A]]", "[[A>>B]]", "m/M"]

_LETTER_ALONE = regex.compile(r"^[^\w\r\n]*+([mM])[^\w\r\n]*+\r?$", regex.MULTILINE)
_MEANINGS = {1.0: "the first answer is better", 0.0: "the second answer is better", 0.5: "neither is better"}


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictFormat:
    """The verdict labels of a judge, their scores, and how to find them in a reply."""

    scores: Mapping[str, float]
    """Preference for the answer shown first, in [0, 1], by verdict label."""
    meanings: Mapping[str, str]
    """Meaning of each verdict, for the prompt."""
    pattern: regex.Pattern[str]
    """Pattern that finds verdicts in a reply; group 1, or else the whole match, is a label."""
    labels: Mapping[str, float]
    """Score by label as `pattern` finds it."""

    @property
    def choices(self) -> tuple[str, ...]:
        """All verdict labels, as a reply must write them."""
        return tuple(self.scores)

    def in_text(self, text: str, *, is_cut: bool = False) -> float | None:
        """Score of the last verdict in a reply; None if the reply has no verdict.

        If the reply was cut off (`is_cut`), a verdict before its end is not the final one.

        Raises:
            TimeoutError: If a user's own pattern takes too long on this text.
        """
        label = last_answer(self.pattern, text, is_cut=is_cut)
        if label is None:
            return None
        if label in self.labels:
            return self.labels[label]
        alike = [score for known, score in self.labels.items() if _folded(known) == _folded(label)]
        return alike[0] if len(alike) == 1 else None

    def expected(self, logprobs: Mapping[str, float] | None) -> float | None:
        """Mean score under the verdicts' probabilities, normalised over the verdicts.

        With two verdicts of 1 and 0, this is the probability of the first, as in AlpacaEval. With a tie
        label, half of its probability counts for each answer. None if the probabilities are missing or
        unusable, which is not a tie.
        """
        return expected_value(self.scores, logprobs)

    def instructions(self, read: Read) -> str:
        """Instructions on how to reply, for the prompt."""
        asked = "\n".join(f"{choice} if {self.meanings[choice]}" for choice in self.choices)
        if read == "text":
            return (
                "First compare the two in a few sentences. Then end your reply with exactly one of these, on "
                f"a line of its own:\n{asked}"
            )
        return f"Reply with exactly one of these and nothing else:\n{asked}"

    def reminder(self, number: int) -> str:
        """Text added to a prompt after an unreadable reply."""
        asked = ", ".join(self.choices)
        return f"\n\nReminder {number}: your reply must end with exactly one of {asked} on a line of its own."


def named_format(name: VerdictFormatName) -> VerdictFormat:
    """A published verdict format, by name."""
    if name == "m/M":
        meanings = {"m": "output m is better", "M": "output M is better"}
        scores = {"m": 1.0, "M": 0.0}
        return VerdictFormat(scores=scores, meanings=meanings, pattern=_LETTER_ALONE, labels=scores)
    if name == "[[A]]":
        labels = {"A": 1.0, "B": 0.0, "C": 0.5}
        said = ["answer A is better", "answer B is better", "they are equally good"]
    else:
        labels = {"A>>B": 1.0, "A>B": 1.0, "A=B": 0.5, "B>A": 0.0, "B>>A": 0.0}
        said = ["answer A is much better", "answer A is slightly better", "they are about equally good"]
        said += ["answer B is slightly better", "answer B is much better"]
    scores = {f"[[{label}]]": score for label, score in labels.items()}
    meanings = dict(zip(scores, said, strict=True))
    return VerdictFormat(scores=scores, meanings=meanings, pattern=IN_BRACKETS, labels=labels)


def mapped_format(score_mapping: Mapping[str, float], pattern: str | None) -> VerdictFormat:
    """A verdict format from the user's own labels.

    Args:
        score_mapping: Preference for the answer shown first, in [0, 1], by label.
        pattern: A regular expression whose last match in a reply (group 1, if the pattern has one) is the
            label; None: labels are in double square brackets.

    Raises:
        JudgeError: If the labels or scores cannot distinguish the answers, or the pattern is invalid.
    """
    place = "judge.score_mapping"
    if "" in {label.strip() for label in score_mapping}:
        raise JudgeError("a label must not be empty", place)
    for label, score in score_mapping.items():
        if not 0.0 <= score <= 1.0:
            raise JudgeError(f"a score must be in [0, 1], got {score}", f"{place}.{label}")
    values = score_mapping.values()
    if not values or min(values) >= 0.5 or max(values) <= 0.5:
        raise JudgeError(
            "needs a label with a score above 0.5 for the first answer and one below 0.5 for the second, "
            f"got {dict(score_mapping)}",
            place,
        )
    spelled = {label if pattern else f"[[{label}]]": score for label, score in score_mapping.items()}
    meanings = {
        choice: _MEANINGS.get(score, f"your preference for the first answer is {score:g} between 0 and 1")
        for choice, score in spelled.items()
    }
    try:
        finder = compiled(pattern) if pattern else IN_BRACKETS
    except ValueError as error:
        raise JudgeError(str(error), "judge.verdict_pattern") from error
    verdicts = VerdictFormat(scores=spelled, meanings=meanings, pattern=finder, labels=dict(score_mapping))
    for choice, score in spelled.items():
        if not pattern and verdicts.in_text(choice) != score:
            raise JudgeError(f"{choice} cannot be found in replies; choose a shorter, plainer label", place)
    return verdicts


def _folded(label: str) -> str:
    return "".join(label.split()).casefold()
