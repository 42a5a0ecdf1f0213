"""Write the dumps of the golden campaigns: python -m tests.golden_campaigns [NAME ...] [--into FOLDER]

Without a folder they become the expected ones. `--storage NAME=URL` keeps a campaign in another database.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FACTS, WORDING, SCHEMA, STREAMING_OFF = "facts", "wording.json", "schema.txt", "streaming-off.txt"

KEPT = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH")
"""What a process of golden campaigns has of this one's environment."""
ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join(
        str(ROOT / each) for each in (".package", ".", "tests", "tests/flows", "tests/golden_campaigns/files")
    ),
    "COLUMNS": "120",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # Every x86 processor computes as an old one, to the last bit; see tests/algorithms/test_cpu_families.py.
    "NPY_DISABLE_CPU_FEATURES": "SSSE3 SSE41 POPCNT SSE42 AVX F16C FMA3 AVX2 AVX512F AVX512CD AVX512_SKX "
    "AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Nehalem",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F",
}


def dump(*arguments: str) -> int:
    """Run golden campaigns in a process of its own, which nothing here can change; return its exit code."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    command = [sys.executable, "-m", "tests.golden_campaigns.writing", *arguments]
    return subprocess.run(command, cwd=ROOT, env=kept | ENVIRONMENT).returncode


if __name__ == "__main__":
    sys.exit(dump(*sys.argv[1:]))
