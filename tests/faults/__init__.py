"""Faults injected into real campaigns; see `registry`.

Makes the helpers of other tests importable, here and in every process that is started from here.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [str(ROOT / part) for part in (".", "tests", "tests/flows", "tests/flows/routes")]


def settle_paths() -> None:
    """Put the helpers' folders first, once."""
    sys.path[:0] = [folder for folder in FOLDERS if folder not in sys.path]
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    others = [each for each in known if each and each not in FOLDERS]
    os.environ["PYTHONPATH"] = os.pathsep.join([*FOLDERS, *others])


settle_paths()
