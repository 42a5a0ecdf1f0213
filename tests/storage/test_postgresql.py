"""What is particular to PostgreSQL: how it is reached, what it says when it is not, and who may not write."""

import datetime as dt
import os
import re
import signal
import socket
import threading
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from postgres_server import postgres_server
from sqlalchemy import event, text
from stored_campaigns import NOW, StoredCampaign, decision, store_campaign
from waiting import PATIENCE_S

from winnow.storage.admin.maintenance import table_sizes, vacuum
from winnow.storage.admin.schema import current_revision, ensure_schema, require_schema
from winnow.storage.engine import statements
from winnow.storage.engine.database import MORE_TIME, open_database
from winnow.storage.engine.raw_sql import run
from winnow.storage.engine.write_lock import LOCKED_BY_WRITERS
from winnow.storage.errors import (
    ConflictingRecord,
    NotPermitted,
    QueryRefused,
    StorageUnavailable,
    TookTooLong,
)
from winnow.storage.models import Base
from winnow.storage.queries import browse, campaign_views, unscored
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import generations as generation_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records import rounds as round_records

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def backend():
    return "postgresql"


def refusal(url):
    """What `require_schema` says of a place that cannot be opened."""
    database = open_database(url, read_only=True)
    with pytest.raises(StorageUnavailable) as refused:
        require_schema(database)
    database.close()
    return str(refused.value)


def test_a_plain_postgresql_url_is_opened_with_psycopg(database):
    plain = open_database(database.url.replace("postgresql+psycopg:", "postgresql:"), read_only=True)
    require_schema(plain)
    assert plain.engine.dialect.driver == "psycopg"
    plain.close()


def test_a_server_that_is_not_there_is_named_with_a_remedy(postgresql):
    said = refusal("postgresql://ann:secret@127.0.0.1:9/none")
    assert "postgresql://ann:***@127.0.0.1:9/none is unavailable: " in said
    assert "refused" in said
    assert "check that the path or server exists" in said
    assert "secret" not in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("query", "idle", "unanswered"), [("", 15, 30_000), ("?keepalives_idle=40", 40, 30_000)]
)
def test_a_server_that_falls_silent_is_given_up_within_half_a_minute(postgresql, query, idle, unanswered):
    database = open_database(postgresql.url() + query, read_only=True)
    with (
        database.engine.connect() as connection,
        socket.socket(fileno=_duplicate(connection)) as ours,
    ):
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
        asked = [ours.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names]
    database.close()
    assert asked == [idle, 5, 3, unanswered]


def _duplicate(connection):
    return os.dup(connection.connection.driver_connection.fileno())


@pytest.mark.parametrize("name", ["connect_timeout", "keepalives_idle"])
def test_a_patience_that_is_no_number_is_named(postgresql, name):
    said = refusal(f"{postgresql.url()}?{name}=soon")
    assert name in said.rpartition("unavailable: ")[2]
    assert "soon" in said


def test_a_database_that_is_not_there_is_named(postgresql):
    assert 'database "absent" does not exist' in refusal(postgresql.url("absent"))


@pytest.mark.parametrize(
    "where", ["locked:{}@127.0.0.1:{}/postgres", "127.0.0.1:{1}/postgres?user=locked&password={0}"]
)
def test_a_wrong_password_is_refused_and_shown_nowhere(postgresql, where):
    postgresql.execute("DROP ROLE IF EXISTS locked")
    postgresql.execute("CREATE ROLE locked LOGIN PASSWORD 'right'")
    said = refusal("postgresql+psycopg://" + where.format("s3cret", postgresql.port))
    assert 'password authentication failed for user "locked"' in said
    assert ":***@" in said or "password=hidden" in said
    assert "s3cret" not in said
    assert "\n" not in said


def test_a_database_whose_encoding_cannot_hold_every_text_is_refused(postgresql):
    postgresql.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1'")
    assert "its encoding LATIN1 cannot hold every text: create it with ENCODING 'UTF8'" in refusal(
        postgresql.url("latin")
    )


def test_percent_codes_of_hosts_and_databases_are_read_as_libpq_reads_them(postgresql):
    postgresql.execute("""CREATE DATABASE "a b/é" TEMPLATE template0 ENCODING 'UTF8'""")
    folder = quote(str(postgresql.folder), safe="")
    with closing(open_database(f"postgresql://postgres@{folder}:{postgresql.port}/a%20b%2F%C3%A9")) as opened:
        assert current_revision(opened) is None
        with opened.reading() as session:
            assert session.scalar(text("SELECT current_database()")) == "a b/é"


