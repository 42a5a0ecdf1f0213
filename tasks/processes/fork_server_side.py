"""Process that has imported the modules that workers need, and forks workers on request.

    python -P -m winnow.tasks.processes.fork_server_side MODULE DESCRIPTOR PARENT

The module has `preload`, which only imports, and `main`, which a worker runs. Each byte on the socket
DESCRIPTOR brings three descriptors: the worker's socket, its log, and a report socket. On the report socket
this process receives {"environment", "forced", "folder"}; the worker sends {"pid"} when it leads a session;
and when it has ended, this process sends {"code"}.

A worker runs as a new process instead if forking is unsafe: if a thread or a device of this process would not
survive it, or if the worker needs another environment than that of the imports.

This process starts no thread. A timer checks whether the parent runs, also during imports.
"""

import gc
import os
import re
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Collection, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from winnow.storage.json_types import JsonView
from winnow.tasks.plugins.library_settings import settle_libraries
from winnow.tasks.processes.channel import Channel
from winnow.tasks.processes.child_process import module_command
from winnow.tasks.processes.worker_side import PARENT_PERIOD, work

REQUEST_SECONDS = 60.0
"""Maximum seconds until an announced request has arrived in full."""

QUIET = {"OPENBLAS_NUM_THREADS": "1", "HUMMING_DISABLE_PARALLEL_BUILD": "1"}
"""Variables set during imports. Without them, OpenBLAS would start computing threads, and Humming, which vLLM
installs for GPUs, would start compilers and threads that wait for them. Engines do not inherit these
variables."""

SPARED = re.compile(r"jemalloc_bg_thd|cuda[0-9a-f]{11}")
"""Names of threads that a forked process may lose: pyarrow's memory thread, which restarts by itself, and
NVML's, which vLLM uses to find GPUs at import and opens again each time. CUDA itself has other threads."""

IMMATERIAL = ("PREFECT_", "PYTEST_")
"""Name prefixes of variables that no import of a worker reads."""


