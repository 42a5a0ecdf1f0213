"""Serve a schedule from this terminal by Prefect's runner; on Ctrl-C, a campaign finishes its round."""

import asyncio
import shlex
import signal
import sys
from contextlib import suppress
from functools import partial

import httpx
import psutil
from prefect.runner import Runner
from prefect.runner import runner as prefect_runner
from prefect.runner._starter_engine import EngineCommandStarter

from winnow.flows.prefect_support.client import pause_deployment
from winnow.flows.prefect_support.server import ENGINE
from winnow.flows.run.signals import hold_back_from_children
from winnow.flows.schedule.deployments import Scheduled, deployment_of

POLL_S = 5.0
"""Seconds between two checks for due runs; runs that are due sooner are prepared in advance."""

LOOK_S = 0.2
"""Seconds between two checks of whether a stopping campaign has ended."""


def serve(scheduled: Scheduled) -> None:
    """Serve a schedule until Ctrl-C; the first lets a campaign finish its round, the second stops at once."""
    try:
        asyncio.run(_serve(scheduled))
    except asyncio.CancelledError:
        return


async def _serve(scheduled: Scheduled) -> None:
    starter = partial(EngineCommandStarter, command=shlex.join(ENGINE))
    vars(prefect_runner)["EngineCommandStarter"] = starter
    # One run at a time, because two campaigns would compete for the same devices.
    runner = Runner(name=scheduled.name, limit=1, query_seconds=POLL_S, pause_on_shutdown=False)
    deployment = await runner.aadd_deployment(deployment_of(scheduled))
    serving = asyncio.create_task(runner.start())
    stopping, loop = _Stopping(serving), asyncio.get_running_loop()
    # At its start, Prefect sets a handler for SIGTERM, which ends in a traceback; replace it.
    runner.handle_sigterm = stopping.forward_stop  # type: ignore[method-assign]
    loop.add_signal_handler(signal.SIGINT, stopping.request_stop)
    loop.add_signal_handler(signal.SIGTERM, stopping.forward_stop)  # until Prefect's start
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, stopping.forward_stop)
    hold_back_from_children()
    try:
        await serving
    finally:  # Prefect does not pause the deployment if it is stopped while the runner starts
        with suppress(httpx.HTTPError):
            await pause_deployment(deployment)


class _Stopping:
    """Signal handlers of a serving task; a terminal also sends Ctrl-C to the running campaign itself."""

    def __init__(self, serving: "asyncio.Task[None]") -> None:
        self._serving = serving
        self._others = set(psutil.Process().children())  # such as a temporary server
        self._waiting: asyncio.Task[None] | None = None

    def request_stop(self) -> None:
        """Handle Ctrl-C: stop after the running campaign's round, or at once at the second request."""
        if self._waiting is None:
            self._waiting = asyncio.create_task(self._stop())
        else:
            self._serving.cancel()

    def forward_stop(self, *_: object) -> None:
        """Handle SIGTERM and SIGHUP, which the campaign does not receive: send it SIGINT, and stop, too."""
        for process in self._running():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGINT)
        self._serving.get_loop().call_soon_threadsafe(self.request_stop)

    def _running(self) -> set[psutil.Process]:
        return set(psutil.Process().children()) - self._others

    async def _stop(self) -> None:
        running = self._running()
        if running:
            print("stopping when the running campaign has finished its round", file=sys.stderr)
        while any(process.is_running() for process in running):
            await asyncio.sleep(LOOK_S)
        self._serving.cancel()