def test_the_roles_that_the_page_has_are_granted_what_they_need_and_no_more(postgresql):
    block = re.search(
        r"```sql\n(CREATE DATABASE.*?)```", (DOCS / "how-to" / "results.md").read_text(), re.DOTALL
    )
    create, *grants = [line.partition(";")[0] for line in block[1].splitlines()]
    for role in ("ann", "writers", "readers"):
        postgresql.execute(f"CREATE ROLE {role} LOGIN")
    postgresql.execute(create)
    owner, writer, reader = (postgresql.url("results", user) for user in ("ann", "writers", "readers"))
    with closing(open_database(owner)) as opened:
        ensure_schema(opened)
    for grant in grants:
        postgresql.execute(grant, "results")
    with closing(open_database(writer)) as opened:
        store_campaign(opened)
        with pytest.raises(NotPermitted):
            vacuum(opened)
    with closing(open_database(reader)) as opened:
        with opened.reading() as session:
            assert len(campaign_records.campaigns(session)) == 1
        with pytest.raises(NotPermitted), opened.writing() as session:
            session.execute(text("SELECT 1"))


def test_a_schema_that_is_not_there_is_told_with_its_remedy(postgresql):
    url = postgresql.new_database() + "?options=-csearch_path%3Dnowhere"
    with closing(open_database(url)) as opened, pytest.raises(StorageUnavailable) as refused:
        ensure_schema(opened)
    said = str(refused.value)
    assert "no schema has been selected to create in; its search_path names no existing schema" in said


@pytest.mark.parametrize("path", ["nowhere,public", '"$user",nowhere,public', "nowhere, public"])
def test_tables_are_not_made_in_another_schema_than_the_one_that_is_named_first(postgresql, path):
    url = postgresql.new_database()
    name = url.rpartition("/")[2]
    url += "?options=-csearch_path%3D" + quote(path.replace(" ", "\\ "))
    with closing(open_database(url)) as opened:
        with pytest.raises(StorageUnavailable) as refused:
            ensure_schema(opened)
        assert str(refused.value).endswith(
            "its search_path begins with the schema nowhere, which does not exist, so tables would be "
            "created in public; create it (CREATE SCHEMA nowhere), or correct the URL, then run the "
            "command again"
        )
        assert current_revision(opened) is None
        postgresql.execute("CREATE SCHEMA nowhere", name)
        ensure_schema(opened)
    made = "SELECT DISTINCT schemaname FROM pg_tables WHERE tablename = 'campaigns'"
    assert postgresql.execute(made, name) == [("nowhere",)]


@pytest.mark.parametrize("path", ["public,nowhere", '"$user",public', "PUBLIC"])
def test_what_follows_a_schema_that_is_there_may_be_missing(postgresql, path):
    url = postgresql.new_database() + "?options=-csearch_path%3D" + quote(path)
    with closing(open_database(url)) as opened:
        ensure_schema(opened)


def test_a_role_that_may_not_write_is_told_so_without_a_statement_of_ours(postgresql):
    url = postgresql.new_database()
    postgresql.execute("DROP ROLE IF EXISTS guest")
    postgresql.execute("CREATE ROLE guest LOGIN")
    guest = open_database(url.replace("postgres@", "guest@"))
    with closing(guest), pytest.raises(NotPermitted, match=r"^permission denied for schema public: the role"):
        ensure_schema(guest)


def test_a_schema_that_is_closed_to_a_role_is_not_told_to_be_empty(postgresql, database_url):
    name = database_url.rpartition("/")[2]
    postgresql.execute("DROP ROLE IF EXISTS passer")
    postgresql.execute("CREATE ROLE passer LOGIN")
    postgresql.execute("CREATE SCHEMA results", name)
    path = "?options=-csearch_path%3Dresults"
    with closing(open_database(database_url + path)) as owners:
        ensure_schema(owners)
    said = refusal(f"{postgresql.url(name, 'passer')}{path}")
    assert said.startswith("permission denied for schema results: the role of ")


