"""Numbers in sentences: estimates are rounded, ends of intervals outward, and none is made a certainty."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.tasks.text.phrases import (
    MOST_DECIMALS,
    amount,
    count_of,
    ends,
    percentage,
    rounded,
    span,
)

SCORES = st.floats(-1.0, 1.0)


@given(SCORES, SCORES)
def test_what_is_written_of_an_interval_holds_wherever_the_interval_does(one, other):
    lower, upper = min(one, other), max(one, other)
    least, most = ends(lower, upper)
    slack = 10.0**-MOST_DECIMALS
    if lower < upper:
        assert float(least) - slack <= lower
        assert float(most) + slack >= upper
    assert abs(float(least) - lower) <= 0.001
    assert abs(float(most) - upper) <= 0.001


@pytest.mark.parametrize(
    ("lower", "upper", "written"),
    [
        (0.5696, 0.8884, "0.569 to 0.889"),  # to the nearest it would be 0.570 to 0.888
        (0.1 + 0.2, 1.0 - 0.7, "0.300 to 0.300"),
        (-0.0436, -0.0014, "-0.044 to -0.001"),
        (0.0, 1.0, "0.000 to 1.000"),
        (0.00004, 0.99996, "0.00004 to 0.99996"),
        (0.9416666, 0.9416666, "0.942 to 0.942"),
        (-0.0, 0.0004, "0.000 to 0.001"),
    ],
)
def test_ends_go_outward_and_a_point_is_rounded(lower, upper, written):
    assert span(lower, upper) == written


@pytest.mark.parametrize(
    ("value", "sign", "written"),
    [
        (0.8884, "", "0.888"),
        (0.0306, "+", "+0.031"),
        (-0.0306, "+", "-0.031"),
        (0.9999, "", "0.9999"),
        (-0.0, "+", "+0.000"),
        (math.inf, "", "inf"),
    ],
)
def test_an_estimate_is_rounded_to_the_nearest(value, sign, written):
    assert rounded(value, sign) == written


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((10240, "10,240"), (0.5, "0.5"), (1234567.8912, "1,234,567.891"), (0, "0"), (100, "100")),
        *((0.000324, "0.00032"), (0.0003, "0.0003"), (-0.00004, "-0.00004"), (0.0005, "0.001")),
    ],
)
def test_an_amount_is_written_for_people(value, text):
    assert amount(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.5, "50.0%"), (0.0, "0.0%"), (1.0, "100.0%"), (39 / 180_000, "0.02%"), (1 - 39 / 180_000, "99.98%")],
)
def test_a_share_reads_as_none_or_all_only_where_it_is(share, text):
    assert percentage(share) == text


def test_a_count_is_of_one_or_of_several():
    assert [count_of(each, "example") for each in (0, 1, 12_032)] == [
        "0 examples",
        "1 example",
        "12,032 examples",
    ]
