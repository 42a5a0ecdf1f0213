"""Figure of the bound on how much better another candidate can be, against the budget spent."""

from collections.abc import Sequence

from plotly.graph_objects import Figure, Scatter

from winnow.flows.reports.html.figures.theme import BLUE, dressed


def excess(points: Sequence[tuple[int, float]], *, unit: str) -> Figure:
    """The least excess that was proven by then, as steps from one value to the next.

    Args:
        points: Pairs of comparisons spent and the excess, in order; at least one.
        unit: The word for comparisons on the axis.
    """
    changes = [
        pair
        for number, pair in enumerate(points)
        if number == 0 or pair[1] != points[number - 1][1] or number == len(points) - 1
    ]
    spent, most = zip(*changes, strict=True)
    line = Scatter(
        x=spent,
        y=most,
        mode="lines+markers" if len(changes) < 3 else "lines",
        line={"color": BLUE, "width": 2, "shape": "hv"},
        name="nobody is better by more than",
        hovertemplate="%{y:.3f} after %{x:,}<extra></extra>",
    )
    return dressed(
        Figure([line]),
        xaxis={"title": unit, "rangemode": "tozero"},
        yaxis={"title": "better by at most", "rangemode": "tozero"},
        showlegend=False,
    )