def test_a_statement_whose_connection_is_cut_was_not_refused(postgresql, campaign):
    slow = "SELECT pg_sleep(0.2), pg_terminate_backend(pg_backend_pid())"
    readers = open_database(campaign.database.url, read_only=True)
    with (
        closing(readers),
        pytest.raises(StorageUnavailable, match=r"^the results database .* is unavailable: "),
        readers.reading() as session,
    ):
        list(statements.run_sql(session, slow)[1])


def test_a_server_that_takes_no_more_connections_is_told_with_the_remedy(postgresql, database_url):
    postgresql.execute("DROP ROLE IF EXISTS crowd")
    postgresql.execute("CREATE ROLE crowd LOGIN CONNECTION LIMIT 1")
    url = postgresql.url(database_url.rpartition("/")[2], "crowd")
    with psycopg.connect(url.replace("+psycopg", "")):
        assert 'too many connections for role "crowd"; close some, wait, or raise max_connections' in refusal(
            url
        )


def test_winnow_in_a_schema_of_its_own_leaves_another_programs_tables_alone(postgresql, database_url):
    name = database_url.rpartition("/")[2]
    for statement in (
        "CREATE TABLE alembic_version (version_num VARCHAR(32))",
        "INSERT INTO alembic_version VALUES ('d3e4f5a6b7c8')",
        "CREATE TABLE datasets AS SELECT generate_series(1, 20000) AS x",
        "CREATE SCHEMA results",
    ):
        postgresql.execute(statement, name)
    with closing(open_database(f"{database_url}?options=-csearch_path%3Dresults")) as ours:
        ensure_schema(ours)
        with psycopg.connect(database_url.replace("+psycopg", "")) as theirs:
            theirs.execute("LOCK TABLE datasets")  # they use it: it is not waited for
            vacuum(ours)
        with ours.reading() as session:
            [datasets] = [each for each in table_sizes(session) if each["table"] == "datasets"]
    assert datasets["rows"] == 0
    assert datasets["bytes"] < 100_000


def test_a_statement_that_its_role_lets_take_no_longer_is_told_with_the_remedy(postgresql, database):
    name = database.url.rpartition("/")[2]
    postgresql.execute(f"ALTER DATABASE {name} SET statement_timeout = '20ms'")
    hurried = open_database(database.url)
    with closing(hurried), pytest.raises(TookTooLong) as refused, hurried.reading() as session:
        session.execute(text("SELECT pg_sleep(60)"))
    assert str(refused.value).endswith(MORE_TIME)


def test_transactions_are_what_they_should_be_in_a_session_that_somebody_else_left(postgresql, database):
    """As PgBouncer gives it: each transaction any session, which was a reader's before."""
    with closing(open_database(database.url, read_only=True)) as reader, reader.reading() as session:
        assert session.scalar(text("SHOW default_transaction_read_only")) == "off"
    with closing(open_database(database.url)) as writer:

        @event.listens_for(writer.engine, "checkout")
        def leave_otherwise(connection, *_):
            connection.execute("SET default_transaction_read_only = on")
            connection.execute("SET default_transaction_isolation = serializable")

        with writer.writing() as session:
            assert session.scalar(text("SHOW transaction_isolation")) == "read committed"
            session.execute(text("UPDATE alembic_version SET version_num = version_num"))


def test_a_session_that_a_pooler_gives_has_the_settings_in_each_transaction(database):
    names = ("extra_float_digits", "lock_timeout", "idle_in_transaction_session_timeout", "TimeZone")
    asked = text("SELECT " + ", ".join(f"current_setting('{name}')" for name in names) + ", 1 / 3::float8")
    with closing(open_database(database.url)) as pooled:

        @event.listens_for(pooled.engine, "checkout")
        def leave_otherwise(connection, *_):
            connection.execute(
                "SET extra_float_digits = -12; SET lock_timeout = 0; SET TimeZone = 'Asia/Tokyo'"
            )
            connection.execute("SET idle_in_transaction_session_timeout = 0")

        for transaction in (pooled.reading, pooled.writing):
            with transaction() as session:
                assert session.execute(asked).one() == ("1", "30s", "1min", "UTC", 1 / 3)


def test_a_signal_that_ends_a_statement_in_the_middle_is_what_whoever_ran_it_hears_of(database):
    class Ended(BaseException):
        pass

    def end(*_):
        raise Ended

    before = signal.signal(signal.SIGUSR1, end)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    try:
        with pytest.raises(Ended), database.writing() as session:
            run(session.connection(), "SELECT pg_sleep(2)")
    finally:
        signal.signal(signal.SIGUSR1, before)
    with database.writing() as session:
        assert run(session.connection(), "SELECT 1") == [(1,)]


