"""Campaigns that are held against another tool: run as a user runs them, by a process of their own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def run_campaign_file(spec: Mapping[str, Any], path: Path) -> None:
    """Write a campaign's file and have `winnow run` do what it says; the log stands beside it.

    Raises:
        SystemExit: If the run fails.
    """
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    command = [sys.executable, "-P", "-m", "winnow.flows.main", "run", str(path), "--trust"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    with path.with_suffix(".log").open("wb") as log:
        code = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, env=environment).returncode
    if code not in (0, 3):
        raise SystemExit(f"winnow run ended with {code}; see {path.with_suffix('.log')}")
