"""The curve that a figure shows: the rows of the curve, and of very many of them some."""

from winnow.storage.queries.campaign_views import curve
from winnow.storage.queries.curve_points import curve_points, places


def test_few_rounds_are_the_rows_of_the_curve(campaign):
    told = {"estimates": [0.5, 0.25, None], "lower": [0.25, 0.0, None], "upper": [0.75, 0.5, None]}
    campaign.finish(campaign.plan(0, [0, 1], [0, 0]), [1.0, 0.0], best=0, **told)
    campaign.finish(campaign.plan(1, [2], [0]), [None])
    campaign.finish(campaign.plan(2, [1], [1]), [1.0], best=1, **told)
    campaign.plan(3, [1], [2])  # is not told yet
    with campaign.database.reading() as session:
        rows = list(curve(session, campaign.record.id))
        found = curve_points(session, campaign.record.id, most=10, changes=10)
        ends = curve_points(session, campaign.record.id, most=2, changes=0)
        assert curve_points(session, campaign.record.id + 1, most=10, changes=10) == []
    assert [(row["comparisons"], row["best"], row["estimate"]) for row in rows] == [
        (2, "a", 0.5),
        (3, None, None),
        (4, "b", 0.25),
    ]
    assert found == rows
    assert ends == [rows[0], rows[2]]


def test_of_very_many_rounds_some_are_shown_with_the_last_changes_of_the_lead():
    leaders = [1] * 50 + [2] + [1] * 24 + [None] + [1] * 24
    assert list(places(leaders, most=10, changes=3)) == sorted({*range(0, 100, 10), 50, 51, 76, 99})
    assert list(places(leaders, most=10, changes=1)) == sorted({*range(0, 100, 10), 76, 99})
    assert list(places(leaders, most=10, changes=0)) == [*range(0, 100, 10), 99]
    assert list(places(leaders, most=100, changes=0)) == list(range(100))
