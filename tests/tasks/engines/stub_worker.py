"""A worker without a model, for tests of `WorkerProcess`: it does what each message says.

What its imports do where a fork server makes them, the variable STUB_IMPORTS says.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

from winnow.tasks.processes.worker_side import ParentLink, run_worker


def preload() -> None:
    print("imported", flush=True)
    match os.environ.get("STUB_IMPORTS", "").split(":"):
        case ["fail"]:
            raise ValueError("no such library")
        case ["hang"]:
            time.sleep(600)
        case ["thread", name]:
            threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
            thread = max(int(each) for each in os.listdir("/proc/self/task"))
            Path(f"/proc/self/task/{thread}/comm").write_text(name)
        case ["waits", name]:
            threading.Thread(target=time.sleep, args=(600,), daemon=True, name=name).start()
        case ["compiles"] if os.environ.get("HUMMING_DISABLE_PARALLEL_BUILD") != "1":
            threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        case ["device"]:
            sys.modules["torch"] = torch(is_initialized=True)
        case ["count"]:
            sys.modules["torch"] = torch(_is_in_bad_fork=True)


def torch(**answers: bool) -> SimpleNamespace:
    """As much of PyTorch as a fork server asks."""
    answers = {"is_initialized": False, "_is_in_bad_fork": False, **answers}
    return SimpleNamespace(cuda=SimpleNamespace(**{key: lambda it=it: it for key, it in answers.items()}))


def main(parent: ParentLink) -> None:
    while "close" not in (message := parent.receive()):
        if "print" in message:
            print(message["print"])
        if "ignore" in message:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if "fail" in message:
            raise ValueError(message["fail"])
        if "child" in message:
            # It inherits the socket, and would keep it open on its own.
            child = subprocess.Popen(["sleep", "60"], close_fds=False)
            message = {"pid": child.pid}
        if "look" in message:
            message = {
                "parent": os.getppid(),
                "folder": str(Path.cwd()),
                "variable": os.environ.get(message["look"]),
                "descriptors": len(os.listdir("/proc/self/fd")),
            }
        time.sleep(message.get("sleep", 0.0))
        if "signal" in message:
            os.kill(os.getpid(), message["signal"])
        parent.send(message)


if __name__ == "__main__":
    run_worker(main)
