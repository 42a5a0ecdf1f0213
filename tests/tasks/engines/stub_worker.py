"""A worker without a model, for tests of `WorkerProcess`: it does what each message says."""

import os
import signal
import subprocess
import time

from winnow.tasks.engines.subprocess.worker_side import ParentLink, run_worker


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
        time.sleep(message.get("sleep", 0.0))
        if "signal" in message:
            os.kill(os.getpid(), message["signal"])
        parent.send(message)


if __name__ == "__main__":
    run_worker(main)
