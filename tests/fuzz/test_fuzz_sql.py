# ruff: noqa: E501 -- lists of odd values
"""Statements of users, on a database that is only read."""

import pytest
from cases import NASTY_TEXT, kept, settles
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries
from stored_campaigns import new_database, store_campaign

from winnow.flows.reports.sql_answers import unpack
from winnow.flows.reports.sql_child import pack
from winnow.storage.engine.database import open_database
from winnow.storage.engine.statements import bound_cells, give_up_after, run_sql


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    path = tmp_path_factory.mktemp("sql") / "results.db"
    database = new_database(path)
    campaign = store_campaign(database)
    campaign.finish(campaign.plan(0, [0, 1, 2], [0, 0, 1]), [1.0, 0.0, None], best=0)
    database.close()
    yield f"sqlite:///{path}"
    with open_database(f"sqlite:///{path}", read_only=True).reading() as session:
        _, rows = run_sql(session, "SELECT name FROM campaigns")
        assert list(rows) == [("letters",)]


def case(url, statement):
    """Run it, and read its rows as the process that answers does."""

    def answered():
        database = open_database(url, read_only=True)
        try:
            with database.reading() as session:
                bound_cells(session, 1 << 20)
                with give_up_after(session, 1.0):
                    columns, rows = run_sql(session, statement)
                    for _, row in zip(range(50), rows, strict=False):
                        assert len(row) == len(columns)
                        assert all(repr(unpack(pack(value))) == repr(value) for value in row)
        finally:
            database.close()

    settles(answered)


@pytest.mark.parametrize("path", kept("sql"), ids=lambda path: path.name)
def test_statements_that_are_kept_settle(url, path):
    case(url, path.read_bytes().decode("utf-8", "surrogateescape"))


TABLES = st.sampled_from(
    [
        "campaigns",
        "comparisons",
        "v_campaigns",
        "sqlite_master",
        "generations",
        "nope",
        "pragma_table_info('campaigns')",
    ]
)
VALUES = st.deferred(
    lambda: st.sampled_from(["1", "0", "-1", "1e999", "9223372036854775807", "NULL", "'x'", "x'00ff'", "*", "id", "name", ":a", "?", "@b", "'%'"])
    | st.builds("({} {} {})".format, VALUES, st.sampled_from(["+", "/", "%", "||", "LIKE", "GLOB", "->>", "<<", "IN"]), VALUES)
    | st.builds("{}({})".format, st.sampled_from([
        "abs", "zeroblob", "randomblob", "hex", "printf", "load_extension", "json", "json_extract", "char", "replace", "group_concat",
        "readfile", "writefile", "edit", "total", "max", "quote", "unicode", "regexp", "substr", "date",
    ]), st.lists(VALUES, max_size=3).map(", ".join))
    | st.builds("(SELECT {} FROM {})".format, VALUES, TABLES)
)  # fmt: skip
STATEMENTS = st.one_of(
    st.builds("SELECT {} FROM {} WHERE {}".format, VALUES, TABLES, VALUES),
    st.builds("WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT {} FROM r) SELECT {} FROM r".format, VALUES, VALUES),
    st.builds("SELECT {} FROM {} a, {} b, {} c ORDER BY {}".format, VALUES, TABLES, TABLES, TABLES, VALUES),
    st.builds("{} {}".format, st.sampled_from([
        "DELETE FROM", "DROP TABLE", "INSERT INTO", "ATTACH 'x.db' AS", "PRAGMA", "VACUUM INTO", "EXPLAIN", "CREATE TABLE", "BEGIN;", "COMMIT;",
        "ALTER TABLE", "REINDEX", "DETACH", "UPDATE", "ANALYZE", "SELECT 1;",
    ]), TABLES | VALUES),
    NASTY_TEXT,
)  # fmt: skip


@tries(15)
@given(STATEMENTS)
def test_whatever_statement_settles(url, statement):
    case(url, statement)