def test_numbers_and_times_are_read_as_stored_whatever_a_database_is_set_to(postgresql, database):
    name = database.url.rpartition("/")[2]
    for setting in ("extra_float_digits = -14", "DateStyle = German", "TimeZone = 'Pacific/Kiritimati'"):
        postgresql.execute(f"ALTER DATABASE {name} SET {setting}")
    told = open_database(database.url)
    with told.reading() as session:
        number, time = session.execute(text("SELECT 1 / 3::float8, timestamptz '2026-11-23 10:00+00'")).one()
    told.close()
    assert number == 1 / 3
    assert time == dt.datetime(2026, 11, 23, 10, tzinfo=dt.UTC)


def test_a_value_too_large_for_its_column_is_refused_in_one_sentence(campaign):
    with (
        pytest.raises(ConflictingRecord, match="out of range") as refused,
        campaign.database.writing() as session,
    ):
        session.execute(text("UPDATE campaigns SET objective = objective, dataset_id = 99999999999"))
    assert "\n" not in str(refused.value)


def test_readers_do_not_wait_for_a_writer_and_see_none_of_its_unfinished_round(campaign):
    round_ = campaign.plan(0, [0, 1], [0, 0])
    made = campaign.comparisons(round_, [1.0, None])
    reader = open_database(campaign.database.url, read_only=True)

    def seen(session):
        board = campaign_views.leaderboard(session, campaign.record.id)
        told = list(round_records.told_rounds(session, campaign.record.id))
        return sum(row["scored"] + row["unscored"] for row in board), len(told)

    with reader.reading() as before:
        assert seen(before) == (0, 0)
        with campaign.database.writing() as session:
            outcome_records.add_outcomes(session, round_.id, made, decision(), NOW)
            session.flush()
            with reader.reading() as during:
                assert seen(during) == (0, 0)
        assert seen(before) == (0, 0)
    with reader.reading() as after:
        assert seen(after) == (2, 1)
    reader.close()


def test_a_role_that_may_only_select_can_ask_and_reach_no_file(postgresql, campaign):
    name = campaign.database.url.rpartition("/")[2]
    postgresql.execute("DROP ROLE IF EXISTS reader")
    postgresql.execute("CREATE ROLE reader LOGIN IN ROLE pg_read_all_data")
    reader = open_database(postgresql.url(name, user="reader"), read_only=True)
    require_schema(reader)
    with reader.reading() as session:
        assert list(statements.run_sql(session, "SELECT name FROM campaigns")[1]) == [("letters",)]
    for reach in ("pg_read_file('/etc/passwd')", "lo_export(1, '/tmp/x')", "pg_ls_dir('/')"):
        with reader.reading() as session, pytest.raises(QueryRefused, match="permission denied"):
            statements.run_sql(session, f"SELECT {reach}")
    reader.close()
    writer = open_database(reader.url)
    remedy = "the role of .* lacks this privilege; use a role in the URL that has it$"
    refused = pytest.raises(NotPermitted, match=f"permission denied for table .*: {remedy}")
    with refused, writer.writing() as session:
        campaign_records.set_execution(session, campaign.record.id, {"budget": 1})
    with pytest.raises(NotPermitted, match=f"^no table would release its space: {remedy}"):
        vacuum(writer)
    writer.close()
    postgresql.execute("DROP ROLE reader")


def test_a_statement_cannot_lift_its_limit_of_time(campaign):
    lifts = "set_config('statement_timeout', '0', true)"
    sleeps = f"CASE WHEN i > 150 THEN pg_sleep({PATIENCE_S})::text END"
    asked = f"SELECT {lifts}, {sleeps} FROM generate_series(1, 200) i"
    with campaign.database.reading() as session, statements.give_up_after(session, 0.5):
        _, rows = statements.run_sql(session, asked)
        with pytest.raises(QueryRefused, match="canceling statement due to statement timeout"):
            list(rows)


