"""The only module that imports vLLM: a model that answers requests, or computes vectors."""

import fcntl
import gc
import json
import math
import os
import re
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.chat import TAGS, is_continued, special_tokens
from winnow.tasks.engines.checkpoints import adapter_args
from winnow.tasks.engines.errors import one_sentence
from winnow.tasks.engines.protocol import (
    Answer,
    Completion,
    GenerationFailure,
    ModelRef,
    Request,
    Structure,
)
from winnow.tasks.engines.scoring import (
    ContinuationLogprobs,
    Continued,
    KnownTokens,
    NextToken,
    OptionLogprobs,
    Scorer,
    TokenLogprobs,
)
from winnow.tasks.engines.vllm.running_batch import RunningBatch
from winnow.tasks.plugins.own_files import open_to_append

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase
    from vllm import LLM, CompletionOutput, RequestOutput
    from vllm.sampling_params import StructuredOutputsParams

LOADED_LATE = (
    "torch._dynamo",
    "vllm.exceptions",
    "vllm.inputs",
    "vllm.lora.request",
    "vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors",
    "vllm.model_executor.layers.quantization.online.base",
    "vllm.model_executor.model_loader.default_loader",
    "vllm.model_executor.models.llama",
    "vllm.model_executor.models.transformers",
    "vllm.plugins.lora_resolvers.filesystem_resolver",
    "vllm.plugins.lora_resolvers.hf_hub_resolver",
    "vllm.v1.core.sched.scheduler",
    "vllm.v1.engine.core",
    "vllm.v1.executor.uniproc_executor",
)
"""Modules that vLLM 0.32 imports only while it loads a model, which takes seconds."""

VISIBLE = "CUDA_VISIBLE_DEVICES"

SHOWN_AT_ONCE = 32
"""Requests whose images are decoded at the same time."""

CHAT_ARGS = ("add_generation_prompt", "chat_template", "continue_final_message")
"""Arguments of a chat template that vLLM's chat has arguments of its own for."""


class DeviceLock:
    """Lock on the devices visible to this process; the system releases it with the process.

    Of several engines that share a GPU, one at a time loads, sleeps or wakes. vLLM measures the memory of its
    own load by the free memory before and after. It fails, or reserves too little for its cache, if another
    engine takes or frees memory meanwhile.

    Args:
        folder: Folder of the lock files, the same for all engines that may share a device; created when
            needed.
        is_shared: Whether devices can be shared; otherwise nothing is locked.
    """

    def __init__(self, folder: Path, *, is_shared: bool) -> None:
        devices = os.environ.get(VISIBLE, "all").replace(os.sep, "_").split(",") if is_shared else []
        # In the same order in all engines, because two that wait for each other would wait forever.
        self._files = [folder / f"device-{name.strip()}.lock" for name in sorted(set(devices))]
        self.waited = 0.0
        """Seconds that the last lock waited for other engines."""

    @contextmanager
    def held(self) -> Generator[None, None, None]:
        """Hold the lock on the devices until the block ends."""
        started = time.monotonic()
        with ExitStack() as files:
            for path in self._files:
                file = files.enter_context(open_to_append(path))
                fcntl.flock(file, fcntl.LOCK_EX)
                # Unlocked explicitly, because processes that vLLM forks hold the file open as well.
                files.callback(fcntl.flock, file, fcntl.LOCK_UN)
            self.waited = time.monotonic() - started
            yield


