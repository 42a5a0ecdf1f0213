"""What users ask of a campaign of duels, on rows whose answers are added up here by hand."""

import pytest
from stored_campaigns import NOW, generation, judgment, store_campaign

from winnow.storage.queries import campaign_views
from winnow.storage.queries.objective import duels as duel_views
from winnow.storage.records import generations as generation_records


@pytest.fixture
def played(kept, backend):
    return kept(backend, six_duels)


def six_duels(database):
    """Six duels of a, b and c before two judges, a planned round, and a campaign that must not be counted.

    Judge j sees every duel in both orders: it agrees with itself on two, prefers the first place once, calls
    one order a tie once, once has no verdict in one order, and agrees with itself twice on the last, which it
    sees again (`repeat`). Judge k sees one duel, in one order.
    """
    campaign = store_campaign(database, objective="best-duel")
    first = campaign.plan(0, [[0, 1], [1, 0], [0, 1], [2, 1]], [0, 1, 0, 4])
    with database.writing() as session:
        reply = generation("reply", text="[[A]]", prompt="Which?", output_tokens=1)
        generation_records.add_generations(session, first.id, [reply], NOW)
        stored = generation_records.texts_by_key(session, ["reply"])["reply"].id
    campaign.finish_duels(
        first,
        [
            (1.0, [judgment("original", 1.0, reply=stored), judgment("swapped", 1.0)]),
            (
                0.0,
                [judgment("original", 0.0), judgment("swapped", 0.0), judgment("original", 0.25, judge="k")],
            ),
            (0.5, [judgment("original", 1.0), judgment("swapped", 0.0)]),
            (0.75, [judgment("original", 1.0), judgment("swapped", 0.5)]),
        ],
        best=0,
        estimates=[0.8, 0.2, 0.5],
        lower=[0.5, 0.0, 0.1],
        upper=[1.0, 0.6, 0.9],
    )
    campaign.finish_duels(
        campaign.plan(1, [[1, 2], [0, 1]], [2, 3]),
        [
            (
                None,
                [
                    judgment("original", 0.0),
                    judgment("swapped", "verdict_missing"),
                    judgment("swapped", "verdict_missing", attempt=1),
                ],
            ),
            (
                0.5,
                [
                    judgment("original", 1.0),
                    judgment("swapped", 1.0),
                    judgment("original", 0.0, repeat=1),
                    judgment("swapped", 0.0, repeat=1),
                ],
            ),
        ],
        best=2,
        estimates=[0.6, None, 0.7],
        lower=[0.4, None, 0.3],
        upper=[0.9, None, 0.95],
        stop=True,
        reason="budget",
    )
    campaign.plan(2, [[0, 2]], [4])
    other = store_campaign(database, "other", objective="best-duel")
    other.finish_duels(
        other.plan(0, [[0, 1]], [0]), [(1.0, [judgment("original", 1.0), judgment("swapped", 0.0)])]
    )
    return campaign


def ask(campaign, view, **arguments):
    with campaign.database.reading() as session:
        return list(view(session, campaign.record.id, **arguments))


def test_head_to_head_sees_every_pair_from_both_sides_whoever_was_first(played):
    shown = ("candidate", "opponent", "duels", "wins", "ties", "losses", "unscored", "win_rate")
    assert [tuple(row[name] for name in shown) for row in ask(played, duel_views.head_to_head)] == [
        ("a", "b", 4, 2, 2, 0, 0, 0.75),
        ("b", "a", 4, 0, 2, 2, 0, 0.25),
        ("b", "c", 2, 0, 0, 1, 1, 0.25),
        ("c", "b", 2, 1, 0, 0, 1, 0.75),
    ]


def test_a_pair_without_a_scored_duel_has_no_win_rate(database):
    campaign = store_campaign(database, objective="best-duel")
    campaign.finish_duels(campaign.plan(0, [[0, 1]], [0]), [(None, [])])
    rows = ask(campaign, duel_views.head_to_head)
    assert [(row["duels"], row["unscored"], row["win_rate"]) for row in rows] == [(1, 1, None)] * 2


def test_judges_are_told_by_how_often_the_first_place_wins_and_how_often_they_change_sides(played):
    # j prefers the first place by 1, 0 | 0, 1 | 1, 1 | 1, 0.5 | 0 | 1, 0 | 0, 1; two replies are not read.
    # Of its six questions with both orders read, two change sides: a tie is another side than a win.
    assert ask(played, duel_views.judges) == [
        {
            "judge": "j",
            "judgments": 15,
            "unread": 2,
            "first_wins": 7.5 / 13,
            "both_orders": 6,
            "flip_rate": 1 / 3,
        },
        {"judge": "k", "judgments": 1, "unread": 0, "first_wins": 0.25, "both_orders": 0, "flip_rate": None},
    ]


