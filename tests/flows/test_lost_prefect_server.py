"""A Prefect server that is lost on the way ends a run in a sentence, whatever its client raises."""

import httpx
import pytest

from winnow.flows.run import flow as campaign
from winnow.flows.run.resume import run_flow
from winnow.flows.run.signals import Interrupts
from winnow.tasks.errors import WinnowError


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("[Errno 111] Connection refused"),
        httpx.ReadTimeout("timed out"),
        httpx.HTTPStatusError(
            "503 Service Unavailable",
            request=httpx.Request("POST", "http://localhost"),
            response=httpx.Response(503),
        ),
    ],
    ids=["refused", "late", "overloaded"],
)
def test_a_lost_server_is_named_with_the_remedy(monkeypatch, error):
    def run_campaign(storage, name):
        raise error

    monkeypatch.setattr(campaign, "run_campaign", run_campaign)
    with pytest.raises(WinnowError, match=r"Prefect's server does not answer any more .* nothing .* is lost"):
        run_flow("sqlite:///winnow.db", "survivor", Interrupts())
