"""Patterns of users that would take gigabytes, or no end of memory, are refused before they are compiled."""

import pytest

from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge
from winnow.tasks.text.patterns import LONGEST, compiled, last_answer


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?R)?a", "calls a group again"),
        ("x(?1)(a)", "calls a group again"),
        ("(?&b)(?P<b>a)", "calls a group again"),
        ("(?P>b)(?P<b>a)", "calls a group again"),
        ("a{1000000000}", "its repeats expanded"),
        ("(a){1000000000,}", "its repeats expanded"),
        ("(?:(?:ab|b){1000}){1000}", "its repeats expanded"),
        ("((((((a{9}){9}){9}){9}){9}){9})", "its repeats expanded"),
        ("(?:ab){3000000}x", "its repeats expanded"),
        ("a" * (LONGEST + 1), "characters; give a pattern of at most"),
        ("(" * 5000 + ")" * 5000, "recursion"),
    ],
)
def test_a_pattern_that_takes_gigabytes_is_refused_in_a_short_sentence(pattern, why):
    with pytest.raises(ValueError, match=why) as refused:
        compiled(pattern)
    assert len(str(refused.value)) < 300
    with pytest.raises(JudgeError, match=why):
        create_judge("regex", pattern=pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"\(?R\)",
        "[(?R)]",
        r"\d{4}-\d{2}",
        r"(?:answer|ANSWER): ?([A-D])",
        r"(?i:a{0,100000})",
        "[]{9}]{9}",
        r"\\{9}",
    ],
)
def test_patterns_that_only_look_like_it_are_compiled(pattern):
    assert compiled(pattern).pattern == pattern


class Greedy:
    """A pattern that finds no memory."""

    groups = 0

    def finditer(self, text, timeout):
        raise MemoryError


def test_a_search_without_memory_ends_as_one_without_time():
    with pytest.raises(TimeoutError):
        last_answer(Greedy(), "a")


def test_what_a_target_makes_of_a_pattern_is_bounded_too():
    verdict = create_judge("regex", pattern="x{target}").judge(Sample(output="x", targets=["a" * LONGEST]))
    assert verdict.reason == "unreadable_target"
