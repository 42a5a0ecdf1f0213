"""Results in PostgreSQL are upgraded to what the same results in a SQLite file become."""

import datetime as dt
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import JSON, Boolean, DateTime, MetaData, func, null, select

from storage import campaign_records, maintenance, views
from storage.copying import content, set_sequences
from storage.database import open_database
from storage.migrations.settings import alembic_config
from storage.models import Base
from storage.schema import HEAD, REVISIONS, upgrade

ASSETS = Path(__file__).parent / "assets"
SINCE_POSTGRESQL = REVISIONS[3:]


@pytest.fixture
def backend():
    return "postgresql"


@pytest.fixture
def pair(tmp_path, database_url, revision):
    """A file of a revision with a campaign that was really run, and a PostgreSQL database with its rows."""
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as stored:
        stored.executescript((ASSETS / f"revision_{revision}.sql").read_text(encoding="utf-8"))
        with (
            closing(open_database(f"sqlite:///{path}")) as sqlite,
            closing(open_database(database_url)) as postgresql,
        ):
            command.upgrade(alembic_config(postgresql), revision)
            copy_rows(stored, postgresql)
            yield sqlite, postgresql


def copy_rows(stored, postgresql):
    """All rows as they are, for a schema that the models no longer describe."""
    schema = MetaData()
    with postgresql.writing() as session:
        schema.reflect(session.connection())
        for table in schema.sorted_tables:
            if table.name == "alembic_version":
                continue
            cursor = stored.execute(f"SELECT * FROM {table.name}")
            names = [column for column, *_ in cursor.description]
            assert set(names) == set(table.columns.keys())
            rows = [
                {
                    name: converted(table.columns[name].type, value)
                    for name, value in zip(names, row, strict=True)
                }
                for row in cursor
            ]
            for row in rows:
                session.execute(table.insert().values(row))


def converted(kind, value):
    """A value of SQLite, which keeps these kinds as numbers and texts, as PostgreSQL takes it."""
    if value is None:
        return null()
    if isinstance(kind, JSON):
        return json.loads(value)
    if isinstance(kind, DateTime):
        return dt.datetime.fromisoformat(value).replace(tzinfo=dt.UTC)
    return bool(value) if isinstance(kind, Boolean) else value


TEXTS = """
    SELECT g.id, g.key, g.round_id, g.model, g.text, g.finish_reason, g.seconds, p.digest, p.text AS prompt
    FROM generations g JOIN prompts p ON p.id = g.prompt_id ORDER BY g.id
"""
"""Of prompts, which one revision numbers in any order, only what they say is the same."""


def contents(database):
    with database.reading() as session:
        names = [
            table for table in Base.metadata.sorted_tables if table.name not in ("prompts", "generations")
        ]
        found = {table.name: content(session, table) for table in names}
        texts = list(views.run_sql(session, TEXTS)[1])
        prompts = session.scalar(select(func.count()).select_from(Base.metadata.tables["prompts"]))
        assert prompts == len({digest for *_, digest, _ in texts})
        return {**found, "texts": texts}


@pytest.mark.parametrize("revision", SINCE_POSTGRESQL)
def test_results_in_postgresql_are_upgraded_to_what_those_in_a_file_become(pair, revision):
    sqlite, postgresql = pair
    assert upgrade(sqlite) == upgrade(postgresql) == (revision, HEAD)
    assert contents(postgresql) == contents(sqlite)
    with postgresql.writing() as session:
        set_sequences(session)
        campaign = campaign_records.get_campaign(session, "letters")
        assert maintenance.problems(session) == []
        assert [row["candidate"] for row in views.leaderboard(session, campaign.id) if row["best"]] == [
            "small/asked/warm"
        ]
        campaign_records.set_execution(session, campaign.id, {"budget": 1})
