"""Before anything imports torch: tiny models are slower with several threads, which wait for each other."""

import atexit
import gc
import os
import secrets
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import certifi
import pytest
from distribution import IdleServers, place_of
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
# As `winnow` has it: a fork server that began without it does not serve the commands of this process.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Every client of HTTP reads all certificates of the world, for 25 ms, and none of those of tests speaks TLS.
CERTIFICATES = Path(tempfile.mkdtemp()) / "one.pem"
CERTIFICATES.write_text("".join(certifi.contents().partition("-----END CERTIFICATE-----")[:2]))
os.environ["SSL_CERT_FILE"] = str(CERTIFICATES)
atexit.register(shutil.rmtree, CERTIFICATES.parent)

# What the one Prefect server of the session asks for; processes that are older than it have it too.
os.environ["PREFECT_API_AUTH_STRING"] = f"winnow:{secrets.token_urlsafe(32)}"

# Thousands of databases are written and never read again: in memory, none of them is waited for.
MEMORY, ROOM = Path("/dev/shm"), 8 * 2**30
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# A shell that starts the suite in the background has it ignore these, and so would all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

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

# Collecting tests makes millions of objects that live until the end, which the collector of garbage would go
# through again and again. Where bytecode is not kept, every run and worker would rewrite all assertions anew.
WRITES_NO_BYTECODE, sys.dont_write_bytecode = sys.dont_write_bytecode, False
gc.disable()


def pytest_collection_finish() -> None:
    """Let no later collection of garbage go through what was collected here, until the interpreter ends."""
    sys.dont_write_bytecode = WRITES_NO_BYTECODE
    gc.freeze()
    atexit.register(gc.unfreeze)
    gc.set_threshold(20_000, 20, 20)  # libraries that tests import make as many objects again
    gc.enable()


SLOW_FOLDERS = ("tests/flows/", "tests/fuzz/", "tests/infra/", "tests/tasks/engines/")
"""Folders whose tests run campaigns, servers, browsers or engines, build, train, or try hostile inputs."""

SLOW_FILES = frozenset(
    [
        "test_answer_situations",
        "test_new_examples",
        "test_bradley_terry_intervals",
        "test_campaigns",
        "test_certify",
        "test_certify_losses",
        "test_champion",
        "test_champion_additions",
        "test_champion_constraints",
        "test_champion_constraints_exact",
        "test_champion_differences",
        "test_champion_exact",
        "test_champion_groups",
        "test_champion_groups_exact",
        "test_champion_literal",
        "test_champion_stopping",
        "test_champion_top_m",
        "test_check_texts",
        "test_code_judge",
        "test_code_sandbox",
        "test_confidence",
        "test_copying",
        "test_count_evidence",
        "test_cpu_families",
        "test_datasets",
        "test_disk_full",
        "test_duel_baselines",
        "test_e_values",
        "test_embedding",
        "test_every_draw",
        "test_extras",
        "test_forecast",
        "test_gate_exact",
        "test_golden_verdicts",
        "test_groups",
        "test_half_mixture",
        "test_holdout",
        "test_hostile_outputs",
        "test_identity",
        "test_inspect_tasks",
        "test_isolated_judges",
        "test_judges_without_probabilities",
        "test_library_judges",
        "test_liveness",
        "test_llm_po_bt",
        "test_lm_eval_tasks",
        "test_mean_interval",
        "test_meeting_servers",
        "test_migrations",
        "test_next_step",
        "test_one_step",
        "test_plugin_failures",
        "test_plugins_in_campaigns",
        "test_postgresql",
        "test_prediction_powered",
        "test_pruned_texts",
        "test_pruning",
        "test_pulls",
        "test_pulse",
        "test_reasoning_campaigns",
        "test_records",
        "test_reuse",
        "test_rounds_ahead",
        "test_rounds_ahead_exact",
        "test_route_advantage",
        "test_route_simulation",
        "test_route_tuning",
        "test_router",
        "test_samples",
        "test_selector_contract",
        "test_similarity",
        "test_simulation",
        "test_spec_file",
        "test_standings",
        "test_structured_allocation",
        "test_sandboxed_templates",
        "test_unstructured_allocation",
        "test_verdicts",
    ]
)
"""Files that take a second of a processor or more each, without engines or servers."""

SLOW_FIXTURES = {"postgresql", "prefect_api"}
SLOW_MARKERS = ("statistical", "vllm")


def pytest_configure(config: pytest.Config) -> None:
    """Have servers end behind the last file that shares them."""
    config.pluginmanager.register(IdleServers())  # fixtures of the session are made known to plug-ins alone


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what `make check` leaves out."""
    if config.option.markexpr != "not slow":
        return None
    place = collection_path.relative_to(config.rootpath).as_posix()
    return place.startswith(SLOW_FOLDERS) or collection_path.stem in SLOW_FILES or None


@pytest.hookimpl(tryfirst=True)  # before marks choose
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make check` leaves out, and have the slowest files begin first."""
    for item in items:
        if is_slow(item):
            item.add_marker("slow")
    items.sort(key=lambda item: place_of(item.path))


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object | None:
    """Give files that share something dear to one process."""
    from distribution import Companies

    return Companies(config, log) if config.option.dist == "loadfile" else None


def is_slow(item: pytest.Item) -> bool:
    """Whether a test is one of statistics, or starts or asks an engine, a server or a process."""
    given = getattr(item, "callspec", None)
    return (
        item.nodeid.startswith(SLOW_FOLDERS)
        or item.path.stem in SLOW_FILES
        or any(item.get_closest_marker(name) for name in SLOW_MARKERS)
        or not SLOW_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))
        or (
            given is not None
            and any(value == "postgresql" for value in given.params.values() if type(value) is str)
        )
    )


@pytest.fixture(scope="session", autouse=True)
def _own_configuration(tmp_path_factory):
    """What tests allow, and the state of their folders, are not kept with who runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("configuration")))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def _databases_are_closed():
    """From Python 3.13 on, connections to SQLite that nobody closes are warned of."""
    yield
    if stored := sys.modules.get("stored_campaigns"):
        stored.close_opened()


@pytest.fixture(scope="session")
def vllm_imports(tmp_path_factory):
    """One process that imports vLLM for all engines of the session."""
    from winnow.tasks.engines.vllm import WORKER, WORKER_ENVIRONMENT
    from winnow.tasks.processes.fork_server import forking

    log = tmp_path_factory.mktemp("imports") / "server.log"
    with forking(WORKER, log=log, environment=WORKER_ENVIRONMENT, at_once=True):
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
    from winnow.storage.admin.schema import ensure_schema
    from winnow.storage.engine.database import open_database

    url = postgresql.new_database()
    database = open_database(url)
    ensure_schema(database)
    database.close()
    return url.rpartition("/")[2]
