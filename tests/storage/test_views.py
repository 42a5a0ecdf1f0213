"""What users ask of a campaign, on rows whose answers are known or added up here the slow way."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy import inspect, select, text
from stored_campaigns import NOW, StoredCampaign, decision, generation, store_campaign

from winnow.storage.engine import statements
from winnow.storage.engine.database import open_database
from winnow.storage.errors import QueryRefused
from winnow.storage.models import CandidateStats
from winnow.storage.queries import campaign_views, costs
from winnow.storage.queries.objective import duels as duel_views
from winnow.storage.records import generations as generation_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.record_types import NewComparison


@pytest.fixture
def played(campaign):
    return play(campaign)


def play(campaign):
    """Two finished rounds, a planned one, and another campaign that must not be counted."""
    campaign.finish(
        campaign.plan(0, [0, 1, 2], [0, 0, 0]),
        [1.0, 0.0, None],
        best=0,
        estimates=[1.0, 0.0, None],
        lower=[0.5, 0.0, None],
        upper=[1.0, 0.5, None],
    )
    campaign.finish(
        campaign.plan(1, [1, 0, 1, 2], [1, 1, 2, 3]),
        [1.0, None, 0.5, None],
        best=1,
        estimates=[0.4, 0.5, None],
        lower=[0.1, 0.2, None],
        upper=[0.9, 0.8, None],
        stop=True,
        reason="confident",
    )
    campaign.plan(2, [0], [4])
    other = store_campaign(campaign.database, "other")
    other.finish(other.plan(0, [0, 1], [0, 1]), [1.0, 1.0], best=2)
    return campaign


@pytest.fixture
def whole(campaign):
    """Every pair once: some unscored, some without a text, no two texts of the same cost."""
    for number in range(5):
        round_ = campaign.plan(number, [0, 1, 2], [number] * 3)
        with campaign.database.writing() as session:
            made = [
                generation(f"{number}-{arm}", input_tokens=3 * number + arm, output_tokens=number + 10**arm)
                for arm in range(2)
            ]
            texts = generation_records.add_generations(session, round_.id, made, NOW)
            found = [
                NewComparison(
                    position=arm,
                    candidate_a_id=campaign.candidate_ids[arm],
                    example_id=campaign.example_ids[number],
                    generation_a_id=None if reason == "failed" else texts[f"{number}-{arm}"].id,
                    judge="exact",
                    outcome=number / 4 if reason is None else None,
                    reason=reason,
                )
                for arm, reason in enumerate((None, "no_answer" if number % 2 else None, "failed"))
            ]
            outcome_records.add_outcomes(session, round_.id, found, decision(), NOW)
    return campaign


def ask(campaign, view, **arguments):
    with campaign.database.reading() as session:
        return list(view(session, campaign.record.id, **arguments))


def test_the_leaderboard_has_the_best_estimate_first_and_the_unknown_last(played):
    board = ask(played, campaign_views.leaderboard)
    assert [(row["candidate"], row["estimate"], row["best"]) for row in board] == [
        ("b", 0.5, True),
        ("a", 0.4, False),
        ("c", None, False),
    ]
    assert [(row["scored"], row["unscored"]) for row in board] == [(3, 0), (1, 1), (0, 2)]
    assert [row["output_tokens"] for row in board] == [6, 4, 4]
    assert board[0]["lower"] == 0.2
    assert board[0]["upper"] == 0.8


def test_an_estimate_of_zero_ranks_above_none_at_all_and_below_the_positive(campaign):
    campaign.finish(campaign.plan(0, [0], [0]), [0.0], best=2, estimates=[None, 0.0, 0.1])
    assert [row["candidate"] for row in ask(campaign, campaign_views.leaderboard)] == ["c", "b", "a"]


def test_of_equal_estimates_that_of_the_leader_comes_first(campaign):
    campaign.finish(campaign.plan(0, [0], [0]), [0.0], best=2, estimates=[0.5, 0.75, 0.5])
    assert [row["candidate"] for row in ask(campaign, campaign_views.leaderboard)] == ["b", "c", "a"]


def test_a_campaign_without_a_round_has_a_leaderboard_that_knows_nothing(campaign):
    board = ask(campaign, campaign_views.leaderboard)
    assert [row["candidate"] for row in board] == ["a", "b", "c"]
    assert {(row["estimate"], row["best"], row["scored"], row["seconds"]) for row in board} == {
        (None, False, 0, 0.0)
    }


def test_coverage_counts_every_comparison_under_its_reason(played):
    assert [
        (row["candidate"], row["reason"], row["comparisons"]) for row in ask(played, campaign_views.coverage)
    ] == [
        ("a", None, 1),
        ("a", "no_answer", 1),
        ("b", None, 3),
        ("c", "no_answer", 2),
    ]


def test_coverage_counts_texts_that_hold_no_answer_and_texts_that_were_cut_off(campaign):
    for number, finish_reason in enumerate(("stop", "length")):
        round_ = campaign.plan(number, [0, 0, 1], [2 * number, 2 * number + 1, number])
        texts = campaign.texts(round_, finish_reason=finish_reason)
        rows = [
            NewComparison(
                position=position,
                candidate_a_id=campaign.candidate_ids[arm],
                example_id=campaign.example_ids[round_.examples[position]],
                generation_a_id=None if arm and number else texts[position],
                judge="exact",
                outcome=None if arm else 0.25 * (position + number),
                reason="failed" if arm else None,
                no_answer=position == 0,
            )
            for position, arm in enumerate(round_.arms)
        ]
        with campaign.database.writing() as session:
            outcome_records.add_outcomes(session, round_.id, rows, decision(), NOW)
    assert [
        (row["candidate"], row["reason"], row["comparisons"], row["no_answer"], row["truncated"])
        for row in ask(campaign, campaign_views.coverage)
    ] == [("a", None, 4, 2, 2), ("b", "failed", 2, 0, 0)]
    with campaign.database.reading() as session:
        (a, b) = session.scalars(select(CandidateStats).order_by(CandidateStats.candidate_id))
        assert (a.lowest, a.highest, a.texts, b.lowest, b.highest, b.texts) == (0.0, 0.5, 4, None, None, 1)


def test_a_duel_tells_its_candidates_apart_in_what_was_cut_off(database):
    duels = store_campaign(database, objective="best-duel")
    round_ = duels.plan(0, [[0, 1]], [0])
    (duel,) = duels.duels(round_, [(1.0, [])])
    with database.writing() as session:
        made = [generation("long", finish_reason="length"), generation("short")]
        texts = generation_records.add_generations(session, round_.id, made, NOW)
        duel = replace(duel, generation_a_id=texts["long"].id, generation_b_id=texts["short"].id)
        outcome_records.add_outcomes(session, round_.id, [duel], decision(), NOW)
    rows = ask(duels, campaign_views.coverage)
    assert [(row["candidate"], row["truncated"]) for row in rows] == [("a", 1), ("b", 0)]
    (row,) = ask(duels, duel_views.comparisons)
    assert (row["truncated"], row["truncated_b"]) == (True, False)


def test_what_could_not_be_generated_is_counted_and_is_not_spent(campaign):
    round_ = campaign.plan(0, [0, 1], [0, 0])
    rows = campaign.comparisons(round_, [1.0, None])
    rows[1] = replace(rows[1], generation_a_id=None, reason="load_failed")
    with campaign.database.writing() as session:
        outcome_records.add_outcomes(session, round_.id, rows, decision(), NOW)
        totals = campaign_views.totals(session, campaign.record.id)
        spent = costs.of_rounds(session, campaign.record.id)
    assert (totals["comparisons"], totals["answered"], totals["scored"]) == (2, 1, 1)
    assert spent.comparisons == 1
    assert [row["comparisons"] for row in ask(campaign, campaign_views.curve)] == [1]


def test_the_curve_adds_up_what_was_spent(played):
    assert ask(played, campaign_views.curve) == [
        {"round": 0, "comparisons": 3, "best": "a", "estimate": 1.0, "lower": 0.5, "upper": 1.0},
        {"round": 1, "comparisons": 7, "best": "b", "estimate": 0.5, "lower": 0.2, "upper": 0.8},
    ]


def test_the_curve_of_a_round_without_a_best_has_no_estimate(campaign):
    campaign.finish(campaign.plan(0, [0], [0]), [None])
    [row] = ask(campaign, campaign_views.curve)
    assert (row["best"], row["estimate"], row["lower"], row["upper"]) == (None, None, None, None)


def test_rounds_are_listed_in_order_and_the_planned_one_is_open(played):
    shown = ("round", "comparisons", "scored", "candidates", "best", "stop", "reason")
    assert [tuple(row[name] for name in shown) for row in ask(played, campaign_views.rounds)] == [
        (0, 3, 2, 3, "a", False, "running"),
        (1, 4, 2, 3, "b", True, "confident"),
        (2, None, None, None, None, None, None),
    ]


def test_comparisons_come_in_planned_order_with_text_and_verdict(played):
    rows = ask(played, campaign_views.comparisons)
    assert [(row["round"], row["position"]) for row in rows] == [
        (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3),
    ]  # fmt: skip
    assert (rows[3]["candidate"], rows[3]["example"], rows[3]["outcome"], rows[3]["text"]) == (
        "b",
        "e1",
        1.0,
        "text of letters-1-0",
    )
    assert (rows[2]["outcome"], rows[2]["reason"]) == (None, "no_answer")


def test_comparisons_can_be_limited_to_a_candidate_and_a_number(played):
    assert [row["example"] for row in ask(played, campaign_views.comparisons, candidate="b")] == [
        "e0",
        "e1",
        "e2",
    ]
    assert [row["example"] for row in ask(played, campaign_views.comparisons, candidate="b", limit=2)] == [
        "e0",
        "e1",
    ]
    assert ask(played, campaign_views.comparisons, candidate="nobody") == []


def test_totals_are_the_sums_over_all_rows(whole):
    rows = ask(whole, campaign_views.comparisons)
    made = {row["text"]: row for row in rows if row["text"] is not None}
    with whole.database.reading() as session:
        totals = campaign_views.totals(session, whole.record.id)
    assert totals["comparisons"] == len(rows) == 15
    assert totals["scored"] == sum(row["outcome"] is not None for row in rows)
    assert totals["rounds"] == len({row["round"] for row in rows})
    assert totals["generations"] == len(made)
    assert totals["input_tokens"] == sum(row["input_tokens"] for row in made.values())
    assert totals["output_tokens"] == sum(row["output_tokens"] for row in made.values())
    assert totals["engine_seconds"] == pytest.approx(sum(row["seconds"] for row in made.values()))
    assert totals["grid"] == totals["candidates"] * totals["examples"] == 3 * 5


def test_leaderboard_and_coverage_agree_with_the_comparisons(whole):
    rows = ask(whole, campaign_views.comparisons)
    reasons = Counter((row["candidate"], row["reason"]) for row in rows)
    covered = {
        (row["candidate"], row["reason"]): row["comparisons"] for row in ask(whole, campaign_views.coverage)
    }
    assert covered == reasons
    for row in ask(whole, campaign_views.leaderboard):
        own = [each for each in rows if each["candidate"] == row["candidate"]]
        assert row["scored"] + row["unscored"] == len(own)
        assert row["output_tokens"] == sum(each["output_tokens"] or 0 for each in own)


def test_totals_of_a_campaign_count_neither_planned_rounds_nor_other_campaigns(played):
    with played.database.reading() as session:
        totals = campaign_views.totals(session, played.record.id)
    assert {
        name: totals[name] for name in ("comparisons", "scored", "rounds", "generations", "output_tokens")
    } == {
        "comparisons": 7,
        "scored": 4,
        "rounds": 2,
        "generations": 7,
        "output_tokens": 14,
    }


class Readable(NamedTuple):
    campaign: StoredCampaign
    content: dict[str, list]
    folder: Path


@pytest.fixture
def readable(kept, backend, tmp_path):
    """What no statement may change, and a folder that none may write to."""
    campaign, before = kept(backend, played_with_content)
    file = campaign.database.url.removeprefix("sqlite:///")
    return Readable(campaign, before, tmp_path if campaign.database.is_postgresql else Path(file).parent)


def played_with_content(database):
    campaign = play(store_campaign(database))
    return campaign, content(campaign)


@pytest.fixture
def sql(readable):
    """Run statements of a user's, one after the other, on one read-only connection."""
    reader = open_database(readable.campaign.database.url, read_only=True)

    def run(*asked):
        with reader.reading() as session:
            for statement in asked:
                names, rows = statements.run_sql(session, statement)
                answer = names, list(rows)
            return answer

    yield run
    reader.close()


