"""A verdict is a score or a reason."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from winnow.tasks.judges.options import WithOptions
from winnow.tasks.judges.protocol import Sample, Verdict


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"answer": "x"},
        {"score": 1.0, "reason": "no_answer"},
        {"score": 1.5},
        {"score": math.nan},
        {"score": "1"},
    ],
)
def test_neither_both_or_a_score_outside_the_unit_interval_is_refused(parts):
    with pytest.raises(ValueError, match="got"):
        Verdict(**parts)


def test_an_unscored_verdict_is_not_a_zero():
    assert Verdict.unscored("no_number").score is None
    assert Verdict.scored(False, "5").score == 0.0


@pytest.mark.parametrize(
    "say",
    [
        lambda: Verdict(score=math.nan),
        lambda: Verdict(score=-math.inf),
        lambda: Verdict(score=1.0000001),
        lambda: Verdict(score="1"),
        lambda: 1.0,
        lambda: None,
        lambda: SimpleNamespace(score=math.nan, reason=None, answer=None),
    ],
)
@pytest.mark.parametrize("no_answer", ["wrong", "unscored"])
def test_a_plug_in_that_gives_no_score_leaves_the_output_unscored(say, no_answer):
    plug_in = SimpleNamespace(judge=lambda sample: say())
    verdict = WithOptions(inner=plug_in, no_answer=no_answer).judge(Sample(output="x", targets=["y"]))
    assert (verdict.score, verdict.reason, verdict.no_answer) == (None, "invalid_score", False)
    assert verdict.detail


@pytest.mark.parametrize(
    ("value", "score"),
    [(1.0000000000000002, 1.0), (1.0 + 1e-10, 1.0), (-2e-17, 0.0), (np.float64(1.0 + 9e-10), 1.0)],
)
def test_a_score_that_rounding_puts_outside_of_the_unit_interval_is_the_bound(value, score):
    assert Verdict(score=value).score == score
    plug_in = SimpleNamespace(judge=lambda sample: Verdict(score=value))
    verdict = WithOptions(inner=plug_in, no_answer="wrong").judge(Sample(output="x", targets=["y"]))
    assert verdict.score == score
    with pytest.raises(ValueError, match=r"a score must be in \[0, 1\]"):
        Verdict(score=value + (2e-9 if score else -2e-9))


def test_numbers_of_other_kinds_become_plain_ones():
    for value in (np.float32(0.5), np.float64(0.5), True):
        assert type(Verdict(score=value).score) is float
