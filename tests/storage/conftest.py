from contextlib import ExitStack
from functools import cache

import pytest
from both_databases import BOTH, fresh_database
from stored_campaigns import store_campaign


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
    with fresh_database(backend, tmp_path, request) as database:
        yield database


@pytest.fixture(scope="module")
def kept(tmp_path_factory, request):
    """What a function makes of a database of either kind, once for all tests of a file: they only read it."""
    with ExitStack() as databases:

        @cache
        def filled(backend, fill):
            folder = tmp_path_factory.mktemp("kept")
            return fill(databases.enter_context(fresh_database(backend, folder, request)))

        yield filled


@pytest.fixture
def campaign(database):
    """A campaign of three candidates and five examples, with no round yet."""
    return store_campaign(database)