def content(campaign):
    """Every row of every table, and what else there is beside the tables."""
    with campaign.database.reading() as session:
        inspector = inspect(session.connection())
        names = sorted(inspector.get_table_names())
        return {name: session.execute(text(f'SELECT * FROM "{name}"')).all() for name in names}


def test_a_select_is_answered_with_names_and_rows(sql):
    names, rows = sql("SELECT name, position AS arm FROM candidates WHERE campaign_id = 1 ORDER BY position")
    assert (names, rows) == (["name", "arm"], [("a", 0), ("b", 1), ("c", 2)])


@pytest.mark.parametrize("literal", [":a", "12:30", "50%", "%s %(x)s", "a;b", r"C:\d", "?", "::"])
def test_text_in_a_statement_is_taken_as_it_stands(sql, literal):
    assert sql(f"SELECT '{literal}'")[1] == [(literal,)]


def on(backend, *cases):
    """Parameters of a test that asks one kind of database only what that kind understands."""
    return [(backend, *(case if isinstance(case, tuple) else (case,))) for case in cases]


@pytest.mark.parametrize(
    ("backend", "question"),
    [
        ("sqlite", "SELECT name FROM pragma_table_info('leases')"),
        ("sqlite", "PRAGMA table_info(leases)"),
        (
            "postgresql",
            "SELECT column_name AS name FROM information_schema.columns WHERE table_name = 'leases'",
        ),
    ],
    indirect=["backend"],
)
def test_the_schema_can_be_asked_for(sql, question):
    names, rows = sql(question)
    assert ("token" in {row[names.index("name")] for row in rows}) is True


