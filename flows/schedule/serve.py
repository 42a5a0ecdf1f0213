"""A schedule served from this terminal by Prefect's `serve`, which finishes a round before it ends."""

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
"""Seconds between two checks for due runs; runs due sooner are prepared in advance."""

LOOK_S = 0.2
"""Seconds between two checks of whether a stopping campaign has ended."""


def serve(scheduled: Scheduled) -> None:
    """Serve until Ctrl-C: the first one lets a campaign finish its round, the second stops at once."""
    try:
        asyncio.run(_serve(scheduled))
    except asyncio.CancelledError:
        return


async def _serve(scheduled: Scheduled) -> None:
    starter = partial(EngineCommandStarter, command=shlex.join(ENGINE))
    vars(prefect_runner)["EngineCommandStarter"] = starter
    # One at a time: two campaigns would fight for the same devices.
    runner = Runner(name=scheduled.name, limit=1, query_seconds=POLL_S, pause_on_shutdown=False)
    deployment = await runner.aadd_deployment(deployment_of(scheduled))
    serving = asyncio.create_task(runner.start())
    stopping, loop = _Stopping(serving), asyncio.get_running_loop()
    # Prefect takes SIGTERM for itself when it begins, and ends in a traceback.
    runner.handle_sigterm = stopping.told  # type: ignore[method-assign]
    loop.add_signal_handler(signal.SIGINT, stopping.asked)
    loop.add_signal_handler(signal.SIGTERM, stopping.told)  # until then
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, stopping.told)
    hold_back_from_children()
    try:
        await serving
    finally:  # Prefect would leave it as it is where it is stopped while the runner begins
        with suppress(httpx.HTTPError):
            await pause_deployment(deployment)


class _Stopping:
    """Signal handling of a serving task; a terminal sends Ctrl-C to the running campaign as well."""

    def __init__(self, serving: "asyncio.Task[None]") -> None:
        self._serving = serving
        self._others = set(psutil.Process().children())  # such as a server that was started for us
        self._waiting: asyncio.Task[None] | None = None

    def asked(self) -> None:
        """Stop after the running campaign's round, or at once on the second request, for Ctrl-C."""
        if self._waiting is None:
            self._waiting = asyncio.create_task(self._stop())
        else:
            self._serving.cancel()

    def told(self, *_: object) -> None:
        """Stop as on Ctrl-C, and forward it to the campaign; SIGTERM and SIGHUP reach only this process."""
        for process in self._running():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGINT)
        self._serving.get_loop().call_soon_threadsafe(self.asked)

    def _running(self) -> set[psutil.Process]:
        return set(psutil.Process().children()) - self._others

    async def _stop(self) -> None:
        running = self._running()
        if running:
            print("stopping when the running campaign has finished its round", file=sys.stderr)
        while any(process.is_running() for process in running):
            await asyncio.sleep(LOOK_S)
        self._serving.cancel()
