"""Campaigns that route, for tests to read or to write to."""

import campaign_processes as processes
import pytest
import route_campaigns as route
from route_campaigns import write_route
from route_commands import done
from without_prefect import leave_prefect_out

from winnow.tasks.engines.known_providers import PROVIDERS


@pytest.fixture(scope="session")
def forks():
    return processes.fork_server()


@pytest.fixture(autouse=True)
def scripted_models(monkeypatch):
    for name, path in route.PROVIDERS.items():
        monkeypatch.setitem(PROVIDERS, name, path)


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A campaign that has spent its budget; to be read only."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        leave_prefect_out(patch)
        for name, path in route.PROVIDERS.items():
            patch.setitem(PROVIDERS, name, path)
        write_route(folder)
        done(folder, "run", "campaign.yaml")
    return folder


@pytest.fixture
def answered(tmp_path):
    """A campaign with a few rounds, to be written to."""
    write_route(tmp_path, stopping={"budget": 24})
    done(tmp_path, "run", "campaign.yaml")
    return tmp_path
