"""What Winnow does on a machine's GPUs: a campaign, and what loads, sleep, streams and batches come to.

It runs without an environment of its own: where `winnow` and the helpers of the tests lie is said here.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = (str(ROOT / ".package"), str(ROOT / "tests"), str(ROOT))

sys.path[:0] = [folder for folder in FOLDERS if folder not in sys.path]