class VllmModel:
    """A loaded `vllm.LLM` that answers requests.

    Args:
        model: The model to load.
        adapters: Folders of the LoRA adapters that requests may name.
        memory_share: Share of a GPU's memory, unless the model's arguments set it.
        locks: Folder in which engines that share a GPU lock it.
        sleeps: Whether to enable sleeping, if the device supports it.
        is_fresh: Whether to drop cached computations whenever no request is running.

    Raises:
        EngineLoadFailed: If the model is a chat model and has no chat template.
        Exception: If vLLM raises it while loading.
    """

    def __init__(
        self,
        model: ModelRef,
        *,
        adapters: Sequence[str],
        memory_share: float,
        locks: str,
        sleeps: bool,
        is_fresh: bool,
    ) -> None:
        # Imported here, so that the parent is watched during the seconds that this takes.
        from vllm import SamplingParams
        from vllm.lora.request import LoRARequest
        from vllm.platforms import current_platform
        from vllm.sampling_params import RequestOutputKind

        self.can_sleep = sleeps and current_platform.is_sleep_mode_available()
        self._device = DeviceLock(Path(locks), is_shared=memory_share < 1.0 and not current_platform.is_cpu())
        with self._device.held():
            self._llm = _new_llm(
                memory_share,
                model=model.model,
                revision=model.revision,
                tokenizer_revision=model.revision,
                **({"enable_sleep_mode": True} if self.can_sleep else {}),
                **{"max_logprobs": MOST_OPTIONS, **adapter_args(adapters), **model.model_args},
            )
        self.waited = self._device.waited
        self._refusals = _refusals()
        self._once = partial(SamplingParams, output_kind=RequestOutputKind.FINAL_ONLY)
        self._adapters: dict[str | None, LoRARequest | None] = {
            folder: LoRARequest(folder, number, str(Path(folder).absolute()))
            for number, folder in enumerate(adapters, start=1)
        }
        self._adapter: LoRARequest | None = None
        self._is_fresh, self._shows_images = is_fresh, model.shows_images
        self._keeps_prefixes = bool(self._llm.llm_engine.vllm_config.cache_config.enable_prefix_caching)
        self._written_by: str | None = None
        self._adapters[None] = self._adapter

        config = self._llm.model_config
        self._max_model_len = int(config.max_model_len)
        told_at_once = int(config.max_logprobs)  # -1 is no limit
        self._most_options = MOST_OPTIONS if told_at_once < 1 else min(MOST_OPTIONS, told_at_once)
        # vLLM declares a type with fewer members than every tokenizer has.
        tokenizer = cast("PreTrainedTokenizerBase", self._llm.get_tokenizer())
        special = special_tokens(tokenizer).values()
        self._hides_tags = bool(set(TAGS).intersection(special))
        self._hidden = re.compile("|".join(re.escape(each) for each in special if each not in TAGS) or "(?!)")
        self._scorer = Scorer(
            tokenizer,
            model,
            vocabulary=config.get_vocab_size(),
            max_model_len=self._max_model_len,
            ask_next=self._next_logprobs,
            ask_all=self._continuation_logprobs,
        )
        places = int(self._llm.llm_engine.vllm_config.scheduler_config.max_num_seqs)
        self.running = RunningBatch(
            self._llm.llm_engine.step, places=places, take_in=self._take_in, read=self._answer
        )
        self.identity = _identity(config.dtype)

    def may_join(self, requests: Sequence[Request]) -> bool:
        """Whether requests can join those in progress: texts with the same adapter, or without one."""
        adapters = {request.adapter for request in requests}
        are_texts = not any(
            request.continuations or request.sampling.choices or self._is_shown(request)
            for request in requests
        )
        # vLLM 0.32 on a CPU applies an adapter of the batch also to requests that name none.
        return are_texts and len(adapters) == 1 and (not self.running or adapters == {self._written_by})

    def join(self, number: int, requests: Sequence[Request]) -> None:
        """Add requests to those in progress."""
        self._begin_call()
        self._written_by = requests[0].adapter
        self._adapter = self._adapters[self._written_by]
        prompts = self._scorer.encode.of_many(
            [request.asked for request in requests], [request.sampling.one_bos for request in requests]
        )
        params = [
            {} if isinstance(ids, GenerationFailure) else self._params(ids, request)
            for ids, request in zip(prompts, requests, strict=True)
        ]
        self.running.add(number, prompts, params)

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer every request while no other is in progress; answer i belongs to request i."""
        self._begin_call()
        answers: dict[int, Answer] = {}
        # vLLM 0.32 on a CPU applies an adapter of the batch also to requests that name none.
        for adapter in dict.fromkeys(request.adapter for request in requests):
            own = [i for i, request in enumerate(requests) if request.adapter == adapter]
            self._adapter = self._adapters[adapter]
            shown = [i for i in own if self._is_shown(requests[i])]
            for start in range(0, len(shown), SHOWN_AT_ONCE):
                part = shown[start : start + SHOWN_AT_ONCE]
                answers.update(zip(part, self._shown([requests[i] for i in part]), strict=True))
            read = [i for i in own if i not in answers]
            answered = self._scorer.answer([requests[i] for i in read], write=self._complete)
            answers.update(zip(read, answered, strict=True))
        return [answers[i] for i in range(len(requests))]

    def _is_shown(self, request: Request) -> bool:
        """Whether a request goes through the model's processor, as all do whose examples can have images."""
        return self._shows_images and not (request.continuations or request.sampling.choices)

    def _shown(self, requests: Sequence[Request]) -> list[Answer]:
        """Answers to requests with images, by vLLM's own chat."""
        started = time.perf_counter()
        outputs: dict[int, RequestOutput | GenerationFailure] = {}
        chats: dict[int, list[JsonObject]] = {}
        for place, request in enumerate(requests):
            try:
                images = [{"type": "image_pil", "image_pil": each.pixels()} for each in request.images]
                chats[place] = self._scorer.encode.parts_of(request.asked, images)
            except ValueError as error:
                why = one_sentence(error) if isinstance(error, UnicodeError) else f"an image {error}"
                outputs[place] = GenerationFailure(reason="bad_prompt", detail=why)
        for is_open in (False, True):
            own = [place for place in chats if is_continued(requests[place].asked) == is_open]
            outputs.update(
                zip(own, self._chats([chats[i] for i in own], [requests[i] for i in own]), strict=True)
            )
        took = time.perf_counter() - started
        return [self._answer(outputs[place], took / len(requests), took) for place in range(len(requests))]

    def _chats(
        self, chats: Sequence[list[JsonObject]], requests: Sequence[Request]
    ) -> "list[RequestOutput | GenerationFailure]":
        """Outputs for chats, all or none of which continue the assistant's message; see `_outputs`."""
        from vllm import SamplingParams

        if not chats:
            return []
        given = self._scorer.encode.template_args(requests[0].asked)
        own = {key: given.pop(key) for key in CHAT_ARGS if key in given}
        try:
            return list(
                self._llm.chat(
                    cast("Any", list(chats)),
                    [SamplingParams(**self._params([0], each)) for each in requests],
                    lora_request=self._adapter,
                    use_tqdm=False,
                    chat_template_kwargs=given,
                    **own,
                )
            )
        except self._refusals as error:
            if len(chats) == 1:
                return [GenerationFailure(reason="refused", detail=one_sentence(error))]
            return [self._chats([chat], [each])[0] for chat, each in zip(chats, requests, strict=True)]

    def _begin_call(self) -> None:
        """Reset an engine that must be fresh, so that each call behaves like the first one.

        Cached prefixes are not computed again, but they were computed in other batches than a fresh
        computation.
        """
        if self._is_fresh and not self.running and self._llm.reset_prefix_cache() is False:
            raise RuntimeError("vLLM did not empty its prefix cache")

    def sleep(self) -> None:
        """Move the weights to main memory, and drop everything computed with them."""
        with self._device.held():
            self._llm.sleep(level=1)

    def wake(self) -> None:
        """Move the weights back to the device."""
        with self._device.held():
            self._llm.wake_up()

    def close(self) -> None:
        """End vLLM's helper processes and release shared memory."""
        _shut_down(self._llm)

    def _complete(self, prompts: Sequence[list[int]], requests: Sequence[Request]) -> list[Answer]:
        started = time.perf_counter()
        params = [self._params(ids, request) for ids, request in zip(prompts, requests, strict=True)]
        outputs = self._outputs(prompts, params)
        took = time.perf_counter() - started
        return [self._answer(output, took / len(requests), took) for output in outputs]

    def _answer(self, output: "RequestOutput | GenerationFailure", seconds: float, latency: float) -> Answer:
        if isinstance(output, GenerationFailure):
            return output
        generated = output.outputs[0]
        if generated.finish_reason not in ("stop", "length"):
            return GenerationFailure(
                reason="refused", detail=f"vLLM: finish_reason {generated.finish_reason!r}"
            )
        return Completion(
            text=self._hidden.sub("", generated.text) if self._hides_tags else generated.text,
            finish_reason=generated.finish_reason,
            input_tokens=len(output.prompt_token_ids or []),
            output_tokens=len(generated.token_ids),
            seconds=seconds,
            latency=latency,
            cached_tokens=self._cached(output),
            token_logprobs=_token_logprobs(generated),
        )

    def _cached(self, output: "RequestOutput") -> int | None:
        """Number of a prompt's tokens in the prefix cache; None if vLLM has no such cache."""
        return output.num_cached_tokens if self._keeps_prefixes else None

    def _next_token(self, output: "RequestOutput | GenerationFailure") -> TokenLogprobs:
        if isinstance(output, GenerationFailure):
            return output
        first = next(iter(output.outputs[0].logprobs or []), {})
        logprobs = {token: entry.logprob for token, entry in first.items()}
        return OptionLogprobs(logprobs, self._cached(output))

    def _next_logprobs(self, questions: Sequence[NextToken]) -> list[TokenLogprobs]:
        size = self._most_options
        parts = [
            [list(question.options[start : start + size]) for start in range(0, len(question.options), size)]
            for question in questions
        ]
        params = [
            {
                "temperature": 0.0,
                "max_tokens": 1,
                "logprob_token_ids": options,
                # Older versions return nothing without it; newer ones need exactly this number.
                "logprobs": len(options),
            }
            for portions in parts
            for options in portions
        ]
        asked = [question.ids for question, portions in zip(questions, parts, strict=True) for _ in portions]
        told = iter([self._next_token(output) for output in self._outputs(asked, params)])
        return [_joined(list(islice(told, len(portions)))) for portions in parts]

    def _continuation_logprobs(self, asked: Sequence[Continued]) -> list[ContinuationLogprobs]:
        # vLLM generates at least one token; 1 requests the prompt's own tokens and the most
        # probable token at each position.
        params = {"temperature": 0.0, "max_tokens": 1, "prompt_logprobs": 1}
        outputs = self._outputs([each.ids for each in asked], [params] * len(asked))
        return [_prompt_logprobs(output, each) for output, each in zip(outputs, asked, strict=True)]

    def _outputs(
        self, prompts: Sequence[list[int]], params: list[JsonObject]
    ) -> "list[RequestOutput | GenerationFailure]":
        """Outputs of vLLM for encoded prompts; if a prompt is refused, only that prompt fails."""
        from vllm import SamplingParams
        from vllm.inputs import TokensPrompt

        if not prompts:
            return []
        try:
            sampling = [SamplingParams(**each) for each in params]
            inputs = [TokensPrompt(prompt_token_ids=ids) for ids in prompts]
            return list(self._llm.generate(inputs, sampling, lora_request=self._adapter, use_tqdm=False))
        except self._refusals as error:
            if len(prompts) == 1:
                return [GenerationFailure(reason="refused", detail=one_sentence(error))]
            # vLLM drops the whole batch if it refuses one request, so each gets its own batch.
            return [self._outputs([ids], [each])[0] for ids, each in zip(prompts, params, strict=True)]

    def _take_in(self, id_: str, ids: list[int], params: JsonObject) -> GenerationFailure | None:
        """Queue an encoded prompt in vLLM; return the failure if vLLM refuses it, else None."""
        # With this type, vLLM treats the prompt as already rendered.
        prompt: Any = {"type": "token", "prompt_token_ids": ids}
        try:
            self._llm.llm_engine.add_request(id_, prompt, self._once(**params), lora_request=self._adapter)
        except self._refusals as error:
            return GenerationFailure(reason="refused", detail=one_sentence(error))
        return None

    def _params(self, ids: list[int], request: Request) -> JsonObject:
        sampling = request.sampling
        return {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "max_tokens": min(sampling.max_tokens, self._max_model_len - len(ids)),
            "stop": list(sampling.stop),
            # A seed costs vLLM an own generator and sampling step; greedy decoding needs neither.
            "seed": request.seed if sampling.temperature > 0.0 else None,
            "min_p": sampling.min_p,
            "presence_penalty": sampling.presence_penalty,
            "frequency_penalty": sampling.frequency_penalty,
            "repetition_penalty": sampling.repetition_penalty,
            "logit_bias": dict(sampling.logit_bias) or None,
            "stop_token_ids": list(sampling.stop_token_ids),
            "structured_outputs": _structured(sampling.structure),
            "logprobs": 0 if sampling.logprobs else None,  # only of the drawn token
            # If false, texts have all special tokens, and those that are no tags are removed later.
            "skip_special_tokens": not (self._hides_tags and sampling.think_tags),
        }


