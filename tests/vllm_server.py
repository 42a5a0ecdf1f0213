"""A real vLLM server of a tiny checkpoint, in processes of its own."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from free_ports import free_port

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",  # see `tasks.engines.vllm.loaded_model`
    "VLLM_CPU_KVCACHE_SPACE": "1",
    # Its engine computes in its own process: another one would import all of vLLM for a third time.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
}


class VllmServer:
    """`vllm serve` of one checkpoint.

    It is started by its module: the command looks for a package called vllm, which the CPU build is not.
    """

    def __init__(self, folder: Path, *, served_as: str, max_model_len: int, log: Path) -> None:
        self._port = free_port()
        self._log = log
        options = {
            "model": folder, "served-model-name": served_as, "host": "127.0.0.1", "port": self._port,
            "dtype": "float32", "max-model-len": max_model_len, "uvicorn-log-level": "warning",
        }  # fmt: skip
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [
                    sys.executable, "-m", "vllm.entrypoints.openai.api_server",
                    "--enforce-eager", "--no-enable-chunked-prefill", "--disable-uvicorn-access-log",
                    "--enable-tokenizer-info-endpoint",
                    *(str(part) for name, value in options.items() for part in (f"--{name}", value)),
                ],
                env={**os.environ, **ENVIRONMENT}, stdout=file, stderr=file, start_new_session=True,
            )  # fmt: skip

    @property
    def url(self) -> str:
        """Base URL, as a spec names it."""
        return f"http://127.0.0.1:{self._port}/v1"

    def wait_until_ready(self) -> None:
        """Wait until it can be asked; fails if it ends before."""
        while self._process.poll() is None:
            try:
                urllib.request.urlopen(self.url.replace("/v1", "/health"), timeout=5).close()
                return
            except OSError:
                time.sleep(0.2)
        raise AssertionError(f"the server ended: {self._log.read_text()[-2000:]}")

    def kill(self) -> None:
        """End it and its engine at once, with kill -9; may be called again."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@contextmanager
def vllm_server(folder: Path, *, served_as: str, max_model_len: int, log: Path) -> Iterator[VllmServer]:
    """A server that is starting, until the block is left."""
    server = VllmServer(folder, served_as=served_as, max_model_len=max_model_len, log=log)
    try:
        yield server
    finally:
        server.kill()
