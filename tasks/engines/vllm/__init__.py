"""vLLM in a separate process."""

WORKER = "winnow.tasks.engines.vllm.worker"
"""The module that runs in vLLM's processes."""

WORKER_ENVIRONMENT = {
    # The engine core runs in the worker itself: one process less to start, which takes half the time.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; by default vLLM takes half of the machine
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}