ANYWHERE = [
    "INSERT INTO rounds (campaign_id, number, arms, examples, planned_at) VALUES (1, 9, '', '', '')",
    "DELETE FROM comparisons",
    "UPDATE comparisons SET outcome = 1 RETURNING id",
    "WITH x AS (SELECT 1) DELETE FROM comparisons",
    "DROP TABLE comparisons",
    "CREATE TABLE t (x INTEGER)",
    "CREATE TEMP TABLE t (x INTEGER)",
    "VACUUM",
    "SELECT 1; DELETE FROM comparisons",
    "SELECT load_extension('x')",
]
IN_SQLITE = [
    "ATTACH '{folder}/new.db' AS n",
    "ATTACH 'file:{folder}/new.db?mode=rwc' AS n",
    "VACUUM INTO '{folder}/new.db'",
    "PRAGMA query_only = OFF",
    "PRAGMA writable_schema = ON",
    "PRAGMA user_version = 7",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA wal_checkpoint(TRUNCATE)",
]
IN_POSTGRESQL = [
    "WITH gone AS (DELETE FROM comparisons RETURNING id) SELECT * FROM gone",
    "SELECT * INTO t FROM comparisons",
    "COPY comparisons TO '{folder}/new.csv'",
    "COPY (SELECT 1) TO PROGRAM 'cat > {folder}/new.csv'",
    "SET default_transaction_read_only = off",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "DO $$ BEGIN DELETE FROM comparisons; END $$",
    "SELECT set_config('transaction_read_only', 'off', false)",
    "SELECT nextval('rounds_id_seq')",
    "SELECT setval('rounds_id_seq', 1)",
    "SELECT query_to_xml('DELETE FROM comparisons RETURNING id', true, true, '')",
    "SELECT * FROM comparisons FOR UPDATE",
    "LOCK TABLE comparisons",
    "SELECT lo_create(0)",
    "PREPARE TRANSACTION 'x'",
    "ROLLBACK",
]


