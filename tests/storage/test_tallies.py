"""What rounds add up to beside their candidates: told at once, counted once, named where it is wrong."""

import datetime as dt

import pytest
from sqlalchemy import text
from stored_campaigns import NOW, decision, generation, judgment, new_database, store_campaign

from tests.benchmarks.storage_filling import fill
from winnow.storage.admin import prune as pruning
from winnow.storage.admin.check import problems
from winnow.storage.admin.maintenance import copy_database
from winnow.storage.engine.database import open_database
from winnow.storage.errors import ConflictingRecord
from winnow.storage.queries.campaign_views import metrics, totals
from winnow.storage.queries.costs import cache_hit_rate, costs, reuse
from winnow.storage.queries.objective.duels import head_to_head
from winnow.storage.queries.objective.earlier_campaigns import scored_positions
from winnow.storage.records import generations as generation_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.record_types import NewComparison, NewMetric


def take(campaign, round_, keys):
    """Ids of texts that a round uses, whoever paid for them."""
    with campaign.database.writing() as session:
        found = generation_records.add_generations(session, round_.id, [generation(key) for key in keys], NOW)
    return [found[key].id for key in keys]


def finish(campaign, round_, sides, outcome=1.0, best_candidate_id=None, **fields):
    """Store a round of one comparison of these texts on its planned example."""
    arms = round_.arms[0] if isinstance(round_.arms[0], list) else [round_.arms[0]]
    rival = campaign.candidate_ids[arms[1]] if len(arms) > 1 else None
    row = NewComparison(
        position=0,
        candidate_a_id=campaign.candidate_ids[arms[0]],
        candidate_b_id=rival,
        example_id=campaign.example_ids[round_.examples[0]],
        generation_a_id=sides[0],
        generation_b_id=None if rival is None else sides[1],
        judge="llm",
        outcome=outcome,
        reason=None if outcome is not None else "lost",
        **fields,
    )
    with campaign.database.writing() as session:
        believed = decision(best_candidate_id=best_candidate_id)
        outcome_records.add_outcomes(session, round_.id, [row], believed, NOW)


def told(database, campaign, ask):
    with database.reading() as session:
        return ask(session, campaign.record.id)


def wrong(database):
    with database.reading() as session:
        return problems(session)


@pytest.fixture
def played(database):
    return meeting_again(database)


@pytest.fixture
def kept_duels(kept, backend):
    return kept(backend, meeting_again)


def meeting_again(database):
    """Duels that meet again with the same texts, of which an earlier campaign had made x and the reply r."""
    earlier = store_campaign(database, "earlier")
    first = earlier.plan(0, [0], [0])
    finish(earlier, first, take(earlier, first, ["x"]))
    open_ = earlier.plan(1, [1], [0])
    take(earlier, open_, ["r"])
    campaign = store_campaign(database, "duels", objective="best-duel")
    for number, (arms, keys, outcome) in enumerate(
        [([0, 1], ("x", "y"), 1.0), ([1, 0], ("y", "x"), 0.25), ([0, 1], ("x", "z"), None)]
    ):
        round_ = campaign.plan(number, [arms], [0])
        *sides, reply = take(campaign, round_, [*keys, "r"])
        said = [NewMetric(name="f1", score=0.5 * number), NewMetric(name="valid", reason="not_json")]
        judged = [judgment("original", 1.0, reply=reply)]
        finish(campaign, round_, sides, outcome, judgments=judged, metrics=said)
    return earlier, campaign


def test_a_text_counts_once_however_often_it_is_shown(kept_duels):
    earlier, campaign = kept_duels
    database = campaign.database
    taken = [
        (row["role"], row["name"], row["taken_from"], row["generations"])
        for row in told(database, campaign, reuse)
    ]
    assert taken == [("candidate", "a", "earlier", 1), ("judge", "j", "earlier", 1)]
    counted = told(database, campaign, totals)
    assert (counted["generations"], counted["reused"]) == (2, 2)
    assert told(database, earlier, totals)["reused"] == 0
    paid = told(database, campaign, costs)
    assert [(row["candidate"], row["generations"], row["input_tokens"]) for row in paid] == [("b", 2, 6)]
    assert told(database, earlier, reuse) == []
    assert wrong(database) == []


