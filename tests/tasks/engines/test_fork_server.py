"""Workers that are forked from a process which has made their imports."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import pytest
from process_commands import command_of
from test_worker_process import gone
from waiting import PATIENCE_S, eventually

from winnow.tasks.processes.fork_server import forking
from winnow.tasks.processes.worker_process import WorkerEnded, WorkerProcess

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@pytest.fixture(autouse=True)
def _stub_is_found(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.chdir(tmp_path)


def holding(folder):
    return forking("stub_worker", log=folder / "server.log", environment={})


@pytest.fixture
def held(tmp_path):
    with holding(tmp_path):
        yield


@pytest.fixture
def start(tmp_path):
    """Start a worker by name; all are closed in the end."""
    with ExitStack() as workers:

        def start(name="one", **forced):
            worker = WorkerProcess("stub_worker", log=tmp_path / f"{name}.log", environment={}, forced=forced)
            return workers.enter_context(closing(worker))

        yield start


def look(worker, variable="NONE"):
    worker.send({"look": variable})
    return worker.receive(PATIENCE_S)


def imports(folder):
    return (folder / "server.log").read_text().count("imported")


def servers():
    return [child for child in psutil.Process().children() if is_server(child)]


def is_server(process):
    """Whether it is one of those started here; others may hold vLLM's imports for the whole session."""
    command = command_of(process)
    return any(word.endswith("fork_server_side") for word in command) and "stub_worker" in command


def test_two_workers_share_the_imports_of_one_server_and_nothing_else(held, start, tmp_path):
    workers = [start("one"), start("two")]
    for worker, said in zip(workers, ("first", "second"), strict=True):
        worker.send({"print": said})
        assert worker.receive(PATIENCE_S) == {"print": said}
    [server] = servers()
    assert [look(worker)["parent"] for worker in workers] == [server.pid] * 2
    # Standard input, the log twice, its socket, and the folder that is listed.
    assert [look(worker)["descriptors"] for worker in workers] == [5, 5]
    for worker in workers:
        assert os.getsid(worker.pid) == os.getpgid(worker.pid) == worker.pid
        worker.close()
    assert [(tmp_path / f"{name}.log").read_text() for name in ("one", "two")] == ["first\n", "second\n"]
    assert imports(tmp_path) == 1


def test_a_worker_has_its_own_variables_and_folder_and_the_next_does_not(held, start, monkeypatch, tmp_path):
    first = look(start("one", DEVICES="2,3"), "DEVICES")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    second = look(start("two"), "DEVICES")
    assert (first["variable"], first["folder"]) == ("2,3", str(tmp_path))
    assert (second["variable"], second["folder"]) == (None, str(tmp_path / "elsewhere"))
    assert first["parent"] == second["parent"] != os.getpid()


def test_a_killed_worker_is_noticed_and_its_children_and_not_its_server_go_with_it(held, start):
    worker = start()
    worker.send({"child": True})
    child = worker.receive(PATIENCE_S)["pid"]
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(WorkerEnded, match=r"^it was ended by signal SIGKILL"):
        worker.receive(PATIENCE_S)
    assert eventually(lambda: gone(child))
    [server] = servers()
    assert look(start("two"))["parent"] == server.pid


def test_a_failed_worker_is_noticed_with_its_traceback(held, start):
    worker = start()
    worker.send({"fail": "no more"})
    with pytest.raises(WorkerEnded, match=r"(?s)^it ended with exit code 1; .*ValueError: no more$"):
        worker.receive(PATIENCE_S)


def test_closing_waits_until_a_stubborn_worker_and_its_children_are_gone(held, start, monkeypatch):
    monkeypatch.setattr("winnow.tasks.processes.worker_process.POLITE_SECONDS", 0.2)
    worker = start()
    worker.send({"child": True, "ignore": True})
    child = worker.receive(PATIENCE_S)["pid"]
    worker.send({"sleep": 600})
    worker.close()
    assert gone(worker.pid)
    assert eventually(lambda: gone(child))
    worker.close()


def test_a_killed_server_takes_its_workers_along_and_the_next_one_has_a_fresh_server(held, start, tmp_path):
    workers = [start("one"), start("two")]
    assert [look(worker)["parent"] for worker in workers] == [servers()[0].pid] * 2
    servers()[0].kill()
    for worker in workers:
        with pytest.raises(WorkerEnded):
            worker.receive(PATIENCE_S)
        assert eventually(lambda pid=worker.pid: gone(pid))
    assert look(start("three"))["parent"] == servers()[0].pid
    assert imports(tmp_path) == 2


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("thread:busy", "imports left threads (busy), which a fork would lose"),
        ("waits:reaper", "imports left threads (reaper), which a fork would lose"),
        ("thread:cuda-EvtHandlr", "imports left threads (cuda-EvtHandlr), which a fork would lose"),
        ("device", "imports opened a device, which a fork cannot use"),
        ("count", "imports used devices, which a fork cannot use"),
    ],
)
def test_what_no_fork_survives_is_imported_anew_in_its_place(start, monkeypatch, tmp_path, what, why):
    monkeypatch.setenv("STUB_IMPORTS", what)
    with holding(tmp_path):
        worker = start(DEVICES="1")
        assert look(worker, "DEVICES")["variable"] == "1"
        assert look(worker)["parent"] == servers()[0].pid
        worker.close()
        assert gone(worker.pid)
    assert (
        tmp_path / "one.log"
    ).read_text() == f"started as a new process without the prepared imports: {why}\n"


