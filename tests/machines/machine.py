"""A machine that can die: namespaces of its own for processes, network, shared memory and its name.

What runs in it sees no process of another machine and reaches it over the network alone. Files are shared, as
on machines that mount the same folders. This needs Linux, root, and the commands ip, unshare and nsenter.
"""

import os
import signal
import subprocess
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psutil

BRIDGE = "winnow0"
NETWORK = "10.77.0"
GATEWAY = f"{NETWORK}.1"
"""The address of this machine in the network of the simulated ones."""

BOOT = """
hostname "$1" && mount -t tmpfs tmpfs /dev/shm && mkdir -p /tmp/ray && mount -t tmpfs tmpfs /tmp/ray &&
ip link set lo up && echo up && exec sleep infinity
"""
_numbers = count()

SPACES = ("net", "uts", "ipc", "pid", "mount")


class Machine:
    """One that runs until it is switched off.

    Args:
        name: Of the host.
        number: The last part of its address, 2 to 254.
    """

    def __init__(self, name: str, number: int) -> None:
        self.name, self.address = name, f"{NETWORK}.{number}"
        self._cable = f"{BRIDGE}-{next(_numbers)}"  # the system takes its time to remove those before
        spaces = [f"--{space}" for space in SPACES]
        boot = ["sh", "-c", BOOT, "boot", name]
        self._power = subprocess.Popen(
            ["unshare", *spaces, "--fork", "--kill-child", "--mount-proc", *boot],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._power.stdout is not None
        if self._power.stdout.readline() != b"up\n":
            raise SystemExit("a simulated machine does not start: this needs root, ip, unshare and nsenter")
        [first] = psutil.Process(self._power.pid).children()
        self._init = first.pid
        self._plug_in()

    def start(self, *command: str, environment: Mapping[str, str], folder: Path) -> subprocess.Popen[str]:
        """A process in this machine; what it prints goes to NAME.log in the folder."""
        inside = self._inside(f"--wd={folder.absolute()}", *command)
        with (folder / f"{self.name}.log").open("a") as log:
            return subprocess.Popen(inside, env=environment, stdout=log, stderr=log, text=True)

    def processes(self, title: str) -> Iterator[psutil.Process]:
        """Those of this machine whose command line begins so, as this one sees them."""
        here = os.readlink(f"/proc/{self._init}/ns/pid")
        for process in psutil.process_iter():
            try:
                is_here = os.readlink(f"/proc/{process.pid}/ns/pid") == here
                if is_here and " ".join(process.cmdline()).startswith(title):
                    yield process
            except (psutil.Error, OSError):
                continue

    def switch_off(self) -> None:
        """Cut the network, then end every process at once: nobody is told."""
        if self._power.poll() is None:
            _ip("link", "set", self._cable, "down")
            os.kill(self._init, signal.SIGKILL)
            self._power.wait()

    def _inside(self, *command: str) -> Sequence[str]:
        return ["nsenter", f"--target={self._init}", *(f"--{space}" for space in SPACES), *command]

    def _plug_in(self) -> None:
        _ip("link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", str(self._init))
        _ip("link", "set", self._cable, "master", BRIDGE, "up")
        for command in (["addr", "add", f"{self.address}/24", "dev", "eth0"], ["link", "set", "eth0", "up"]):
            subprocess.run(self._inside("ip", *command), check=True)


@contextmanager
def network() -> Generator[None, None, None]:
    """A network for machines, in which this one is `GATEWAY`, until the block ends."""
    _ip("link", "add", BRIDGE, "type", "bridge")
    try:
        _ip("addr", "add", f"{GATEWAY}/24", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        yield
    finally:
        _ip("link", "del", BRIDGE)


@contextmanager
def machines(*names: str) -> Generator[list[Machine], None, None]:
    """Machines in the network, until the block ends."""
    started: list[Machine] = []
    try:
        for number, name in enumerate(names, start=11):
            started.append(Machine(name, number))
        yield started
    finally:
        for each in started:
            each.switch_off()


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"ip {' '.join(words)} failed: {done.stderr.strip()}; this needs root and iproute2")