def test_texts_of_a_round_that_is_not_told_are_nobodys_yet_and_add_up(kept_duels):
    earlier, _ = kept_duels
    paid = told(earlier.database, earlier, costs)
    assert [(row["candidate"], row["generations"]) for row in paid] == [("a", 1), (None, 1)]
    assert sum(row["generations"] for row in paid) == told(earlier.database, earlier, totals)["generations"]


def test_pairs_are_counted_from_both_sides_whoever_stood_first(kept_duels):
    _, campaign = kept_duels
    rows = told(campaign.database, campaign, head_to_head)
    assert [
        (row["candidate"], row["duels"], row["wins"], row["losses"], row["unscored"]) for row in rows
    ] == [
        ("a", 3, 2, 0, 1),
        ("b", 3, 0, 2, 1),
    ]
    assert [row["win_rate"] for row in rows] == [0.875, 0.125]


def test_metrics_are_counted_for_the_candidate_whose_text_they_are_of(kept_duels):
    _, campaign = kept_duels
    assert [tuple(row.values()) for row in told(campaign.database, campaign, metrics)] == [
        ("f1", "a", 2, 0, 0.5),
        ("f1", "b", 1, 0, 0.5),
        ("valid", "a", 0, 2, None),
        ("valid", "b", 0, 1, None),
    ]


def test_a_copy_has_the_tallies_and_they_are_right(played, database, tmp_path):
    _, campaign = played
    copy = open_database(f"sqlite:///{tmp_path}/copy.db")
    copy_database(database, copy)
    for ask in (costs, reuse, head_to_head):
        assert told(copy, campaign, ask) == told(database, campaign, ask)
    assert wrong(copy) == []
    copy.close()


def test_what_was_taken_from_a_campaign_that_is_deleted_is_taken_from_nobody(played):
    _, campaign = played
    database = campaign.database
    with database.writing() as session:
        old = pruning.prunable(session, before=NOW + dt.timedelta(days=1), name="earlier")
        pruning.prune(session, old, is_gone=lambda _: True, seen_by=scored_positions)
    assert [(row["name"], row["taken_from"]) for row in told(database, campaign, reuse)] == [
        ("a", None),
        ("j", None),
    ]
    assert wrong(database) == []
    with database.writing() as session:
        rest = pruning.prunable(session, before=NOW + dt.timedelta(days=1))
        pruning.prune(session, rest, is_gone=lambda _: True, seen_by=scored_positions)
        left = [session.scalar(text(f"SELECT count(*) FROM {table}")) for table in TALLIES]
    assert left == [0] * len(TALLIES)


TALLIES = (
    *(f"{each}_stats" for each in ("candidate", "campaign", "metric", "duel", "cost", "reuse")),
    "reused_texts",
)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("UPDATE candidate_stats SET output_tokens = output_tokens + 1", "the stats of candidate"),
        ("UPDATE candidate_stats SET second_squares = 2 * second_squares", "the stats of candidate"),
        ("UPDATE campaign_stats SET answered = answered + 1", "the totals of campaign"),
        ("DELETE FROM campaign_stats", "the totals of campaign"),
        ("UPDATE metric_stats SET score_sum = 0", "the tally of the metrics of candidate"),
        ("DELETE FROM metric_stats", "the tally of the metrics of candidate"),
        ("UPDATE duel_stats SET wins = wins + 1", "the tally of the duels of candidates"),
        ("DELETE FROM duel_stats", "the tally of the duels of candidates"),
        ("UPDATE cost_stats SET seconds = 0", "the paid outputs of campaign"),
        ("UPDATE reuse_stats SET generations = 2", "the reused outputs of campaign"),
        ("DELETE FROM reuse_stats", "the reused outputs of campaign"),
        ("DELETE FROM reused_texts", "the reused outputs of campaign"),
    ],
)
def test_a_tally_that_is_not_what_the_rows_add_up_to_is_named(kept_duels, change, sentence):
    _, campaign = kept_duels
    with campaign.database.writing() as session:
        session.execute(text(change))
        found = problems(session)
        session.rollback()
    assert wrong(campaign.database) == []
    assert found
    assert all(sentence in each for each in found)


