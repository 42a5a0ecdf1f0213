"""A fresh database of either kind, for tests that hold for both."""

from contextlib import contextmanager

from stored_campaigns import new_database

from winnow.storage.engine.database import open_database

BOTH = ["sqlite", "postgresql"]


@contextmanager
def fresh_database(backend, tmp_path, request):
    """A database with all tables and no rows; a PostgreSQL server is started once per session."""
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
