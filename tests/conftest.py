"""Before anything imports torch: tiny models are slower with several threads, which wait for each other."""

import os

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")

# A busy machine is no fault of the code (no deadline), and the suite tries the same examples every time: what
# `make fuzz` finds beyond them becomes an example of its own test. tests/property_settings.py has the rest.
settings.register_profile(
    "suite",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "fuzz",
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "1000")),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")


@pytest.fixture(scope="session", autouse=True)
def _own_configuration(tmp_path_factory):
    """What tests allow is not remembered as allowed by who runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("configuration")))
        yield


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
