"""The picture of stops: who is first, what was cut off, and how often who erred."""

import numpy as np
import pytest

from winnow.algorithms.bounds.binomial import proportion_interval
from winnow.flows.simulate.plots import LEVEL, Stops, draw_stops
from winnow.flows.simulate.report import Subject


def stops(label, places, stopped=None, wrong=0):
    places = np.array(places, dtype=float)
    stopped = np.ones(len(places), dtype=bool) if stopped is None else np.array(stopped)
    return Stops(label=label, places=places, stopped=stopped, wrong=wrong)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "matplotlib"))


def texts(axes):
    """From top to bottom: the axis points down."""
    found = sorted(axes.texts, key=lambda text: text.xy[1])
    return [text.get_text() for text in found]


FOUND = [
    stops("slow", [30.0, 50.0]),
    stops("cut", [10.0, 60.0], [True, False]),
    stops("quick", [10.0, 20.0, 30.0], wrong=1),
    stops("never", [60.0], [False]),
]


def test_rows_are_in_the_order_of_their_means_and_those_cut_off_come_last():
    left, right = draw_stops(FOUND, axis="comparisons", delta=0.05, title="a $ table").axes
    assert texts(left) == [
        "quick  20",
        "slow  40",
        "cut  above 35 (1 of 2 stopped)",
        "never  above 60 (0 of 1 stopped)",
    ]
    assert texts(right) == ["delta: 0.05", "1 of 3 wrong", "0 of 2 wrong", "0 of 1 wrong", "none stopped"]
    assert left.get_xlabel() == "comparisons"
    assert left.get_figure().get_suptitle() == r"a \$ table"


def test_the_names_of_the_axes_are_within_the_picture(tmp_path):
    subject = Subject(source="t", candidates=("a", "b"), n_examples=9, facts={}, grid=18, unit="pairs")
    axis = subject.axis_of_stops
    assert axis == "comparisons to a stop (bar: mean),\n% of all pairs"
    figure = draw_stops(FOUND, axis=axis, delta=0.05, title="t")
    figure.savefig(tmp_path / "stops.png")
    for axes in figure.axes:
        place = axes.xaxis.label.get_window_extent()
        assert 0 <= place.x0 < place.x1 <= figure.bbox.width


def test_error_rates_have_their_intervals_and_the_line_that_was_asked_for():
    _, right = draw_stops(FOUND, axis="comparisons", delta=0.05, title="").axes
    segments = [tuple(line.get_xdata()) for line in right.lines]
    assert segments[0] == (0.05, 0.05)
    assert segments[1:3] == [proportion_interval(1, 3, LEVEL), (1 / 3,)]
    without = draw_stops(FOUND, axis="comparisons", delta=None, title="").axes[1]
    assert len(without.lines) == len(right.lines) - 1
