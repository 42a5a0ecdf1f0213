import io
import os
import signal
import sys
from subprocess import PIPE

import psutil
import pytest
from waiting import PATIENCE_S, eventually

from winnow.tasks.processes.child_process import (
    MOST_SHOWN_BYTES,
    end_process,
    last_lines,
    running_process,
    start_process,
)

PARENT = (
    "import subprocess, sys\n"
    "child = subprocess.Popen(['sleep', '600'])\n"
    "print(child.pid, flush=True)\n"
    "sys.stdin.read() if sys.argv[1] == 'waits' else None\n"
)

DEAF = (
    "import signal, sys\n"
    "signal.signal(signal.SIGTERM, {handler})\n"
    "print('ready', flush=True)\n"
    "while True:\n"
    "    signal.pause()\n"
)


def gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def python(code, *arguments):
    return [sys.executable, "-c", code, *arguments]


def test_a_child_leads_a_session_and_has_the_descriptors_variables_and_folder_that_are_named(tmp_path):
    code = (
        "import os, sys\n"
        "for number in map(int, sys.argv[1:]):\n"
        "    try: os.fstat(number); print('open')\n"
        "    except OSError: print('closed')\n"
        "print(os.getsid(0) == os.getpid(), os.environ.get('A'), 'HOME' in os.environ, os.getcwd())\n"
        "print(repr(sys.stdin.read()))\n"
    )
    named, other = os.pipe()
    os.set_inheritable(other, True)
    process = start_process(
        python(code, str(named), str(other)),
        stdout=PIPE,
        environment={"A": "1"},
        descriptors=[named],
        folder=str(tmp_path),
    )
    said = process.stdout.read().decode().splitlines()
    end_process(process)
    os.close(named)
    os.close(other)
    assert said == ["open", "closed", f"True 1 False {tmp_path}", "''"]
    assert process.stdout.closed


@pytest.mark.parametrize("state", ["waits", "has ended"])
@pytest.mark.parametrize("patience", [0.0, PATIENCE_S])
def test_a_child_is_ended_with_what_it_started(state, patience):
    process = start_process(python(PARENT, state), stdin=PIPE, stdout=PIPE)
    child = int(process.stdout.readline())
    if state == "has ended":
        process.wait(PATIENCE_S)
    assert not gone(child)
    end_process(process, patience)
    assert process.returncode is not None
    assert eventually(lambda: gone(child))
    end_process(process, patience)  # which may be repeated


@pytest.mark.parametrize(
    ("handler", "patience", "code"),
    [
        ("lambda *_: sys.exit(7)", PATIENCE_S, 7),
        ("signal.SIG_IGN", 0.2, -signal.SIGKILL),
        ("lambda *_: sys.exit(7)", 0.0, -signal.SIGKILL),
    ],
    ids=["ends by itself", "is deaf", "is given no time"],
)
def test_a_child_has_so_many_seconds_before_it_is_killed(handler, patience, code):
    process = start_process(python(DEAF.format(handler=handler)), stdout=PIPE)
    assert process.stdout.readline() == b"ready\n"
    end_process(process, patience)
    assert process.returncode == code


def test_a_child_ends_with_its_block_however_that_ends():
    with pytest.raises(KeyboardInterrupt), running_process(["sleep", "600"]) as process:
        raise KeyboardInterrupt
    assert process.returncode == -signal.SIGKILL


def test_what_was_not_read_by_a_child_that_has_ended_is_dropped():
    process = start_process(["true"], stdin=PIPE)
    process.wait(PATIENCE_S)
    process.stdin.write(b"x")
    end_process(process)
    assert process.stdin.closed


def test_a_program_that_is_not_there_is_an_os_error(tmp_path):
    with (
        pytest.raises(OSError, match="no-such-program"),
        running_process([str(tmp_path / "no-such-program")]),
    ):
        pass


def test_of_a_long_output_the_last_lines_are_read_alone():
    class Counting(io.BytesIO):
        count = 0

        def read(self, size=-1):
            found = super().read(size)
            self.count += len(found)
            return found

    output = Counting(b"before\n" + b"x" * 10 * MOST_SHOWN_BYTES + b"\n\nlast but \xff one\n \nlast\n")
    assert last_lines(output, 2) == ["last but � one", "last"]
    assert output.count == MOST_SHOWN_BYTES
    assert last_lines(io.BytesIO(b"before\nown\n"), 5, 7) == ["own"]
    assert last_lines(io.BytesIO(b"before\n"), 5, 7) == []