def test_a_judge_that_was_never_read_has_no_rates(database):
    campaign = store_campaign(database, objective="best-duel")
    unread = [judgment("original", "load_failed"), judgment("swapped", "load_failed")]
    campaign.finish_duels(campaign.plan(0, [[0, 1]], [0]), [(None, unread)])
    assert ask(campaign, duel_views.judges) == [
        {"judge": "j", "judgments": 2, "unread": 2, "first_wins": None, "both_orders": 0, "flip_rate": None}
    ]


def test_verdicts_are_counted_by_judge_and_placement(played):
    shown = ("judge", "presentation_order", "verdict", "reason", "judgments")
    assert sorted(
        (tuple(row[name] for name in shown) for row in ask(played, duel_views.verdicts)), key=str
    ) == sorted(
        [
            ("j", "original", 1.0, None, 4),
            ("j", "original", 0.0, None, 3),
            ("j", "swapped", 1.0, None, 2),
            ("j", "swapped", 0.5, None, 1),
            ("j", "swapped", 0.0, None, 3),
            ("j", "swapped", None, "verdict_missing", 2),
            ("k", "original", 0.25, None, 1),
        ],
        key=str,
    )


def test_judgments_come_in_the_order_they_were_played_with_their_replies(played):
    rows = ask(played, duel_views.judgments)
    shown = ("round", "position", "judge", "presentation_order", "attempt", "repeat")
    assert [tuple(row[name] for name in shown) for row in rows] == [
        (0, 0, "j", "original", 0, 0), (0, 0, "j", "swapped", 0, 0),
        (0, 1, "j", "original", 0, 0), (0, 1, "j", "swapped", 0, 0), (0, 1, "k", "original", 0, 0),
        (0, 2, "j", "original", 0, 0), (0, 2, "j", "swapped", 0, 0),
        (0, 3, "j", "original", 0, 0), (0, 3, "j", "swapped", 0, 0),
        (1, 0, "j", "original", 0, 0), (1, 0, "j", "swapped", 0, 0), (1, 0, "j", "swapped", 1, 0),
        (1, 1, "j", "original", 0, 0), (1, 1, "j", "swapped", 0, 0),
        (1, 1, "j", "original", 0, 1), (1, 1, "j", "swapped", 0, 1),
    ]  # fmt: skip
    assert (rows[0]["reply"], rows[0]["prompt"], rows[1]["reply"]) == ("[[A]]", "Which?", None)
    assert (rows[2]["candidate"], rows[2]["candidate_b"]) == ("b", "a")
    assert (rows[11]["verdict"], rows[11]["reason"]) == (None, "verdict_missing")


def test_comparisons_show_both_answers_and_can_be_limited_to_either_side(played):
    rows = ask(played, duel_views.comparisons)
    assert [(row["candidate"], row["candidate_b"], row["example"], row["outcome"]) for row in rows] == [
        ("a", "b", "e0", 1.0),
        ("b", "a", "e1", 0.0),
        ("a", "b", "e0", 0.5),
        ("c", "b", "e4", 0.75),
        ("b", "c", "e2", None),
        ("a", "b", "e3", 0.5),
    ]
    assert (rows[1]["text"], rows[1]["text_b"]) == ("text of letters-0-1-a", "text of letters-0-1-b")
    of_c = ask(played, duel_views.comparisons, candidate="c")
    assert [(row["round"], row["position"]) for row in of_c] == [(0, 3), (1, 0)]
    assert ask(played, duel_views.comparisons, candidate="a", limit=1) == rows[:1]


def test_the_leaderboard_counts_a_duel_for_both_sides_and_orders_by_the_last_decision(played):
    shown = ("candidate", "estimate", "lower", "upper", "best", "scored", "unscored", "output_tokens")
    assert [tuple(row[name] for name in shown) for row in ask(played, campaign_views.leaderboard)] == [
        ("c", 0.7, 0.3, 0.95, True, 1, 1, 4),
        ("a", 0.6, 0.4, 0.9, False, 4, 0, 8),
        ("b", None, None, None, False, 5, 1, 12),
    ]


def test_coverage_counts_a_duel_for_both_sides(played):
    assert [
        (row["candidate"], row["reason"], row["comparisons"]) for row in ask(played, campaign_views.coverage)
    ] == [
        ("a", None, 4),
        ("b", None, 5),
        ("b", "verdict_missing", 1),
        ("c", None, 1),
        ("c", "verdict_missing", 1),
    ]


def test_totals_count_a_duel_once_and_every_text_of_candidates_and_judges(played):
    with played.database.reading() as session:
        totals = campaign_views.totals(session, played.record.id)
    shown = ("comparisons", "scored", "rounds", "generations", "output_tokens", "candidates", "grid")
    assert tuple(totals[name] for name in shown) == (6, 5, 2, 13, 25, 3, 15)
