"""Before anything imports torch: tiny models are slower with several threads, which wait for each other."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
