import pytest
from stored_campaigns import new_database, store_campaign


@pytest.fixture
def database(tmp_path):
    """A new database with all tables and no rows."""
    database = new_database(tmp_path / "results.db")
    yield database
    database.close()


@pytest.fixture
def campaign(database):
    """A campaign of three candidates and five examples, with no round yet."""
    return store_campaign(database)
