"""Which process of pytest-xdist runs which files, and when.

The suite is short where its work is spread evenly over the processors and what is dear is started once. A
file is run by one process, and so are files that share vLLM's imports, a fork server or a Prefect server,
each of which takes ten seconds of a processor or more. What takes longest begins first: idle processors
would else wait for it at the end.
"""

from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

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

Each company takes a sixth to a quarter of the suite: all of them in one process would outlast all the rest.
Files that need forks are two companies for the same reason, though each has a fork server then.
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


class Companies(LoadFileScheduling):
    """Gives the files of a company to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return company_of(nodeid.partition("::")[0])


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