class VllmVectors:
    """A loaded `vllm.LLM` that pools the hidden states of a text into a vector.

    Raises:
        Exception: If vLLM raises it while loading.
    """

    def __init__(self, folder: str) -> None:
        self._llm = _new_llm(1.0, model=folder, runner="pooling")
        self._cut = {"truncation": True, "max_length": self._llm.model_config.max_model_len}
        self.identity, self.can_sleep, self.waited = "pooling", False, 0.0

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Vector of each text; texts that are too long are truncated."""
        outputs = self._llm.embed(texts, tokenization_kwargs=self._cut, use_tqdm=False)
        return [output.outputs.embedding for output in outputs]

    def close(self) -> None:
        """See `VllmModel`."""
        _shut_down(self._llm)


def _identity(dtype: object) -> str:
    """Software, version, device and precision, and whether outputs are batch-invariant."""
    import vllm
    from vllm import envs
    from vllm.platforms import current_platform

    is_cpu = current_platform.is_cpu()
    device = "cpu" if is_cpu else current_platform.get_device_name()
    # On a CPU, vLLM reads the variable but computes the same.
    invariant = " batch-invariant" if envs.VLLM_BATCH_INVARIANT and not is_cpu else ""
    return f"vllm {vllm.__version__} {device} {str(dtype).removeprefix('torch.')}{invariant}"


def _refusals() -> tuple[type[Exception], ...]:
    """Exceptions that vLLM raises for a refused request; 0.20 has only `ValueError`."""
    from vllm import exceptions

    return (getattr(exceptions, "VLLMClientError", ValueError), ValueError)


MOST_OPTIONS = 128
"""Maximum number of log-probabilities requested at one position; vLLM's default limit is 20."""

