"""The views in the schema say what Winnow's own queries say, in the columns that are promised."""

import pytest
from sqlalchemy import text
from stored_campaigns import NOW, decision, generation, judgment, store_campaign

from winnow.storage.queries import campaign_views
from winnow.storage.queries.objective import duels as duel_views
from winnow.storage.queries.view_columns import VIEWS
from winnow.storage.records import generations as generation_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records import rounds as round_records
from winnow.storage.records.record_types import NewComparison


@pytest.fixture
def played(kept, backend):
    return kept(backend, two_campaigns)


def two_campaigns(database):
    """A campaign of scores, one of duels after it, and a text that the second takes from the first."""
    campaign = store_campaign(database)
    campaign.finish(
        campaign.plan(0, [0, 1, 2], [0, 0, 0]),
        [1.0, 0.25, None],
        best=0,
        estimates=[1.0, 0.0, None],
        lower=[0.5, 0.0, None],
        upper=[1.0, 0.4, None],
    )
    believed = {"best": 1, "estimates": [0.4, 0.5, None], "stop": True}
    campaign.finish(campaign.plan(1, [1, 0], [1, 1]), [1.0, None], **believed)
    campaign.plan(2, [0], [4])
    duels = store_campaign(campaign.database, "duels", objective="best-duel")
    first = duels.plan(0, [[0, 1], [1, 0], [0, 1]], [0, 1, 2])
    with campaign.database.writing() as session:
        generation_records.add_generations(
            session, first.id, [generation("reply", text="[[A]]", prompt="Which?")], NOW
        )
        reply = generation_records.texts_by_key(session, ["reply"])["reply"].id
    judged = [
        (1.0, [judgment("original", 1.0, reply=reply)]),
        (0.5, []),
        (None, [judgment("swapped", "lost")]),
    ]
    duels.finish_duels(first, judged, best=1)
    with campaign.database.writing() as session:
        later = round_records.add_round(
            session, duels.record.id, number=1, arms=[[0, 2]], examples=[3], now=NOW
        )
        taken = generation_records.take_texts(session, later.id, ["letters-0-0"])["letters-0-0"].id
        reused = NewComparison(
            position=0,
            candidate_a_id=duels.candidate_ids[0],
            candidate_b_id=duels.candidate_ids[2],
            example_id=duels.example_ids[3],
            generation_a_id=taken,
            judge="llm",
            outcome=0.0,
        )
        outcome_records.add_outcomes(session, later.id, [reused], decision(), NOW)
    return campaign, duels


def asked(campaign, view, order):
    with campaign.database.reading() as session:
        rows = session.execute(
            text(f"SELECT * FROM {view} WHERE campaign = :name ORDER BY {order}"),
            {"name": campaign.record.name},
        )
        return [dict(row) for row in rows.mappings()]


def answered(campaign, view):
    with campaign.database.reading() as session:
        return list(view(session, campaign.record.id))


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_the_columns_that_are_promised(played, view):
    campaign, _ = played
    with campaign.database.reading() as session:
        assert list(session.execute(text(f"SELECT * FROM {view}")).keys()) == [
            name for name in VIEWS[view] if name
        ]


@pytest.mark.parametrize(
    ("view", "query", "order", "number"),
    [
        (
            "v_leaderboard",
            campaign_views.leaderboard,
            "CASE WHEN estimate IS NULL THEN 1 ELSE 0 END, estimate DESC",
            0,
        ),
        ("v_comparisons", campaign_views.comparisons, "round, position", 0),
        ("v_curve", campaign_views.curve, "round", 0),
        ("v_coverage", campaign_views.coverage, "candidate, coalesce(reason, '')", 0),
        ("v_comparisons", duel_views.comparisons, "round, position", 1),
        ("v_head_to_head", duel_views.head_to_head, "candidate, opponent", 1),
        ("v_judgments", duel_views.judgments, "round, position, judgment", 1),
        ("v_curve", campaign_views.curve, "round", 1),
    ],
)
def test_a_view_says_what_the_query_of_that_name_says(played, view, query, order, number):
    campaign = played[number]
    found, expected = asked(campaign, view, order), answered(campaign, query)
    names = [name for name in expected[0] if name in found[0]]
    assert len(names) >= 4
    assert [[row[name] for name in names] for row in found] == [
        [row[name] for name in names] for row in expected
    ]


def test_rounds_are_null_where_they_are_unfinished(played):
    campaign, _ = played
    rows = [tuple(row.values())[1:9] for row in asked(campaign, "v_rounds", "round")]
    assert rows == [
        (0, 3, 3, 2, 3, "a", False, "running"),
        (1, 2, 2, 1, 2, "b", True, "running"),
        (2, None, None, None, None, None, None, None),
    ]


def test_a_share_is_no_whole_number_in_any_database(played):
    campaign, _ = played
    shares = [row["share"] for row in asked(campaign, "v_coverage", "candidate, coalesce(reason, '')")]
    assert shares == [0.5, 0.5, 1.0, 1.0]
    assert {type(share) for share in shares} == {float}


def test_the_standing_of_a_candidate_is_told(played):
    campaign, _ = played
    board = asked(campaign, "v_leaderboard", "position")
    assert [(row["status"], bool(row["best"]), row["mean"]) for row in board] == [
        ("active", False, 1.0),
        ("active", True, 0.625),
        ("active", False, None),
    ]


def test_campaigns_tell_who_was_best_and_who_was_before_on_the_same_data(database):
    campaign, _ = two_campaigns(database)
    again = store_campaign(campaign.database, "letters again")
    [row] = asked(campaign, "v_campaigns", "campaign")
    assert (row["rounds"], row["comparisons"], row["scored"], row["best"]) == (2, 5, 3, "b")
    assert (row["stopped"], row["previous_best"]) == (True, None)
    [row] = asked(again, "v_campaigns", "campaign")
    assert (row["rounds"], row["comparisons"], row["best"], row["previous_best"]) == (0, 0, None, "b")


def test_costs_count_a_text_once_and_reuse_is_told_apart(played):
    campaign, duels = played
    paid = [(row["role"], row["name"], row["generations"]) for row in asked(duels, "v_costs", "role, name")]
    assert paid == [("candidate", "a", 3), ("candidate", "b", 3), ("judge", "j", 1)]
    assert sum(row["generations"] for row in asked(campaign, "v_costs", "name")) == 5
    assert [tuple(row.values()) for row in asked(duels, "v_reuse", "taken_from")] == [
        ("duels", "letters", "candidate", 1)
    ]
    assert asked(campaign, "v_reuse", "campaign") == []