@pytest.mark.parametrize(
    ("backend", "statement"),
    on("sqlite", *ANYWHERE, *IN_SQLITE) + on("postgresql", *ANYWHERE, *IN_POSTGRESQL),
    indirect=["backend"],
)
def test_a_statement_that_would_write_is_refused(readable, sql, statement):
    files = sorted(readable.folder.iterdir())
    with pytest.raises(QueryRefused, match="the statement was refused: "):
        sql(statement.format(folder=readable.folder))
    assert content(readable.campaign) == readable.content
    assert sorted(readable.folder.iterdir()) == files


@pytest.mark.parametrize(
    ("backend", "opening"),
    on("sqlite", "COMMIT", "PRAGMA query_only(0)", "SELECT * FROM pragma_query_only")
    + on("postgresql", "COMMIT", "SELECT set_config('transaction_read_only', 'off', false)"),
    indirect=["backend"],
)
def test_no_statement_opens_the_door_for_a_later_one(readable, sql, opening):
    for asked in ([opening], [opening, "DELETE FROM comparisons"], ["COMMIT", "VACUUM"]):
        with pytest.raises(QueryRefused):
            sql(*asked)
    assert content(readable.campaign) == readable.content


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_settings_that_a_statement_may_change_do_not_let_the_next_one_write(readable, sql):
    lifted = "SELECT set_config('default_transaction_read_only', 'off', false)"
    written = "SELECT nextval('rounds_id_seq')"
    assert sql(lifted)[1] == [("off",)]
    for asked in ([written], [lifted, written]):
        with pytest.raises(QueryRefused, match="read-only transaction"):
            sql(*asked)
    assert content(readable.campaign) == readable.content