@pytest.mark.parametrize("name", ["jemalloc_bg_thd", "cuda00001800007"])
def test_a_thread_that_a_fork_may_lose_is_no_reason_to_import_anew(start, monkeypatch, tmp_path, name):
    monkeypatch.setenv("STUB_IMPORTS", f"thread:{name}")
    with holding(tmp_path):
        worker = start()
        assert look(worker)["parent"] == servers()[0].pid
    assert (tmp_path / "one.log").read_text() == ""
    assert imports(tmp_path) == 1


def test_a_library_that_compiles_while_it_is_imported_does_so_in_its_engine(start, monkeypatch, tmp_path):
    monkeypatch.setenv("STUB_IMPORTS", "compiles")
    with holding(tmp_path):
        worker = start()
        found = look(worker, "HUMMING_DISABLE_PARALLEL_BUILD")
        assert (found["parent"], found["variable"]) == (servers()[0].pid, None)


def test_imports_that_another_environment_might_change_are_made_anew(held, start, monkeypatch, tmp_path):
    look(start("one"))
    monkeypatch.setenv("PREFECT_API_URL", "http://nowhere")  # which no worker reads
    look(start("two"))
    monkeypatch.setenv("SOME_SWITCH", "on")
    assert look(start("three"), "SOME_SWITCH")["variable"] == "on"
    assert [(tmp_path / f"{name}.log").read_text() for name in ("one", "two")] == ["", ""]
    assert (tmp_path / "three.log").read_text() == (
        "started as a new process without the prepared imports: imports were made with other values of "
        "SOME_SWITCH\n"
    )


def test_a_server_that_cannot_import_is_told_of_once_and_done_without(start, monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("STUB_IMPORTS", "fail")
    with holding(tmp_path):
        assert [look(start(name))["parent"] for name in ("one", "two")] == [os.getpid()] * 2
        assert servers() == []
    [record] = caplog.records
    assert str(tmp_path / "server.log") in record.getMessage()
    assert (tmp_path / "server.log").read_text().count("ValueError: no such library") == 1


def test_a_worker_that_cannot_be_forked_imports_for_itself_and_the_others_go_on(
    held, start, monkeypatch, tmp_path, caplog
):
    other = start("one")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    worker = start("two")
    worker.send({"print": "here"})
    worker.receive(PATIENCE_S)
    assert psutil.Process(worker.pid).ppid() == os.getpid()
    assert look(other)["parent"] == servers()[0].pid
    [record] = caplog.records
    assert record.getMessage().startswith(
        "an engine could not be forked and imports its modules itself (FileNotFound"
    )


def test_blocks_share_a_server_that_is_gone_after_the_last_with_all_it_forked(start, tmp_path):
    with holding(tmp_path):
        with holding(tmp_path / "other"):
            worker = start()
        [server] = servers()
        assert look(start("two"))["parent"] == server.pid
    assert gone(server.pid)
    assert eventually(lambda: gone(worker.pid))
    assert look(start("three"))["parent"] == os.getpid()


def test_a_server_starts_with_the_first_worker_or_at_once(tmp_path):
    with holding(tmp_path):
        assert servers() == []
        with forking("stub_worker", log=tmp_path / "server.log", environment={}, at_once=True):
            assert len(servers()) == 1


def test_leaving_does_not_wait_for_imports(monkeypatch, tmp_path):
    monkeypatch.setenv("STUB_IMPORTS", "hang")
    with forking("stub_worker", log=tmp_path / "server.log", environment={}, at_once=True):
        [server] = servers()
        assert eventually(lambda: imports(tmp_path))
    assert gone(server.pid)


# The parent starts workers from a thread that ends; its other child holds a copy of all its sockets.
PARENT = """
import os, sys, threading, time
from pathlib import Path
from winnow.tasks.processes.fork_server import forking
from winnow.tasks.processes.worker_process import WorkerProcess

def start():
    worker = WorkerProcess("stub_worker", log=Path("log"), environment={})
    worker.send({"child": True})
    pids.extend([worker.pid, worker.receive(120)["pid"]])
    if sys.argv[1] == "busy":
        worker.send({"sleep": 60})
    keep.append(worker)

pids, keep = [], []
with forking("stub_worker", log=Path("server.log"), environment={}, at_once=True):
    thread = threading.Thread(target=start, daemon=True)
    thread.start()
    if sys.argv[1] != "importing":
        thread.join()
    if sys.argv[1] == "forked" and os.fork() == 0:
        time.sleep(180)
        os._exit(0)
    print(*pids, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("state", ["importing", "idle", "busy", "forked"])
def test_a_killed_driver_leaves_no_process(tmp_path, state):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(HERE)])}
    if state == "importing":
        environment["STUB_IMPORTS"] = "hang"
    command = [sys.executable, "-c", PARENT, state]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        [server] = filter(is_server, psutil.Process(parent.pid).children())
        assert len(pids) == (0 if state == "importing" else 2)
        pids.append(server.pid)
        assert eventually(lambda: "imported" in (tmp_path / "server.log").read_text())
        assert not any(map(gone, pids))
        parent.kill()
    assert eventually(lambda: all(map(gone, pids)))
