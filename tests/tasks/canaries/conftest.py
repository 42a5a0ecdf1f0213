import pytest
from both_databases import BOTH, fresh_database
from served_campaigns import write_data

from tasks.engines import server_calls


@pytest.fixture(params=BOTH)
def database(request, tmp_path, monkeypatch):
    """A new database of either kind, with the data of `served_campaigns` in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(server_calls, "FIRST_DELAY", 0.001)
    write_data(tmp_path)
    with fresh_database(request.param, tmp_path, request) as database:
        yield database
