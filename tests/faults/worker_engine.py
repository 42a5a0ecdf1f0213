"""Engines in a real process of their own whose texts come from no model, so that they start at once.

Everything on our side is what serves vLLM: `VllmEngine`, `WorkerProcess` and the channel between them.
"""

from functools import partial
from unittest.mock import patch

from winnow.tasks.engines.protocol import Engine, ModelRef
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.engines.vllm import engine
from winnow.tasks.processes.worker_process import WorkerProcess


def start(model: ModelRef, settings: EngineSettings) -> Engine:
    """Start `tests.faults.scripted_worker` where vLLM's worker would be."""
    with patch.object(engine, "WorkerProcess", _instead):
        return engine.start(model, settings)


def _instead(module: str, **rest: object) -> WorkerProcess:
    return partial(WorkerProcess, "tests.faults.scripted_worker")(**rest)