@pytest.fixture
def stranger(postgresql, campaign):
    """A connection of another role to the campaign's database."""
    name = campaign.database.url.rpartition("/")[2]
    postgresql.execute("DROP ROLE IF EXISTS stranger")
    postgresql.execute("CREATE ROLE stranger LOGIN")
    url = postgresql.url(name, user="stranger").replace("+psycopg", "")
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection
        postgresql.execute(f"ALTER DATABASE {name} OWNER TO postgres")
        postgresql.execute("DROP OWNED BY stranger", name)
    postgresql.execute("DROP ROLE stranger")


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("operator =", "OPERATOR public.= (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = public.own)"),
        ("operator =", "OPERATOR public.= (LEFTARG = name, RIGHTARG = varchar, FUNCTION = public.other)"),
        ("operator =", "OPERATOR public.= (LEFTARG = oid, RIGHTARG = regtype, FUNCTION = public.raises)"),
        (
            "function substr",
            "FUNCTION public.substr(varchar, int, int) RETURNS text LANGUAGE sql AS 'SELECT $1::text'",
        ),
        ("function max", "AGGREGATE public.max(varchar) (SFUNC = public.state, STYPE = text)"),
    ],
)
def test_functions_of_other_roles_run_in_place_of_none_of_postgresqls(
    postgresql, campaign, stranger, kind, made
):
    name = campaign.database.url.rpartition("/")[2]
    postgresql.execute("GRANT CREATE ON SCHEMA public TO stranger", name)
    for types in ("own(varchar, varchar)", "other(name, varchar)"):
        stranger.execute(f"CREATE FUNCTION public.{types} RETURNS bool LANGUAGE sql AS 'SELECT true'")
    stranger.execute(
        "CREATE FUNCTION public.state(text, varchar) RETURNS text LANGUAGE sql AS 'SELECT $1::text'"
    )
    stranger.execute(
        "CREATE FUNCTION public.raises(oid, regtype) RETURNS bool LANGUAGE plpgsql "
        "AS 'BEGIN RAISE ''ran as %'', current_user; END'"
    )
    postgresql.execute("REVOKE CREATE ON SCHEMA public FROM stranger", name)
    require_opened(campaign.database.url)
    postgresql.execute("GRANT CREATE ON SCHEMA public TO stranger", name)
    stranger.execute(f"CREATE {made}")
    said = refusal(campaign.database.url)
    assert f"the {kind} of the role stranger is in its search_path" in said
    require_opened(postgresql.url(name, user="stranger"))  # its own


@pytest.mark.parametrize("granted_to", ["stranger", "PUBLIC", "team"])
def test_no_other_role_can_create_functions_while_a_connection_is_open(
    postgresql, campaign, stranger, granted_to
):
    name = campaign.database.url.rpartition("/")[2]
    postgresql.execute("DROP ROLE IF EXISTS team")
    postgresql.execute("CREATE ROLE team ROLE stranger")
    require_opened(campaign.database.url)
    postgresql.execute(f"GRANT CREATE ON SCHEMA public TO {granted_to}", name)
    said = refusal(campaign.database.url)
    assert re.search(r"the role \w+ can create functions in the schema public of its search_path", said)
    assert "REVOKE CREATE ON SCHEMA public FROM PUBLIC, " in said
    postgresql.execute("ALTER TABLE alembic_version OWNER TO stranger", name)
    postgresql.execute(f"REVOKE CREATE ON SCHEMA public FROM {granted_to}", name)
    postgresql.execute("GRANT CREATE ON SCHEMA public TO stranger", name)
    require_opened(campaign.database.url)  # whose owner attaches what it likes to its tables
    postgresql.execute("DROP ROLE team")


def test_a_schema_of_another_role_is_in_no_search_path(postgresql, campaign, stranger):
    postgresql.execute(
        "CREATE SCHEMA theirs AUTHORIZATION stranger", campaign.database.url.rpartition("/")[2]
    )
    said = refusal(f"{campaign.database.url}?options=-csearch_path%3Dpublic,theirs")
    assert "the role stranger can create functions in the schema theirs of its search_path" in said


def test_the_owner_of_the_database_may_create(postgresql, campaign, stranger):
    postgresql.execute(f"ALTER DATABASE {campaign.database.url.rpartition('/')[2]} OWNER TO stranger")
    require_opened(campaign.database.url)


def require_opened(url):
    """Whether a role may read is not asked here."""
    database = open_database(url, read_only=True)
    with suppress(NotPermitted):
        require_schema(database)
    database.close()


@contextmanager
def killed_within_a_transaction(server, database):
    with database.writing() as session:
        session.execute(text("SELECT 1"))
        server.kill()
        yield session