USABLE = 0.92
"""Default share of a GPU's memory for vLLM."""


def _joined(told: Sequence[TokenLogprobs]) -> TokenLogprobs:
    """Merge the answers to the parts of a question; a failure if any part failed."""
    known: list[OptionLogprobs] = []
    for each in told:
        if isinstance(each, GenerationFailure):
            return each
        known.append(each)
    logprobs = {token: value for each in known for token, value in each.logprobs.items()}
    return OptionLogprobs(logprobs, known[0].cached_tokens)


def _new_llm(memory_share: float, **args: Any) -> "LLM":  # noqa: ANN401 -- vLLM's own arguments
    """Load a model, with defaults for the device unless the arguments set them."""
    import vllm
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        args.setdefault("enforce_eager", True)  # compiling takes minutes, more than a CPU's batches gain
        # vLLM 0.32 on a CPU crashes if a request with a seed is prefilled in chunks.
        args.setdefault("enable_chunked_prefill", False)
        if args["enforce_eager"]:
            # Parts of the sampler would still be compiled, which needs a C++ compiler and fails in a
            # folder with a space in its path.
            os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
            _obey_dynamo_switch()
    elif memory_share < 1.0:
        args.setdefault("gpu_memory_utilization", USABLE * memory_share)
    return vllm.LLM(**args)


