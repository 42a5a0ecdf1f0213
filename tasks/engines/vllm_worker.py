"""The process in which vLLM runs: `python -m tasks.engines.vllm_worker DESCRIPTOR PARENT`.

DESCRIPTOR is the number of an inherited socket, PARENT the process id of whoever listens at its other
end. Each message gets one answer: {"load": model} gets {"ready": identity} or {"load_failed": sentence},
{"requests": [...]} gets {"answers": [...]}. Anything unexpected ends the process with a traceback in its
log. When the other end hangs up or its process is gone, this process ends at once, whatever it is doing.
"""

import dataclasses
import os
import queue
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Any

from tasks.engines.channel import Channel
from tasks.engines.errors import EngineLoadFailed, one_sentence
from tasks.engines.prompts import PromptEncoder
from tasks.engines.protocol import Answer, Completion, GenerationFailure, ModelRef, Request, Sampling

PARENT_PERIOD = 1.0  # seconds between looks at whether the parent lives


class VllmModel:
    """A loaded `vllm.LLM`.

    Raises:
        EngineLoadFailed: If a chat template is asked for and there is none.
        Exception: Whatever vLLM raises while loading.
    """

    def __init__(self, model: ModelRef) -> None:
        # Imported here, so that `main` can watch the parent during the seconds that this takes.
        import vllm
        from vllm.platforms import current_platform

        args: dict[str, Any] = dict(model.model_args)
        if current_platform.is_cpu():
            args.setdefault("enforce_eager", True)  # compiling takes minutes, more than a CPU's batches gain
        self._llm = vllm.LLM(
            model=model.model, revision=model.revision, tokenizer_revision=model.revision, **args
        )
        config = self._llm.model_config
        self._max_model_len = int(config.max_model_len)
        self._encode = PromptEncoder(self._llm.get_tokenizer(), model, self._max_model_len)
        device = "cpu" if current_platform.is_cpu() else current_platform.get_device_name()
        precision = str(config.dtype).removeprefix("torch.")
        invariant = " batch-invariant" if os.environ.get("VLLM_BATCH_INVARIANT") == "1" else ""
        self.identity = f"vllm {vllm.__version__} {device} {precision}{invariant}"

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer every request; answer i belongs to request i."""
        answers: list[Answer | None] = [None] * len(requests)
        usable: list[tuple[int, list[int]]] = []
        for i, request in enumerate(requests):
            ids = self._encode(request.prompt)
            if isinstance(ids, GenerationFailure):
                answers[i] = ids
            else:
                usable.append((i, ids))
        completed = self._complete([ids for _, ids in usable], [requests[i] for i, _ in usable])
        for (i, _), answer in zip(usable, completed, strict=True):
            answers[i] = answer
        return [answer for answer in answers if answer is not None]
