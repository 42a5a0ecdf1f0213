"""The sandbox of programs: whatever they try ends in a zero with its explanation, and reaches nothing."""

import os
import socket
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.tasks.judges.hostile_programs import ESCAPES, HOSTILE, LOOPS, PRELUDE
from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.code import judge as code_judge
from winnow.tasks.judges.code import sandbox
from winnow.tasks.judges.code.inside import seccomp
from winnow.tasks.judges.code.inside.confinement import Limits
from winnow.tasks.judges.code.judge import escape
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge

TESTS = """
import unittest

class Tests(unittest.TestCase):
    def test_f(self):
        self.assertEqual(f(), 42)
"""


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What hostile programs aim at."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "sandboxes"))
    (tmp_path / "sandboxes").mkdir()
    (tmp_path / "winnow.db").write_bytes(b"all the scores")
    (tmp_path / "outside").write_text("untouched")
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as local:
        local.bind(str(tmp_path / "s"))
        local.listen()
        yield {
            "OUTSIDE": str(tmp_path / "outside"),
            "FOLDER": str(tmp_path),
            "DATABASE": str(tmp_path / "winnow.db"),
            "PORT": tcp.getsockname()[1],
            "SOCKET": str(tmp_path / "s"),
            "PARENT": os.getpid(),
        }


def judged(judge, program, tests=TESTS):
    return judge.judge(Sample(output=program, targets=[tests]))


def explains(name, said):
    """Whether the explanation is as expected; on a busy machine time may run out before all else."""
    return HOSTILE[name][1] in said or (name in LOOPS and "took more than" in said)


def test_no_hostile_program_succeeds_and_each_is_explained(names, tmp_path):
    assert len(HOSTILE) > 100
    bound = "".join(f"{name} = {value!r}\n" for name, value in names.items()) + PRELUDE
    small = {"allow_code": True, "timeout": 1, "memory": 256}
    judges = {name: create_judge("code", same_process=name in ESCAPES, **small) for name in HOSTILE}
    library = Path(os.__file__).with_name("this.py")  # which nobody would miss
    before = library.stat()
    with ThreadPoolExecutor(4) as threads:
        verdicts = list(threads.map(lambda name: judged(judges[name], bound + HOSTILE[name][0]), HOSTILE))
    told = {name: (v.score, v.answer, v.reason, v.detail) for name, v in zip(HOSTILE, verdicts, strict=True)}
    wrong = {name: said for name, said in told.items() if said[0] != 0.0 or not explains(name, said[1])}
    assert not wrong, "\n".join(f"{name}: {said}" for name, said in wrong.items())
    assert {each.name for each in tmp_path.iterdir()} == {"sandboxes", "winnow.db", "outside", "s"}
    assert not list((tmp_path / "sandboxes").iterdir())
    assert (tmp_path / "outside").read_text() == "untouched"
    after = library.stat()
    assert (after.st_size, after.st_mode, after.st_mtime) == (before.st_size, before.st_mode, before.st_mtime)
    assert judged(judges["TCP"], bound).score == 1.0  # what the programs are put after is right


def test_no_process_is_left_whatever_became_of_the_program(names):
    this, before = psutil.Process(), set(psutil.Process().children(recursive=True))
    judge = create_judge("code", allow_code=True, timeout=1)
    judged(judge, "import threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()\nf = None")
    assert set(this.children(recursive=True)) == before


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import os; os._exit(0)", "exit code 0, before all tests"),
        ("import sys; sys.exit(0)", "SystemExit"),
        ("import os\nfor each in range(64):\n    try: os.write(each, b'{\"mark\": \"\", \"passed\": 1}\\n')\n"
         "    except OSError: pass\nos._exit(0)", "before all tests"),
        ("while True: pass", "took more than"),
        ("def f(): return 7", "AssertionError"),
    ],
)  # fmt: skip
def test_in_one_process_an_early_end_is_a_failure_too(program, said):
    verdict = judged(create_judge("code", allow_code=True, timeout=1, same_process=True), program)
    assert verdict.score == 0.0
    assert said in verdict.answer


def test_in_one_process_a_program_can_tamper_as_the_page_says():
    cheat = "class A:\n    def __eq__(self, other): return True\ndef f(): return A()"
    tests = "assert f() == 42"
    assert judged(create_judge("code", allow_code=True, same_process=True), cheat, tests).score == 1.0
    assert judged(create_judge("code", allow_code=True), cheat, tests).score == 0.0


def test_honest_programs_may_use_threads_files_and_event_loops():
    program = """
import asyncio, ctypes, datetime, decimal, hashlib, json, os, random, re, sqlite3, tempfile, threading, zlib
def f():
    async def later():
        await asyncio.sleep(0.001)
        return 40
    found = [asyncio.run(later())]
    thread = threading.Thread(target=found.append, args=(1,))
    thread.start()
    thread.join()
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write("1")
        file.seek(0)
        found.append(int(file.read()))
    return sum(found) + len(os.environ)
"""
    verdict = judged(create_judge("code", allow_code=True), program)
    assert (verdict.score, verdict.answer) == (1.0, "passed 1 of 1 tests")