class ForkServer:
    """Fork workers of a module until the parent closes the connection.

    Args:
        module: The module that workers run, already imported.
        control: The socket from which requests come.
        environment: The environment in which the module was imported.
    """

    def __init__(self, module: str, control: socket.socket, environment: Mapping[str, str]) -> None:
        self._module = module
        self._control = control
        self._environment = environment
        self._workers: dict[int, Channel] = {}
        self._ended, self._wakes = socket.socketpair()
        for each in (self._ended, self._wakes):
            each.setblocking(False)

    def serve(self) -> None:
        """Answer requests, and report exits of workers, until the parent closes the connection."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakes.fileno(), warn_on_full_buffer=False)
        events = select.poll()
        for each in (self._control, self._ended):
            events.register(each, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in events.poll()}
            if self._ended.fileno() in ready:
                with suppress(BlockingIOError):
                    self._ended.recv(4096)
                self._report_exits()
            if self._control.fileno() in ready and not self._serve_one():
                return

    def end_workers(self) -> None:
        """Kill all workers and their children."""
        for pid in self._workers:
            _kill(pid)

    def _serve_one(self) -> bool:
        """Answer one request; return False if the parent has closed the connection."""
        sent, descriptors, *_ = socket.recv_fds(self._control, 1, 3)
        if not sent:
            return False
        link, log, report = descriptors
        said = Channel(socket.socket(fileno=report))
        try:
            request = said.receive(REQUEST_SECONDS)
            why = self._obstacle(request)
            sys.stdout.flush()
            if (pid := os.fork()) == 0:
                self._be_worker(link, log, said, request, why)
            self._workers[pid] = said
        except (EOFError, OSError, ValueError):
            traceback.print_exc()
            said.close()
        finally:
            os.close(link)
            os.close(log)
        return True

    def _obstacle(self, request: JsonView) -> str | None:
        """Reason why this process cannot fork a worker now; None if forking is safe."""
        if threads := _threads():
            return f"imports left threads ({', '.join(threads)}), which a fork would lose"
        if _device_is_open():
            return "imports opened a device, which a fork cannot use"
        changed = differing(self._environment, request["environment"], request["forced"])
        return f"imports were made with other values of {', '.join(changed)}" if changed else None

    def _be_worker(self, link: int, log: int, said: Channel, request: JsonView, why: str | None) -> NoReturn:
        server = os.getppid()
        try:
            os.setsid()
            _forget_signals()
            for stream in (1, 2):
                os.dup2(log, stream)
            os.close(log)
            for socket_ in (self._control, self._ended, self._wakes):
                socket_.close()
            for other in self._workers.values():
                other.close()
            os.chdir(request["folder"])
            said.send({"pid": os.getpid()})
            said.close()
            environment = request["environment"]
            if why is None and _fork_broke_device():
                why = "imports used devices, which a fork cannot use"
            if why is not None:
                _start_fresh(why, module_command(self._module, link, server), link, environment)
            os.environ.clear()
            os.environ.update(environment)
            work(import_module(self._module).main, link, server)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)

    def _report_exits(self) -> None:
        for pid, said in list(self._workers.items()):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            _kill(pid)  # ends its children, while its id cannot belong to another process
            _, status = os.waitpid(pid, 0)
            del self._workers[pid]
            with suppress(OSError):
                said.send({"code": os.waitstatus_to_exitcode(status)})
            said.close()


def differing(ours: Mapping[str, str], theirs: Mapping[str, str], forced: Collection[str]) -> list[str]:
    """Names of variables for which a worker needs its own imports, sorted.

    Args:
        ours: The environment of the imports.
        theirs: The environment of the worker.
        forced: Variables of the worker that no import reads.
    """
    names = {name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)}
    return sorted(name for name in names - {*forced} if not name.startswith(IMMATERIAL))


def _threads() -> list[str]:
    """Names of other threads that a fork would lose, except those in `SPARED`."""
    by_number = {each.native_id: each.name for each in threading.enumerate()}
    unnamed = _thread_name(os.getpid())
    names = []
    for number in {int(each) for each in os.listdir("/proc/self/task")} - {os.getpid()}:
        with suppress(FileNotFoundError):  # the thread has ended meanwhile
            name = _thread_name(number)
            names.append(by_number.get(number, name) if name == unnamed else name)
    return sorted(name for name in names if not SPARED.fullmatch(name))


def _thread_name(number: int) -> str:
    """The system's name of a thread; an unnamed thread has the name of the first thread."""
    return Path(f"/proc/self/task/{number}/comm").read_text().strip()


def _device_is_open() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized()


def _fork_broke_device() -> bool:
    """Whether this forked process cannot use a device because its parent counted or opened one."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda._is_in_bad_fork()


def _start_fresh(why: str, command: list[str], link: int, environment: Mapping[str, str]) -> NoReturn:
    print(f"started as a new process without the prepared imports: {why}", flush=True)
    os.set_inheritable(link, True)
    os.execve(command[0], command, environment)


def _forget_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGALRM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


def _kill(pid: int) -> None:
    for end in (os.killpg, os.kill):  # the latter, while it leads no group
        with suppress(ProcessLookupError):
            end(pid, signal.SIGKILL)


def main() -> None:
    """Import the module, then serve; end with the parent."""
    module, descriptor, parent = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    servers: list[ForkServer] = []

    def look(*_: object) -> None:
        if os.getppid() != parent:
            for each in servers:
                each.end_workers()
            os._exit(1)

    environment = dict(os.environ)
    os.environ.update(QUIET)
    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, PARENT_PERIOD, PARENT_PERIOD)
    settle_libraries()
    import_module(module).preload()
    gc.collect()
    gc.freeze()  # so that garbage collection in a worker copies no shared pages
    servers.append(ForkServer(module, socket.socket(fileno=descriptor), environment))
    try:
        servers[0].serve()
    finally:
        servers[0].end_workers()


if __name__ == "__main__":
    main()
