import pytest
from both_databases import fresh_database
from served_campaigns import write_data

from winnow.tasks.engines.openai import server_calls


@pytest.fixture
def database(request, tmp_path, monkeypatch):
    """A new database, with the data of `served_campaigns` in the working directory; see `ON_BOTH`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(server_calls, "FIRST_DELAY", 0.001)
    write_data(tmp_path)
    with fresh_database(getattr(request, "param", "sqlite"), tmp_path, request) as database:
        yield database
