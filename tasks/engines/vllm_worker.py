"""The process in which vLLM runs, and the only file that imports it; `VllmEngine` is the other side.

The first message is {"load": model}, answered by {"ready": identity} or {"load_failed": sentence}; then
{"requests": [...]} is answered by {"answers": [...]}, until {"close": true} comes. Anything unexpected
ends the process with a traceback in its log.
"""

import dataclasses
import os
import time
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tasks.engines.errors import EngineLoadFailed, one_sentence
from tasks.engines.prompts import PromptEncoder
from tasks.engines.protocol import Answer, Completion, GenerationFailure, ModelRef, Request, Sampling
from tasks.engines.worker_side import ParentLink, run_worker

if TYPE_CHECKING:
    from vllm import RequestOutput, SamplingParams


class VllmModel:
    """A loaded `vllm.LLM`.

    Raises:
        EngineLoadFailed: If a chat template is asked for and there is none.
        Exception: Whatever vLLM raises while loading.
    """

    def __init__(self, model: ModelRef) -> None:
        # Imported here, so that the parent is watched during the seconds that this takes.
        import vllm
        from vllm.platforms import current_platform

        args: dict[str, Any] = dict(model.model_args)
        if current_platform.is_cpu():
            args.setdefault("enforce_eager", True)  # compiling takes minutes, more than a CPU's batches gain
            # vLLM 0.32 on a CPU crashes when a request with a seed of its own is prefilled in chunks.
            args.setdefault("enable_chunked_prefill", False)
        self._llm = vllm.LLM(
            model=model.model, revision=model.revision, tokenizer_revision=model.revision, **args
        )
        config = self._llm.model_config
        self._max_model_len = int(config.max_model_len)
        self._encode = PromptEncoder(
            self._llm.get_tokenizer(),
            model,
            vocabulary=config.get_vocab_size(),
            max_model_len=self._max_model_len,
        )
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

    def close(self) -> None:
        """Let vLLM end its own helper processes and give back shared memory."""
        self._llm.llm_engine.engine_core.shutdown()

    def _complete(self, prompts: list[list[int]], requests: list[Request]) -> list[Answer]:
        """Answer prompts that were encoded; one that vLLM refuses fails alone."""
        from vllm.exceptions import VLLMClientError

        started = time.perf_counter()
        try:
            params = [self._params(ids, request) for ids, request in zip(prompts, requests, strict=True)]
            inputs = [{"prompt_token_ids": ids} for ids in prompts]
            outputs = self._llm.generate(inputs, params, use_tqdm=False) if inputs else []
        except (VLLMClientError, ValueError) as error:
            if len(requests) == 1:
                return [GenerationFailure(reason="refused", detail=one_sentence(error))]
            # vLLM withdraws the whole batch when it refuses one request, so each gets its own.
            return [self._complete([p], [r])[0] for p, r in zip(prompts, requests, strict=True)]
        share = (time.perf_counter() - started) / max(1, len(requests))
        return [_answer(output, share) for output, _ in zip(outputs, requests, strict=True)]

    def _params(self, ids: list[int], request: Request) -> "SamplingParams":
        from vllm import SamplingParams

        sampling = request.sampling
        return SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            max_tokens=min(sampling.max_tokens, self._max_model_len - len(ids)),
            stop=list(sampling.stop),
            # A seed costs vLLM a generator and a sampling step of its own; greedy decoding needs neither.
            seed=request.seed if sampling.temperature > 0.0 else None,
        )


def _answer(output: "RequestOutput", seconds: float) -> Answer:
    generated = output.outputs[0]
    if generated.finish_reason not in ("stop", "length"):
        return GenerationFailure(reason="refused", detail=f"vLLM ended it by {generated.finish_reason!r}")
    return Completion(
        text=generated.text,
        finish_reason=generated.finish_reason,
        input_tokens=len(output.prompt_token_ids or []),
        output_tokens=len(generated.token_ids),
        seconds=seconds,
    )


def main(parent: ParentLink) -> None:
    """Load the model, then answer batches until told to close."""
    model = _load(parent)
    while model and "requests" in (message := parent.receive()):
        answers = model.generate([_request(fields) for fields in message["requests"]])
        parent.send({"answers": [dataclasses.asdict(answer) for answer in answers]})
    if model:
        model.close()


def _load(parent: ParentLink) -> VllmModel | None:
    try:
        model = VllmModel(ModelRef(**parent.receive()["load"]))
    except Exception as error:  # vLLM has no common class for what a bad checkpoint or argument raises
        traceback.print_exc()
        why = error.why if isinstance(error, EngineLoadFailed) else one_sentence(error)
        parent.send({"load_failed": why})
        return None
    parent.send({"ready": model.identity})
    return model


def _request(fields: dict[str, Any]) -> Request:
    sampling = fields["sampling"]
    return Request(
        prompt=fields["prompt"],
        sampling=Sampling(**{**sampling, "stop": tuple(sampling["stop"])}),
        seed=fields["seed"],
    )


if __name__ == "__main__":
    run_worker(main)
