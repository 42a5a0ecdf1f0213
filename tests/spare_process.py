"""A process that was forked before any test ran, and becomes the fork server of this one once it needs one.

`multiprocessing` starts its fork server as a new interpreter, which would import torch, transformers and
Prefect for ten seconds of a processor. A process of the suite has them from the one that collected the tests,
and so has what it forks; later, when tests have left threads and settings behind, it could not be forked.
"""

import os
import pickle
import socket
import traceback
from collections.abc import Iterable, Sequence
from multiprocessing import forkserver, resource_tracker, util
from multiprocessing.connection import Connection
from typing import NoReturn

import pytest

STREAMS = (1, 2)
"""Descriptors that a new process would share with this one."""

UNUSED = 512
"""Descriptors from here on are nobody's."""


class SpareProcess:
    """A fork of this process, which waits until it is told what to run."""

    def __init__(self, not_its_own: Iterable[Connection]) -> None:
        self._ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            for each in (self._ours, *not_its_own):
                each.close()
            _become(theirs)
        theirs.close()

    def spawn(self, path: bytes, arguments: Sequence[object], descriptors: Sequence[int]) -> int:
        """Have it be the fork server, with its listening socket and the pipe that ends it; its number.

        In the place of `multiprocessing.util.spawnv_passfds`.
        """
        modules = forkserver._forkserver._preload_modules
        told = {"modules": modules, "environment": dict(os.environ), "folder": os.getcwd()}
        socket.send_fds(self._ours, [pickle.dumps(told)], [*STREAMS, *descriptors])
        self._ours.close()
        return self.pid


spare: list[SpareProcess] = []
"""That of this process, until it is used."""


def keep_one(not_its_own: Iterable[Connection] = ()) -> None:
    """Fork a process for later, without these connections."""
    spare.append(SpareProcess(not_its_own))


def begin_fork_server() -> None:
    """Begin the fork server of this process, unless it runs; what it preloads has been said."""
    resource_tracker.ensure_running()  # is started in the same way, and first
    with pytest.MonkeyPatch.context() as patch:
        if spare and forkserver._forkserver._forkserver_pid is None:
            patch.setattr(util, "spawnv_passfds", spare.pop().spawn)
        forkserver.ensure_running()


def _become(link: socket.socket) -> NoReturn:
    code = 1
    try:
        message, descriptors, *_ = socket.recv_fds(link, 2**20, len(STREAMS) + 2)
        link.close()
        if message:  # none comes from a process that ended without the need of one
            _serve(pickle.loads(message), descriptors)
        code = 0
    except (SystemExit, KeyboardInterrupt):
        code = 0  # as a fork server ends once nobody needs it
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _serve(told: dict[str, object], descriptors: Sequence[int]) -> None:
    """Be a fork server.

    Its descriptors get numbers that nothing has had here: what is left of the tests' process may close those.
    """
    for descriptor, stream in zip(descriptors, STREAMS, strict=False):
        os.dup2(descriptor, stream)
    listening, alive = (
        os.dup2(each, UNUSED + each, inheritable=False) for each in descriptors[len(STREAMS) :]
    )
    for each in descriptors:
        os.close(each)
    os.environ.clear()
    os.environ.update(told["environment"])
    os.chdir(told["folder"])
    forkserver.main(listening, alive, told["modules"])
