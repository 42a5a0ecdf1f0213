# ruff: noqa: E501 -- lists of odd values
"""Whatever models say, read by judges: a verdict or a reason, and nothing raised."""

import pytest
from cases import NASTY_TEXT, kept, settles
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries

from winnow.tasks.judges.pairwise.verdicts import named_format
from winnow.tasks.judges.pointwise.llm import points_of
from winnow.tasks.judges.protocol import Sample, Verdict
from winnow.tasks.judges.registry import create_judge

JUDGES = [
    ("exact", {}), ("normalised", {}), ("numeric", {}), ("contains", {}), ("choice", {}),
    ("regex", {"pattern": r"(?:a|aa)+$|(\d+)"}), ("exact", {"extract": r"answer is (.*)\."}), ("numeric", {"no_answer": "unscored"}),
    ("f1", {}), ("squad", {}), ("weighted", {"judges": [{"type": "numeric"}, {"type": "f1"}], "weights": [1, 2]}),
]  # fmt: skip
SCALES = ("yes/no", "1..5", "1..10")
PIECES = st.sampled_from([
    "1,000.5", "-3", "1e999", "9" * 5_000, "1/0", "½", "٣", "²", "−7", "$5.00", "10%", "1.2.3", "0x1f", "(A)", "A.", "answer is ", "[[A]]",
    "[[B>>A]]", "[[", "]]", "m", "M", "**", "\\boxed{", "}", "```", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "\n", "\x00", "\u202e",
])  # fmt: skip
TEXTS = st.lists(PIECES | NASTY_TEXT | st.text(max_size=20), max_size=8).map("".join)


def case(output, targets):
    """Every judge of single outputs, and every format of verdicts."""
    for name, params in JUDGES:
        judge = create_judge(name, **params)
        found = settles(judge.judge, Sample(output=output, targets=targets))
        assert isinstance(found, Verdict), found
    for name in ("[[A]]", "[[A>>B]]", "m/M"):
        found = settles(named_format(name).in_text, output)
        assert found is None or 0.0 <= found <= 1.0
    for points in map(points_of, SCALES):
        found = settles(points.in_text, output)
        assert found is None or found in points.scores


@pytest.mark.parametrize("path", kept("judges"), ids=lambda path: path.name)
def test_texts_that_are_kept_settle(path):
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    case(text, ["A", "7", text])


@tries(20)
@given(TEXTS, st.lists(TEXTS | st.sampled_from(["A", "7", "1,000", "nan", "inf"]), max_size=3))
def test_whatever_a_model_says_settles(output, targets):
    case(output, targets)


@tries(10)
@given(st.floats() | st.integers(), st.sampled_from(["A", "B", "C", "tie"]), st.floats(), st.floats())
def test_whatever_probabilities_are_told_give_a_share_or_nothing(first, name, second, third):
    for format_ in map(named_format, ("[[A]]", "[[A>>B]]", "m/M")):
        told = dict(zip(format_.choices, (first, second, third), strict=False)) | {name: third}
        found = settles(format_.expected, told)
        assert found is None or 0.0 <= found <= 1.0
