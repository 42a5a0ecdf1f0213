"""Rule judge: correctness first, style among correct answers, chance among wrong ones.

Source: Hu, Gao, Hu, Zhou (2026), "Adaptive Simulation Experiment for Large Language Model Policy
Optimization", its experiments on real tasks. The correct answer wins. Of two correct answers, the one with
clearer reasoning steps or with a more concise final answer wins; of two wrong answers, either at random. The
paper leaves both comparisons of style undefined. Here:

* Shorter: fewer characters in the whole answer, runs of white space counted as one.
* Clearer steps: the answer has numbered steps, that is, one line that begins with 1 and a later one that
  begins with 2 ("1.", "2)", "(1)", "Step 2:", after list or emphasis marks). An answer with steps beats one
  without; if both or neither have steps, the shorter answer wins. The number of steps does not count, so that
  padding cannot win.

Answers that are equal by the chosen rule are a tie. The coin depends only on the duel's seed, so judging the
duel again gives the same result.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import regex

from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.protocol import Duel, Judge, Sample, Verdict
from winnow.tasks.judges.registry import create_judge, judge_code, within
from winnow.tasks.text.canonical_json import sha256

BothRight = Literal["shorter", "clearer-steps", "tie"]
BothWrong = Literal["coin", "tie"]

_STEP = regex.compile(
    r"^[ \t>*_#-]{0,12}+(?i:step[ \t]{1,4}+)?\(?(?P<number>[12])[.):\]](?![^\s*_])", regex.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesJudge(Judge[Duel]):
    """Compare two answers by a scorer's scores, and by rules if the scores are equal."""

    scorer: Judge[Sample]
    scorer_code: Mapping[str, object]
    """Identity of the scorer's code; see `tasks.judges.registry.judge_code`."""
    both_right: BothRight
    both_wrong: BothWrong

    @property
    def identity(self) -> Mapping[str, object]:
        """Identity of the scorer's code."""
        return {"scorer": self.scorer_code}

    @property
    def is_deterministic(self) -> bool:
        """Whether two wrong answers are a tie; otherwise a coin decides."""
        return self.both_wrong == "tie"

    def try_out(self) -> None:
        """See `Judge`."""
        self.scorer.try_out()

    def judge(self, duel: Duel, /) -> Verdict:
        """Prefer the higher score; decide equal scores by `both_right` or `both_wrong`."""
        a, b = (self.scorer.judge(_sample(duel, answer)) for answer in (duel.answer_a, duel.answer_b))
        if a.score is None or b.score is None:
            return _unscored(a, b)
        if a.score != b.score:
            return Verdict(score=float(a.score > b.score), answer=f"scores {a.score:g} and {b.score:g}")
        if a.score == 1.0:
            return self._among_right(duel)
        if self.both_wrong == "tie":
            return Verdict(score=0.5, answer="both wrong")
        return Verdict(score=coin(duel.seed), answer="both wrong: coin")

    def _among_right(self, duel: Duel) -> Verdict:
        texts = duel.answer_a, duel.answer_b
        if self.both_right == "clearer-steps":
            steps_a, steps_b = map(has_steps, texts)
            if steps_a != steps_b:
                return Verdict(score=float(steps_a), answer="both right: numbered steps")
        if self.both_right == "tie":
            return Verdict(score=0.5, answer="both right")
        length_a, length_b = map(_length, texts)
        return Verdict(
            score=preference(length_b, length_a), answer=f"both right: {length_a} and {length_b} characters"
        )


def rules_judge(
    *,
    scorer: Mapping[str, object],
    both_right: BothRight = "shorter",
    both_wrong: BothWrong = "coin",
) -> RulesJudge:
    """Preference for the correct answer; rules decide between two right or two wrong ones.

    Args:
        scorer: A judge of single answers: its `type` and parameters, as under the key `judge` of other
            campaigns. If it leaves an answer unscored, the duel is unscored. If it finds no answer in a text,
            that counts as wrong, unless its `no_answer` is "unscored".
        both_right: The rule for two right answers.
        both_wrong: The rule for two wrong answers.

    Raises:
        JudgeError: If the scorer does not exist or does not accept these parameters.
    """
    judge = within(scorer, "judge.scorer", create_judge)
    if judge.models:
        sentence = "uses a model, which the scorer of rules cannot; choose judge: {type: llm} for the duels"
        raise JudgeError(sentence, "judge.scorer.type")
    return RulesJudge(
        scorer=judge,
        scorer_code=within(scorer, "judge.scorer", judge_code),
        both_right=both_right,
        both_wrong=both_wrong,
    )


def coin(seed: int) -> float:
    """Fair coin: 1.0 for A or 0.0 for B, the same for the same seed."""
    return float(int(sha256(["coin", seed])[:8], 16) % 2)


def has_steps(text: str) -> bool:
    """Whether a text has a line numbered 1 and a later line numbered 2."""
    numbers = [match.group("number") for match in _STEP.finditer(text)]
    return "1" in numbers and "2" in numbers[numbers.index("1") :]


def preference(a: float, b: float) -> float:
    """1.0 if a is larger, 0.0 if b is, 0.5 if they are equal."""
    return 0.5 * ((a > b) - (a < b)) + 0.5


def _sample(duel: Duel, answer: str) -> Sample:
    return Sample(output=answer, targets=duel.targets, has_forms=duel.has_forms, fields=duel.fields)


def _length(text: str) -> int:
    return len(" ".join(text.split()))


def _unscored(a: Verdict, b: Verdict) -> Verdict:
    reasons = {"A": a.reason, "B": b.reason}
    told = {side: reason for side, reason in reasons.items() if reason is not None}
    return Verdict(
        reason=next(iter(told.values())),
        answer="; ".join(f"answer {side}: {reason}" for side, reason in told.items()),
        detail=a.detail or b.detail,
    )
