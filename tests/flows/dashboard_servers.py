"""`winnow view` in a process of its own, as a user starts it."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from free_ports import free_port
from waiting import PATIENCE_S


@contextmanager
def serving(
    storage: str, *options: str, browser: bool = False
) -> Generator[tuple[subprocess.Popen[str], str], None, None]:
    """The process, which leads a group of its own as a terminal's does, and the URL that it printed."""
    # Another test's server may start in the same moment and look for a free port as well.
    where = ["--storage", storage, "--port", str(free_port())]
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "winnow.flows.main",
            "view",
            *where,
            *([] if browser else ["--no-browser"]),
            *options,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said = server.stdout.readline()
        assert said.startswith("serving http://"), server.communicate()[1]
        yield server, said.removeprefix("serving ").partition(";")[0]
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGINT)
            server.communicate(timeout=PATIENCE_S)


def chromium():
    """The path of a browser."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.fail("these tests need a browser, and there is none here: apt-get install chromium")
