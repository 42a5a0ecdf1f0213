import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from waiting import PATIENCE_S, eventually

from winnow.tasks.errors import WinnowError
from winnow.tasks.processes import child_process
from winnow.tasks.processes.worker_process import WorkerEnded, WorkerProcess

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def worker(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    worker = WorkerProcess("stub_worker", log=tmp_path / "logs" / "stub.log", environment={})
    yield worker
    worker.close()


@pytest.mark.parametrize(
    "text",
    ["", "line\nbreak", "nul\x00", "🙂", "lone \ud800", "x" * 5_000_000],
    ids=lambda text: ascii(text[:9]),
)
def test_any_text_travels_both_ways(worker, text):
    worker.send({"text": text})
    assert worker.receive(PATIENCE_S) == {"text": text}


def test_messages_are_answered_in_order(worker):
    for number in range(100):
        worker.send({"number": number})
    assert [worker.receive(PATIENCE_S)["number"] for _ in range(100)] == list(range(100))


def test_what_it_prints_goes_to_the_log_only(worker, tmp_path, capfd):
    worker.send({"print": "hello"})
    worker.receive(PATIENCE_S)
    worker.close()
    assert (tmp_path / "logs" / "stub.log").read_text() == "hello\n"
    assert capfd.readouterr() == ("", "")


def test_a_late_answer_is_a_timeout_and_comes_with_the_next_look(worker):
    worker.send({"sleep": 0.3})
    with pytest.raises(TimeoutError):
        worker.receive(0.1)
    assert worker.receive(PATIENCE_S) == {"sleep": 0.3}


def test_a_killed_worker_is_noticed_with_signal_and_log(worker):
    worker.send({"print": "last words"})
    worker.receive(PATIENCE_S)
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(WorkerEnded, match=r"^it was ended by signal SIGKILL \(often"):
        worker.receive(PATIENCE_S)


def test_a_failed_worker_is_noticed_with_its_traceback(worker):
    worker.send({"fail": "no more"})
    with pytest.raises(WorkerEnded, match=r"(?s)^it ended with exit code 1; .*ValueError: no more$"):
        worker.receive(PATIENCE_S)
    with pytest.raises(WorkerEnded):
        worker.send({})


def test_a_death_is_noticed_although_a_child_holds_the_socket(worker):
    worker.send({"child": True})
    child = worker.receive(PATIENCE_S)["pid"]
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(WorkerEnded):
        worker.receive(PATIENCE_S)
    assert not gone(child)
    worker.close()
    assert eventually(lambda: gone(child))


def test_closing_waits_until_the_worker_is_gone_and_may_be_repeated(worker):
    worker.send({})
    worker.receive(PATIENCE_S)
    worker.close()
    assert gone(worker.pid)
    worker.close()


def test_a_stubborn_worker_is_killed_with_its_children(worker, monkeypatch):
    monkeypatch.setattr("winnow.tasks.processes.worker_process.POLITE_SECONDS", 0.2)
    worker.send({"child": True, "ignore": True})
    child = worker.receive(PATIENCE_S)["pid"]
    worker.send({"sleep": 60})
    worker.close()
    assert gone(worker.pid)
    assert eventually(lambda: gone(child))


# The parent starts a worker from a thread that ends; its other child holds a copy of the parent's end.
PARENT = """
import os, sys, threading, time
from pathlib import Path
from winnow.tasks.processes.worker_process import WorkerProcess

def start():
    worker = WorkerProcess("stub_worker", log=Path(sys.argv[1]), environment={})
    worker.send({"child": True})
    pids.extend([worker.pid, worker.receive(120)["pid"]])
    if sys.argv[2] == "busy":
        worker.send({"sleep": 60})
    keep.append(worker)

pids, keep = [], []
thread = threading.Thread(target=start)
thread.start()
thread.join()
if sys.argv[2] == "forked" and os.fork() == 0:
    time.sleep(180)
    os._exit(0)
print(*pids, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("state", ["idle", "busy", "forked"])
def test_a_killed_parent_leaves_no_worker_and_no_child_of_it(tmp_path, state):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(HERE)])}
    command = [sys.executable, "-c", PARENT, str(tmp_path / "log"), state]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        time.sleep(0.3)  # a worker that followed the thread would be gone by now
        assert len(pids) == 2
        assert not any(map(gone, pids))
        parent.kill()
    assert eventually(lambda: all(map(gone, pids)))


def test_a_log_that_cannot_be_written_is_named_with_the_remedy(tmp_path):
    (tmp_path / "logs").write_text("a file where the folder should be")
    with pytest.raises(WinnowError, match=r"logs/stub\.log .* cannot be written .*execution\.log_folder"):
        WorkerProcess("stub_worker", log=tmp_path / "logs" / "stub.log", environment={})


def test_a_log_is_opened_once_so_that_it_cannot_become_read_only_in_between(tmp_path, monkeypatch):
    opened, opens = child_process.open_to_append, []

    def open_once(path):
        opens.append(path)
        if len(opens) > 1:
            raise OSError(errno.EROFS, "Read-only file system")
        return opened(path)

    monkeypatch.setattr(child_process, "open_to_append", open_once)
    WorkerProcess("no_such_module", log=tmp_path / "stub.log", environment={}).close()
    with pytest.raises(WinnowError, match=r"stub\.log .* \(Read-only file system\); free disk space"):
        WorkerProcess("no_such_module", log=tmp_path / "stub.log", environment={})
    assert len(opens) == 2
