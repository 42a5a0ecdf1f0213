"""Which process of the suite runs which files, and when.

The suite is short where its work is spread evenly over the processors and what is dear is started once. A
file is run by one process, and so are files that share vLLM's imports, a fork server or a Prefect server,
which take two to ten seconds of a processor each. What takes longest begins first: idle processors
would else wait for it at the end.
"""

from collections.abc import Generator, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

SHARED = {
    "vllm_imports": "vllm",
    "from ray_clusters": "prefect",
    "faults.staging": "prefect",
    "scored_campaigns": "scored",
    "forks": "forks",
    "fork_server()": "forks",
    "prefect_api": "prefect",
}
"""What a file that has this word in it shares with others: the first that is found.

A company takes a tenth to a quarter of the suite: all of them in one process would outlast all the rest.
Files that need a Prefect server are two companies for that reason, each with a server of its own, and those
that need forks are three; a fork server is forked from what was imported already.
"""

SLOWEST = (
    "test_accessible_pages",
    "test_isolated_judges",
    "test_litellm_engine",
    "test_report_browser",
    "test_confidence_statistical",
    "test_dashboard",
    "test_sql_answers",
    "test_selector_contract",
    "test_code_sandbox",
    "test_pulse",
    "test_cpu_families",
    "test_demo_preparation",
    "test_similarity",
    "test_lm_eval_tasks",
)
"""Files of half a minute and more that share nothing."""


def shares(items: Sequence[pytest.Item]) -> list[list[int]]:
    """What one process runs at once, in the order in which they begin: the files of a company."""
    companies: dict[str, list[int]] = {}
    for position, item in enumerate(items):
        companies.setdefault(_company(item), []).append(position)
    return list(companies.values())


def single_tests(items: Sequence[pytest.Item]) -> list[list[int]]:
    """Each test by itself, where each takes long."""
    return [[position] for position in range(len(items))]


class IdleServers:
    """Ends the Prefect server of a process behind the last file of the company that shares it.

    Idle, it takes a fiftieth of a processor. It begins anew for a later test that asks for it.
    """

    def __init__(self) -> None:
        self._running: list[tuple[pytest.FixtureDef[object], pytest.FixtureRequest]] = []

    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> None:
        if fixturedef.argname == "prefect_api":
            self._running = [(fixturedef, request)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        torn_down = yield
        if self._running and nextitem and _company(item) != _company(nextitem):
            fixture, request = self._running.pop()
            fixture.finish(request)
        return torn_down


def _company(item: pytest.Item) -> str:
    return company_of(item.path.relative_to(ROOT).as_posix())


@cache
def company_of(file: str) -> str:
    """What a file shares with others; its own path where that is nothing."""
    text = (ROOT / file).read_text()
    return next((company for word, company in SHARED.items() if word in text), file)


def place_of(path: Path) -> int:
    """Which files begin before which: companies, then the slowest ones, then all others."""
    if not company_of(path.relative_to(ROOT).as_posix()).endswith(".py"):
        return -1
    return SLOWEST.index(path.stem) if path.stem in SLOWEST else len(SLOWEST)
