"""Linters and type checks run beside the suite, and either of them fails both."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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