def test_a_server_killed_within_a_round_is_reported_and_the_round_is_stored_after_it_is_back():
    with postgres_server(fsync="on") as server:
        database = open_database(server.new_database())
        ensure_schema(database)
        campaign = store_campaign(database)
        round_ = campaign.plan(0, [0, 1], [0, 0])
        campaign.texts(round_)
        with (
            pytest.raises(StorageUnavailable, match="run the command again") as lost,
            killed_within_a_transaction(server, database) as session,
        ):
            campaign_records.set_execution(session, campaign.record.id, {"budget": 1})
        assert "\n" not in str(lost.value)
        server.start()
        with database.reading() as session:
            assert round_records.unfinished_round(session, campaign.record.id) == round_
            assert campaign_records.get_campaign(session, "letters").execution == {"budget": 100}
            assert len(generation_records.texts_by_key(session, ["letters-0-0", "letters-0-1"])) == 2
        campaign.finish(round_, [1.0, 0.0])
        with database.reading() as session:
            assert [told.outcomes for told in round_records.told_rounds(session, campaign.record.id)] == [
                [1.0, 0.0]
            ]
        database.close()


def test_the_lock_of_a_writer_that_is_gone_is_free_again(campaign):
    gone = campaign.database.engine.connect().execution_options(winnow_writes=True)
    gone.exec_driver_sql("SELECT 1")
    pid = gone.connection.dbapi_connection.info.backend_pid
    with campaign.database.reading() as session:
        session.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
    campaign.plan(0, [0], [0])
    gone.invalidate()
    gone.close()


MODES = ["ROW SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE",
         "ACCESS EXCLUSIVE"]  # fmt: skip


def test_a_role_that_may_only_select_cannot_keep_a_writer_from_writing(postgresql, campaign, monkeypatch):
    monkeypatch.setattr("winnow.storage.engine.database.BUSY_TIMEOUT_MS", 500)
    name = campaign.database.url.rpartition("/")[2]
    postgresql.execute("CREATE ROLE stranger LOGIN IN ROLE pg_read_all_data")
    writer = open_database(campaign.database.url)
    address = {"host": "127.0.0.1", "port": postgresql.port, "user": "stranger", "dbname": name}
    with psycopg.connect(**address, autocommit=True) as stranger:
        for mode in MODES:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                stranger.execute(f"BEGIN; LOCK TABLE {LOCKED_BY_WRITERS} IN {mode} MODE")
            stranger.execute("ROLLBACK")
        for strength in ("UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                stranger.execute(f"BEGIN; SELECT * FROM {LOCKED_BY_WRITERS} FOR {strength}")
            stranger.execute("ROLLBACK")
        stranger.execute("BEGIN")
        for table in (*Base.metadata.tables, LOCKED_BY_WRITERS):
            stranger.execute(f"LOCK TABLE {table} IN ACCESS SHARE MODE")
        advisory = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'"
        with writer.writing() as session:
            assert session.scalar(text(advisory)) == 0, "every role may hold an advisory lock"
        campaign_of_writer = StoredCampaign(
            database=writer,
            record=campaign.record,
            candidate_ids=campaign.candidate_ids,
            example_ids=campaign.example_ids,
        )
        campaign_of_writer.finish(campaign_of_writer.plan(0, [0], [0]), [1.0])
    writer.close()
    postgresql.execute("DROP ROLE stranger")


def test_a_search_whose_connection_breaks_is_not_said_to_have_taken_too_long(postgresql, campaign):
    def search():
        with campaign.database.reading() as session:
            pid = session.scalar(text("SELECT pg_backend_pid()"))
            postgresql.execute(f"SELECT pg_terminate_backend({pid})")
            browse.choices(session, campaign.record.id)

    with pytest.raises(StorageUnavailable, match="is unavailable: "):
        search()


def test_rows_that_nobody_needs_are_not_kept_for_the_rest_of_a_transaction(campaign):
    campaign.finish(campaign.plan(0, [0, 1, 2], [0, 0, 0]), [1.0, None, None])
    with campaign.database.writing() as session:
        found = unscored.latest(session, campaign.record.id, "no_answer")
        assert found == [(campaign.candidate_ids[2], None), (campaign.candidate_ids[1], None)]
        assert session.scalars(text("SELECT statement FROM pg_cursors")).all() == []