def _obey_dynamo_switch() -> None:
    """Apply the variable even if a fork server has already imported the module that reads it."""
    import torch._dynamo

    torch._dynamo.config.disable = os.environ["TORCHDYNAMO_DISABLE"] == "1"


def _shut_down(llm: "LLM") -> None:
    # vLLM would collect garbage twice, half a second each, in a process that ends anyway.
    gc.collect = lambda *_: 0
    llm.llm_engine.engine_core.shutdown()


def _structured(structure: Structure | None) -> "StructuredOutputsParams | None":
    """Create vLLM's structured-output parameters; None without a structure.

    Each request needs its own object, because vLLM modifies it.
    """
    from vllm.sampling_params import StructuredOutputsParams

    if structure is None:
        return None
    kind, value = structure
    if kind == "choice":
        return StructuredOutputsParams(choice=json.loads(value))
    if kind == "json_schema":
        return StructuredOutputsParams(json=value)
    return StructuredOutputsParams(**{kind: value})  # type: ignore[arg-type] # it accepts either of the two


def _token_logprobs(generated: "CompletionOutput") -> list[float] | None:
    """Log-probability of each drawn token; None if not requested, or if not all are finite."""
    if generated.logprobs is None:
        return None
    places = zip(generated.token_ids, generated.logprobs, strict=True)
    told = [place[token].logprob for token, place in places if place]
    is_whole = len(told) == len(generated.token_ids) and all(map(math.isfinite, told))
    return told if is_whole else None


def _prompt_logprobs(output: "RequestOutput | GenerationFailure", asked: Continued) -> ContinuationLogprobs:
    if isinstance(output, GenerationFailure):
        return output
    places = list(output.prompt_logprobs or [])[asked.start :]
    following = asked.ids[asked.start :]
    known = [place[token].logprob for token, place in zip(following, places, strict=False) if place]
    if len(known) == len(following):
        highest = [max(each.logprob for each in place.values()) for place in places if place]
        is_greedy = all(own >= most for own, most in zip(known, highest, strict=False))
        return KnownTokens(known, is_greedy)
    return GenerationFailure(reason="no_logprobs", detail="vLLM returned no log-probabilities of the prompt")


def preload() -> None:
    """Import the modules that every load needs, for `fork_server_side`.

    Uses no device and starts no thread.
    """
    from vllm.platforms import current_platform

    for module in ("vllm.entrypoints.llm", "winnow.tasks.engines.scoring"):
        import_module(module)
    device = "cpu" if current_platform.is_cpu() else "gpu"
    for module in (*LOADED_LATE, f"vllm.v1.worker.{device}_worker"):
        with suppress(ImportError):  # other versions may have no such module
            import_module(module)
