"""Child's side of a `WorkerProcess`: messages from its parent, and ending with its parent."""

import os
import queue
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NoReturn

from winnow.storage.json_types import JsonObject
from winnow.tasks.plugins.library_settings import settle_libraries
from winnow.tasks.processes.channel import Channel

PARENT_PERIOD = 1.0  # seconds between checks whether the parent runs


class ParentLink:
    """Connection to the parent process.

    A thread reads continuously. If the other side closes the connection or the parent has ended, the thread
    ends this process and its children immediately.

    Args:
        descriptor: Number of the inherited socket.
        parent: Process id of the parent: the process that started the worker, or its fork server, which ends
            with that process.
    """

    def __init__(self, descriptor: int, parent: int) -> None:
        self._channel = Channel(socket.socket(fileno=descriptor))
        self._inbox: queue.Queue[JsonObject] = queue.Queue()
        threading.Thread(target=self._listen, args=(parent,), daemon=True).start()

    def receive(self) -> JsonObject:
        """Wait for the next message."""
        return self._inbox.get()

    def receive_now(self) -> JsonObject | None:
        """The next message; None if no message has arrived."""
        with suppress(queue.Empty):
            return self._inbox.get_nowait()
        return None

    def send(self, message: Mapping[str, object]) -> None:
        """Send one message."""
        self._channel.send(message)

    def _listen(self, parent: int) -> None:
        # PR_SET_PDEATHSIG would follow the starting thread, which may end before its process.
        # A closed socket is not enough: a process forked by the parent may keep its end open.
        while os.getppid() == parent:
            try:
                self._inbox.put(self._channel.receive(PARENT_PERIOD))
            except TimeoutError:
                continue
            except EOFError:
                break
        _end_with_children()


WorkerMain = Callable[[ParentLink], None]


def run_worker(main: WorkerMain) -> NoReturn:
    """Run `main` with the link named on the command line, then end the process.

    A traceback goes to the log.
    """
    settle_libraries()
    work(main, int(sys.argv[1]), int(sys.argv[2]))


def work(main: WorkerMain, descriptor: int, parent: int) -> NoReturn:
    """Run `main` with a `ParentLink` for this descriptor and parent, then end the process.

    A traceback goes to the log.
    """
    status = 1
    try:
        main(ParentLink(descriptor, parent))
        status = 0
    except BaseException:
        traceback.print_exc()
    # An ordinary exit would wait for threads that a library has left behind.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _end_with_children() -> NoReturn:
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
