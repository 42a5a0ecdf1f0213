"""Engine that runs vLLM in a separate process."""

WORKER = "winnow.tasks.engines.vllm.worker"
"""Module that vLLM's processes run."""

WORKER_ENVIRONMENT = {
    # The engine core runs in the worker itself: with one process less, starting takes half the time.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; vLLM's default is half of the machine's memory
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}