def test_chance_falls_the_same_way_whenever_a_program_is_judged():
    program = "import random\ndef f(): return [random.random(), hash('x'), *{'a', 'b', 'c'}]"
    told = {
        judged(create_judge("code", allow_code=True), program, "assert f() == 0, f()").answer for _ in "12"
    }
    assert len(told) == 1


@pytest.mark.parametrize(
    ("breaks", "said"),
    [
        ("restrict_files", "reads a file, writes a file, cuts a file"),
        ("install_filter", "opens a socket, opens a local socket, sends a signal, makes a process"),
    ],
)
def test_the_self_test_sees_either_half_that_is_missing(monkeypatch, breaks, said):
    """The child is told to leave a half out before it locks itself up."""
    module = "winnow.tasks.judges.code.inside.confinement"
    code = f"import {module} as c; c.{breaks} = lambda *args: None; "
    monkeypatch.setattr(sandbox, "_CODE", sandbox._CODE.replace("from {module}", code + "from {module}"))
    escape.cache_clear()
    with pytest.raises(
        JudgeError, match="the sandbox for programs is unavailable: it does not hold here"
    ) as error:
        create_judge("all", judges=[{"type": "code", "allow_code": True}]).try_out()
    escape.cache_clear()
    assert "\n" not in error.value.message
    assert any(part in error.value.message for part in said.split(", "))


def test_a_sandbox_that_cannot_be_set_up_is_a_reason_and_no_zero(monkeypatch):
    module = "winnow.tasks.judges.code.inside.confinement"
    broken = f"import {module} as c; c.install_filter = lambda libc: 1 / 0; "
    monkeypatch.setattr(sandbox, "_CODE", sandbox._CODE.replace("from {module}", broken + "from {module}"))
    verdict = judged(create_judge("code", allow_code=True), "def f(): return 42")
    assert (verdict.score, verdict.reason) == (None, "judge_failed")
    assert verdict.detail == "the sandbox could not be set up: ZeroDivisionError: division by zero"


def test_a_kill_by_the_system_is_a_reason_and_no_zero(monkeypatch):
    began = sandbox._Process.read

    def killed(self):
        more = began(self)
        if self.role == "program" and list(self.messages()):
            os.kill(self._process.pid, 9)  # as the system does where memory is short
        return more

    monkeypatch.setattr(sandbox._Process, "read", killed)
    verdict = judged(create_judge("code", allow_code=True), "import time; time.sleep(99)")
    assert (verdict.score, verdict.reason) == (None, "judge_failed")
    assert "the system killed" in verdict.detail


@pytest.mark.parametrize("lacking", ["landlock", "seccomp", "system"])
def test_without_the_isolation_there_is_one_sentence_and_no_judge(monkeypatch, lacking):
    if lacking == "landlock":
        monkeypatch.setattr("winnow.tasks.judges.code.inside.confinement.landlock_version", lambda libc: 0)
    elif lacking == "system":
        monkeypatch.setattr("winnow.tasks.judges.code.inside.confinement.sys.platform", "darwin")
    else:
        monkeypatch.setattr("winnow.tasks.judges.code.inside.confinement._PR_GET_SECCOMP", 9999)
    with pytest.raises(JudgeError, match=r"this machine lacks .*run this judge on a machine") as error:
        create_judge("code", allow_code=True)
    assert "\n" not in error.value.message
    assert error.value.path == "judge.type"


def test_the_list_of_calls_holds_for_both_machines():
    names = [*seccomp.ALLOWED, *seccomp.LIMITED, *seccomp.ABSENT]
    assert len(names) == len(set(names))
    assert seccomp.LIMITED.keys() == seccomp.CONDITIONS.keys()
    forbidden = {"fork", "vfork", "execve", "kill", "tgkill", "socket", "connect", "ptrace", "mount", "bpf"}
    assert forbidden.isdisjoint(names)
    for column in (0, 1):
        numbers = [each[column] for table in (seccomp.ALLOWED, seccomp.LIMITED, seccomp.ABSENT)
                   for each in table.values() if each[column] is not None]  # fmt: skip
        assert len(numbers) == len(set(numbers)) > 100
    assert len(seccomp.filter_rules("x86_64")) < 4096
    assert len(seccomp.filter_rules("aarch64")) < 4096


def test_the_limits_are_those_that_are_asked_for():
    program = "import resource as r\ndef f(): return [r.getrlimit(r.RLIMIT_CPU), r.getrlimit(r.RLIMIT_CORE)]"
    task = sandbox.Task(
        output=program, prefix="", tests="assert f() == [(3, 3), (0, 0)]", entry_point=None, stops=True,
        same_process=False, limits=Limits(seconds=3, memory=64 << 20),
    )  # fmt: skip
    assert sandbox.run_task(task).passed == 1
    assert code_judge.CodeJudge(allow_code=True).timeout == 5


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_older_versions_of_landlock_hold_as_well(monkeypatch, version):
    module = "winnow.tasks.judges.code.inside"
    older = f"import {module}.confinement as l; l.landlock_version = lambda libc: {version}; "
    monkeypatch.setattr(sandbox, "_CODE", sandbox._CODE.replace("from {module}", older + "from {module}"))
    assert escape.__wrapped__() is None
