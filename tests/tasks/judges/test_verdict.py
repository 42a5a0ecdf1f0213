"""A verdict is a score or a reason."""

import pytest

from tasks.judges.protocol import Verdict


@pytest.mark.parametrize(
    "parts",
    [{}, {"answer": "x"}, {"score": 1.0, "reason": "no_answer"}, {"score": 1.5}, {"score": float("nan")}],
)
def test_neither_both_or_a_score_outside_the_unit_interval_is_refused(parts):
    with pytest.raises(ValueError, match="got"):
        Verdict(**parts)


def test_an_unscored_verdict_is_not_a_zero():
    assert Verdict.unscored("no_number").score is None
    assert Verdict.scored(False, "5").score == 0.0
