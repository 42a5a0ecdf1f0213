"""Output is untrusted: no text makes a judge raise, hang or take the wrong verdict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge

MUCH = 300_000
IN_PROCESS = ("choice", "contains", "exact", "f1", "normalised", "numeric", "regex", "squad")
"""The others have a process that is killed after a time; see test_isolated_judges."""
PARAMETERS = {"regex": {"pattern": r"answer is (\w+)"}}
UNITS = ["a", "1", "1,000,", "1.", "1/", "e1", "-", "(", " ", "\n", "**", "A\n", "(A", "answer is ",
         "\\boxed{", "\\frac{1}{2}", "$5 ", "~~a", "<think>", "not A, ", "答案是A", "A and ", "A:\n", "10^",
         "[1]", "####", "#### 5 ", "1 000 ", "\x00", "\ud800", "\u202e", "a.\u0301", "ﬃ", "İ"]  # fmt: skip


@pytest.fixture(params=IN_PROCESS)
def judge(request):
    return create_judge(request.param, **PARAMETERS.get(request.param, {}))


@pytest.mark.timeout(20)  # each takes a quarter of a second or less; the quickest quadratic pattern a minute
@pytest.mark.parametrize("unit", UNITS, ids=ascii)
def test_much_of_anything_is_judged_in_linear_time(judge, unit):
    verdict = judge.judge(Sample(output=unit * (MUCH // len(unit)) + "!", targets=["A", "7"]))
    assert (verdict.score is None) == (verdict.reason is not None)


@given(
    output=st.text(st.characters() | st.sampled_from("AB1.,/-$()\x00\ud800\u202e\u2066\ufeff")),
    data=st.data(),
)
def test_any_text_gets_a_verdict(output, data):
    name = data.draw(st.sampled_from(IN_PROCESS))
    verdict = create_judge(name, **PARAMETERS.get(name, {})).judge(Sample(output=output, targets=["A", "7"]))
    assert (verdict.score is None) == (verdict.reason is not None)


@pytest.mark.parametrize("odd", ["\x00", "\ud800", "\u202e", "\u2066"], ids=ascii)
def test_odd_characters_are_kept_and_compared(odd):
    assert create_judge("exact").judge(Sample(output=f"a{odd}b", targets=[f"a{odd}b"])).answer == f"a{odd}b"
    assert create_judge("exact").judge(Sample(output=f"a{odd}b", targets=["ab"])).score == 0.0
    assert create_judge("contains").judge(Sample(output=f"a{odd}b", targets=[odd])).score == 1.0


@pytest.mark.parametrize(
    ("pattern", "output", "expected"),
    [
        (r"ANSWER: (\w+)", "ANSWER: 1 ... ANSWER: 2", "2"),
        (r"\d+", "1 then 2", "2"),
        (r"(?:ANSWER|RESULT): (\w+)", "no verdict", None),
    ],
)
def test_extract_takes_the_last_match_and_says_where_there_is_none(pattern, output, expected):
    verdict = create_judge("exact", extract=pattern).judge(Sample(output=output, targets=["2"]))
    found = expected is not None
    assert (verdict.answer, verdict.score, verdict.no_answer) == (expected, float(found), not found)


@pytest.mark.parametrize(
    ("type", "params", "output"),
    [
        ("exact", {"extract": r"=(\d+)"}, "no idea"),
        ("regex", {"pattern": r"=(\d+)"}, "no idea"),
        ("numeric", {}, "no idea"),
        ("choice", {"options": ["2", "3"]}, "no idea"),
    ],
)
def test_an_output_without_an_answer_is_wrong_unless_the_spec_says_otherwise_and_is_marked(
    type, params, output
):
    wrong = create_judge(type, **params).judge(Sample(output=output, targets=["2"]))
    assert (wrong.score, wrong.reason, wrong.no_answer) == (0.0, None, True)
    unscored = create_judge(type, **params, no_answer="unscored").judge(Sample(output=output, targets=["2"]))
    assert (unscored.score, unscored.reason is None, unscored.no_answer) == (None, False, True)
    assert not create_judge(type, **params).judge(Sample(output="=2", targets=["2"])).no_answer


def test_what_is_not_the_outputs_fault_stays_unscored():
    verdict = create_judge("exact", no_answer="wrong").judge(Sample(output="2", targets=[]))
    assert (verdict.score, verdict.reason, verdict.no_answer) == (None, "no_target", False)


def test_extract_that_backtracks_without_end_is_stopped(monkeypatch):
    monkeypatch.setattr("winnow.tasks.text.patterns.TIMEOUT_SECONDS", 0.1)
    verdict = create_judge("numeric", extract="(a+)+b").judge(Sample(output="a" * MUCH, targets=["1"]))
    assert verdict.reason == "extract_timeout"