def test_a_round_that_fails_to_be_stored_adds_nothing(played):
    _, campaign = played
    database = campaign.database
    round_ = campaign.plan(3, [[0, 2]], [0])
    sides = take(campaign, round_, ["x", "w"])
    with pytest.raises(ConflictingRecord, match="best candidate 999"):
        finish(campaign, round_, sides, best_candidate_id=999)
    assert wrong(database) == []
    assert {row["opponent"] for row in told(database, campaign, head_to_head)} == {"a", "b"}


@pytest.fixture
def cached(database):
    """Texts of which engines told what was cached, or did not, and one in flight."""
    campaign = store_campaign(database)
    told = {"a": (0, 2), "b": (0, 0), "c": (1, 0), "d": (2, None)}
    for number, (key, (arm, cached_tokens)) in enumerate(told.items()):
        round_ = campaign.plan(number, [arm], [number % 2])
        finish(campaign, round_, store(campaign, round_, key, cached_tokens=cached_tokens))
    store(campaign, campaign.plan(len(told), [1], [1]), "e", model="judge", cached_tokens=3)
    return campaign


def store(campaign, round_, key, **fields):
    with campaign.database.writing() as session:
        made = [generation(key, **fields)]
        return [
            each.id for each in generation_records.add_generations(session, round_.id, made, NOW).values()
        ]


def test_a_hit_rate_is_of_the_texts_of_which_engines_tell_and_else_there_is_none(database, cached):
    rows = told(database, cached, costs)
    assert [(row["candidate"], row["cached_tokens"], row["cache_hit_rate"]) for row in rows] == [
        ("a", 2, pytest.approx(2 / 6)),
        ("b", 0, 0.0),
        ("c", None, None),
        (None, 3, 1.0),
    ]
    assert told(database, cached, cache_hit_rate) == pytest.approx(2 / 9)
    with database.reading() as session:
        shown = session.execute(text("SELECT cached_tokens, cache_hit_rate FROM v_costs ORDER BY name")).all()
        assert {type(rate) for _, rate in shown if rate is not None} == {float}
    assert [known and float(known) for _, known in shown] == [pytest.approx(2 / 6), 0, None]
    assert [known for known, _ in shown] == [2, 0, None]
    assert wrong(database) == []


def test_of_a_campaign_whose_engines_do_not_tell_no_hit_rate_is_known(kept_duels):
    _, campaign = kept_duels
    assert told(campaign.database, campaign, cache_hit_rate) is None


def test_a_tally_of_cached_tokens_that_is_wrong_is_named(database, cached):
    with database.writing() as session:
        session.execute(text("UPDATE cost_stats SET cached_tokens = 1 WHERE name = 'b'"))
    assert wrong(database) == [
        f"the paid outputs of campaign {cached.record.id} differ from the sums of its rounds"
    ]


@pytest.mark.parametrize("impossible", [-1, 4])
def test_no_more_tokens_were_cached_than_there_are(database, impossible):
    campaign = store_campaign(database)
    with pytest.raises(ConflictingRecord):
        store(campaign, campaign.plan(0, [0], [0]), "a", cached_tokens=impossible)


def test_the_databases_that_benchmarks_fill_add_up_too(tmp_path):
    database = new_database(tmp_path / "winnow.db")
    fill(database, 1_100)  # more than a round
    of_prompts = "prompts"  # whose digests are made up: SQLite computes none
    assert [each for each in wrong(database) if of_prompts not in each] == []
