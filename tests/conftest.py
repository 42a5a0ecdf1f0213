"""Before anything imports torch: tiny models are slower with several threads, which wait for each other."""

import os

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def postgresql():
    """One PostgreSQL server for all tests of the session."""
    from postgres_server import postgres_server

    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgresql_template(postgresql):
    """The name of a database there that has all tables and no rows."""
    from storage.database import open_database
    from storage.schema import ensure_schema

    url = postgresql.new_database()
    database = open_database(url)
    ensure_schema(database)
    database.close()
    return url.rpartition("/")[2]
