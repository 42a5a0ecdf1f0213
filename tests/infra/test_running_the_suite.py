"""How the suite itself is run: in forked processes, with linters and type checks beside it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CONFTEST = """
from forked_processes import Processes

def shares(items):
    return [each for each in ([*range(len(items) - 2)], [len(items) - 2, len(items) - 1]) if each]

def pytest_configure(config):
    config.pluginmanager.register(Processes(config, 2, shares))
"""
TESTS = """
import os

def test_finds_a_folder_of_its_own(tmp_path):
    assert not list(tmp_path.iterdir())

def test_takes_its_process_along():
    os._exit(7)

def test_goes_on_in_another_process():
    pass

def test_fails():
    print("what it said", os.getpid() == os.getppid())
    assert 1 == 2

def test_comes_after_one_that_failed(capfd):
    os.system("echo printed")
    assert capfd.readouterr().out == "printed\\n"
"""


@pytest.fixture
def forked(tmp_path):
    """What pytest says of these tests in two processes, and its exit code."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_them.py").write_text(TESTS)

    def run(*options):
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color", "no", *options]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
        ran = subprocess.run(
            [*command, "."], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, check=False
        )
        return ran.stdout, ran.returncode

    return run


def test_a_test_that_fails_or_ends_its_process_fails_alone(forked):
    said, code = forked()
    assert code == 1
    assert "2 failed, 3 passed" in said
    assert "FAILED test_them.py::test_takes_its_process_along - its process ended with 7" in said
    assert "FAILED test_them.py::test_fails - assert 1 == 2" in said
    assert "what it said False" in said


def test_after_a_failure_that_is_to_be_the_last_no_further_test_begins(forked):
    said, code = forked("-x", "-k", "not along and not folder and not another")
    assert code == 1
    assert "passed" not in said
    assert "stopping after 1 failures" in said


@pytest.mark.parametrize(
    ("aside", "main", "code"),
    [("echo checked", "echo tested", 0), ("echo checked; exit 3", "echo tested", 3), ("true", "exit 2", 2)],
)
def test_either_of_two_commands_beside_each_other_fails_both(aside, main, code):
    command = ["sh", str(ROOT / "infra" / "beside.sh"), aside, main]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == code
    assert f"beside it: {aside}\n" in ran.stdout
    if "echo" in main:
        assert ran.stdout == f"tested\nbeside it: {aside}\nchecked\n"
