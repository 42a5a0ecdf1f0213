"""Vectors from vLLM's pooling task, in a separate process that starts with the first text."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.tasks.candidates.cache_keys import fingerprint_model
from winnow.tasks.embedding.protocol import EmbeddingFailed
from winnow.tasks.embedding.sentence_model import hidden_size
from winnow.tasks.engines.errors import one_sentence
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.engines.vllm import WORKER, WORKER_ENVIRONMENT
from winnow.tasks.errors import SpecError
from winnow.tasks.plugins.extras import require
from winnow.tasks.processes.worker_process import WorkerEnded, WorkerProcess

LOG = Path(".winnow") / "logs" / "embedder.log"
LOAD_TIMEOUT = 600.0
"""Maximum seconds for loading the model."""
BATCH_TIMEOUT = 600.0
"""Maximum seconds for a batch."""


class VllmEmbedder:
    """Checkpoint loaded by vLLM's pooling runner, pooled as the checkpoint defines.

    Args:
        folder: Folder of the checkpoint.

    Raises:
        SpecError: If the folder has no checkpoint.
        ExtraMissing: If vLLM is not installed.
    """

    def __init__(self, folder: str) -> None:
        require("vllm", "embedder (type: vllm)")
        self.dim = hidden_size(folder)
        self._ref = ModelRef(name="embedder", provider="vllm", model=folder)
        self._fingerprint = fingerprint_model(self._ref)
        self._worker: WorkerProcess | None = None

    @property
    def identity(self) -> dict[str, object]:
        """See `Embedder`."""
        return {"type": "vllm", "model": self._fingerprint}

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """See `Embedder`."""
        try:
            worker = self._loaded()
            worker.send({"texts": list(texts)})
            reply = worker.receive(BATCH_TIMEOUT)
            return np.array(reply["vectors"], dtype=np.float64)
        except (WorkerEnded, TimeoutError) as error:
            self.close()
            raise EmbeddingFailed(f"vLLM returned no vectors: {error}; its log is {LOG}") from error
        except (KeyError, TypeError, ValueError) as error:
            self.close()
            raise EmbeddingFailed(
                f"the vLLM process returned invalid vectors: {one_sentence(error)}; its log is {LOG}"
            ) from error

    def close(self) -> None:
        """See `Embedder`."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _loaded(self) -> WorkerProcess:
        if self._worker is None:
            self._worker = WorkerProcess(WORKER, log=LOG, environment=WORKER_ENVIRONMENT)
            self._worker.send({"load_embedder": self._ref.model})
            reply = self._worker.receive(LOAD_TIMEOUT)
            if "load_failed" in reply:
                self.close()
                raise SpecError(f"vLLM cannot load it: {reply['load_failed']}", path="embedder.model")
        return self._worker
