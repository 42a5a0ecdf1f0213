import pytest
from stored_campaigns import new_database, store_campaign

from storage.database import open_database

BOTH = ["sqlite", "postgresql"]


@pytest.fixture
def database_url(backend, tmp_path, request):
    """The URL of a database without any table."""
    if backend == "sqlite":
        yield f"sqlite:///{tmp_path / 'results.db'}"
        return
    server = request.getfixturevalue("postgresql")
    url = server.new_database()
    yield url
    server.drop_database(url)


@pytest.fixture(params=BOTH)
def backend(request):
    """The database that a test runs on: each test of storage runs on both."""
    return request.param


@pytest.fixture
def database(backend, tmp_path, request):
    """A new database with all tables and no rows."""
    if backend == "sqlite":
        database = new_database(tmp_path / "results.db")
        yield database
        database.close()
        return
    server = request.getfixturevalue("postgresql")
    url = server.new_database(request.getfixturevalue("postgresql_template"))
    database = open_database(url)
    yield database
    database.close()
    server.drop_database(url)


@pytest.fixture
def campaign(database):
    """A campaign of three candidates and five examples, with no round yet."""
    return store_campaign(database)