@pytest.mark.parametrize(
    ("backend", "statement", "complaint"),
    on(
        "sqlite",
        ("SELEC 1", 'near "SELEC": syntax error'),
        ("SELECT * FROM nowhere", "no such table: nowhere"),
        ("", "returns no rows; only SELECT"),
        ("-- only a comment", "returns no rows; only SELECT"),
        ("BEGIN", "cannot start a transaction"),
    )
    + on(
        "postgresql",
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT * FROM nowhere", 'relation "nowhere" does not exist'),
        ("", "syntax error at end of input"),
        ("-- only a comment", "syntax error at end of input"),
        ("BEGIN", 'syntax error at or near "BEGIN"'),
    ),
    indirect=["backend"],
)
def test_a_statement_that_cannot_run_is_refused_in_one_sentence(sql, statement, complaint):
    with pytest.raises(QueryRefused, match=complaint) as refused:
        sql(statement)
    assert "\n" not in str(refused.value)


def test_a_statement_that_fails_on_a_later_row_is_refused_too(sql):
    overflow = "CASE WHEN i = 2500 THEN abs(-9223372036854775807 - 1) ELSE i END"
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
    with pytest.raises(QueryRefused, match=r"integer overflow|bigint out of range"):
        sql(f"{numbers} SELECT {overflow} FROM n")


@pytest.mark.parametrize(
    ("statement", "remedy"),
    [
        ("SELECT * FROM leaderboard", "did you mean 'v_leaderboard'? views: v_campaigns, "),
        ("SELECT * FROM v_leaderbord", "did you mean 'v_leaderboard'?"),
        ("SELECT * FROM nothing_like_it", "; views: v_campaigns, "),
        ("SELECT canidate FROM v_leaderboard", "SELECT * FROM VIEW LIMIT 1 shows the columns"),
        ("DELETE FROM campaigns", "statements can only read: write one SELECT"),
        ("SELCT 1", "statements can only read: write one SELECT"),
    ],
)
def test_a_refused_statement_comes_with_a_remedy(sql, statement, remedy):
    with pytest.raises(QueryRefused) as refused:
        sql(statement)
    assert remedy in str(refused.value)
