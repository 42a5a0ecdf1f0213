"""Reference engine: a causal language model of `transformers` in this process.

B is the number of requests decoded together, L the length of the longest prompt among them. Prompts are
padded on the left and masked. Each request has its own randomness, so its output does not depend on the rest
of the batch, up to the rounding of floating-point sums.
"""

import gc
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import torch
import transformers
from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoProcessor,
    AutoTokenizer,
    GenerationConfig,
    LogitsProcessor,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    StoppingCriteria,
)

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.checkpoints import both_readings, refuse_missing_checkpoint
from winnow.tasks.engines.errors import EngineDied, EngineLoadFailed, lacks_memory, one_sentence
from winnow.tasks.engines.protocol import (
    Answer,
    Completion,
    Engine,
    GenerationFailure,
    JsonTree,
    ModelRef,
    Request,
)
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.engines.scoring import (
    Continued,
    KnownTokens,
    NextToken,
    OptionLogprobs,
    Scorer,
    TokenLogprobs,
)
from winnow.tasks.engines.transformers.decoding import (
    Decoding,
    FinishedRow,
    FinishedRows,
    NextTokenLogprobs,
    OwnDraws,
)

transformers.utils.logging.disable_progress_bar()  # the terminal belongs to the campaign

NO_LIMIT = 2**31  # tokens; for models without positions, such as state-space models
ONE_AT_A_TIME = threading.Lock()
"""Lock for loading and answering, because the library changes settings of all threads while loading."""
MODEL_ARGS = ("batch_size", "device", "dtype", "max_model_len", "trust_remote_code")


class TransformersEngine:
    """Engine of a model loaded with `AutoModelForCausalLM`, or `AutoModelForImageTextToText` to show images.

    Args:
        model: The model. Its `model_args` may have `dtype` ("float32", "bfloat16", "auto", ...),
            `max_model_len`, `device` ("cpu", "cuda"; by default CUDA if available), `batch_size` (requests
            decoded together, 32 by default) and `trust_remote_code`.
        devices: Devices to run on; only the first one is used, and only with CUDA.

    Raises:
        EngineLoadFailed: If the checkpoint cannot be loaded, an argument is unknown, or `lora` is set.
        EngineDied: If the device has too little free memory for the model now.
    """

    def __init__(self, model: ModelRef, devices: Sequence[int] = ()) -> None:
        if model.lora is not None:
            raise EngineLoadFailed(
                model.name, "provider 'transformers' does not support adapters; use provider vllm"
            )
        args = dict(model.model_args)
        if unknown := sorted(args.keys() - set(MODEL_ARGS)):
            raise EngineLoadFailed(
                model.name,
                f"model_args {', '.join(unknown)} unknown to provider 'transformers'; "
                f"it accepts {', '.join(MODEL_ARGS)}",
            )
        refuse_missing_checkpoint(model)
        self._name, self._shows_images = model.name, model.shows_images
        self._device = str(args.get("device") or ("cuda" if torch.cuda.is_available() else "cpu"))
        if self._device == "cuda" and devices:
            self._device = f"cuda:{devices[0]}"
        try:
            with ONE_AT_A_TIME:
                self._load(model, args)
        except Exception as error:  # a bad checkpoint raises errors without a common class
            why = both_readings(model) + one_sentence(error)
            raise (EngineDied if lacks_memory(why) else EngineLoadFailed)(model.name, why) from error
        vocabulary = self._vocabulary = int(self._model.get_input_embeddings().weight.shape[0])
        self._scorer = Scorer(
            self._tokenizer,
            model,
            vocabulary=vocabulary,
            max_model_len=self._window,
            ask_next=self._next_logprobs,
            ask_all=self._continuation_logprobs,
        )

    def _load(self, model: ModelRef, args: dict[str, JsonTree]) -> None:
        options = {"revision": model.revision, "trust_remote_code": bool(args.get("trust_remote_code"))}
        dtype = args.get("dtype", "auto")
        self._batch_size = _positive(args, "batch_size", 32)
        if model.shows_images:
            self._processor = AutoProcessor.from_pretrained(model.model, **options)
            self._tokenizer = self._processor.tokenizer
            loaded = AutoModelForImageTextToText.from_pretrained(model.model, dtype=dtype, **options)
        else:
            self._tokenizer = AutoTokenizer.from_pretrained(model.model, **options)
            loaded = AutoModelForCausalLM.from_pretrained(model.model, dtype=dtype, **options)
        self._model = loaded.to(self._device).eval()  # type: ignore[arg-type] # its type includes self
        self._window = _positive(args, "max_model_len", _position_limit(loaded.config))
        self._ends = _end_tokens(self._model, self._tokenizer)
        # Checkpoints have sampling defaults, which `generate` would mix into a request's settings.
        self._model.generation_config = GenerationConfig()

    @property
    def identity(self) -> str:
        """Software, version, device and precision."""
        precision = str(self._model.dtype).removeprefix("torch.")
        # Without its number: on another GPU of the same kind, it is the same engine.
        device = torch.cuda.get_device_name(self._device) if self._is_cuda else self._device
        return f"transformers {transformers.__version__} {device} {precision}"

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer every request; see `Engine.generate`."""
        with ONE_AT_A_TIME:
            if self._shows_images:
                return [self._shown(request) for request in requests]
            return self._scorer.answer(requests, write=self._write, why_unable=self._why_unable)

    def _shown(self, request: Request) -> Answer:
        """Answer a request alone, not in a batch, because images have different shapes."""
        if failure := self._why_unable(request):
            return failure
        encode = self._scorer.encode
        try:
            images: list[JsonObject] = [{"type": "image", "image": each.pixels()} for each in request.images]
        except ValueError as error:
            return GenerationFailure(reason="bad_prompt", detail=f"an image {error}")
        try:
            found = self._processor.apply_chat_template(
                encode.parts_of(request.asked, images),
                tokenize=True,
                return_dict=True,
                return_tensors="pt",
                **encode.template_args(request.asked),
            ).to(self._device, self._model.dtype)
        except Exception as error:  # templates and processors run code of the checkpoint's authors
            return GenerationFailure(reason="bad_prompt", detail=one_sentence(error))
        [ids] = found["input_ids"].tolist()
        return encode.why_unfit(ids) or self._complete([ids], [request], found)[0]

    def _write(self, prompts: Sequence[list[int]], requests: Sequence[Request]) -> list[Answer]:
        answers: dict[int, Answer] = {}
        for batch in self._batches(list(enumerate(prompts))):
            indices, ids = zip(*batch, strict=True)
            answers.update(zip(indices, self._complete(ids, [requests[i] for i in indices]), strict=True))
        return [answers[i] for i in range(len(requests))]

    def _why_unable(self, request: Request) -> GenerationFailure | None:
        sampling = request.sampling
        if sampling.structure is not None:
            return GenerationFailure(
                reason="refused", detail="provider transformers does not support structured outputs; use vllm"
            )
        named = [token for token, _ in sampling.logit_bias] + list(sampling.stop_token_ids)
        if max(named, default=0) >= self._vocabulary:
            return GenerationFailure(
                reason="refused",
                detail=f"logit_bias or stop_token_ids contain token {max(named)}, but the model has only "
                f"{self._vocabulary}",
            )
        return None

    def _batches(self, prompts: list[tuple[int, list[int]]]) -> Iterator[list[tuple[int, list[int]]]]:
        """Batches of at most `batch_size` prompts, grouped by length to reduce padding."""
        by_length = sorted(prompts, key=lambda pair: len(pair[1]))
        for start in range(0, len(by_length), self._batch_size):
            yield by_length[start : start + self._batch_size]

    def _complete(
        self,
        prompts: Sequence[list[int]],
        requests: Sequence[Request],
        inputs: Mapping[str, torch.Tensor] | None = None,
    ) -> list[Answer]:
        """Outputs for prompts; `inputs` are the model's inputs, including images if there are any."""
        started = time.perf_counter()
        room = [
            min(request.sampling.max_tokens, self._window - len(ids))
            for ids, request in zip(prompts, requests, strict=True)
        ]
        decoding = Decoding(self._tokenizer, requests, prompts, room, self._ends)
        inputs = self._padded(prompts) if inputs is None else inputs
        self._decode(inputs, max(room), OwnDraws(decoding), FinishedRows(decoding))
        took = time.perf_counter() - started
        return [
            row if isinstance(row, GenerationFailure) else _completion(row, len(ids), took, len(requests))
            for ids, row in zip(prompts, decoding.finished_rows(), strict=True)
        ]

    def _next_logprobs(self, questions: Sequence[NextToken]) -> list[TokenLogprobs]:
        told: dict[int, TokenLogprobs] = {}
        for batch in self._batches([(i, question.ids) for i, question in enumerate(questions)]):
            logprobs = NextTokenLogprobs()
            self._decode(self._padded([ids for _, ids in batch]), 1, logprobs)
            for (i, _), row in zip(batch, logprobs.values, strict=True):
                told[i] = OptionLogprobs({token: float(row[token]) for token in questions[i].options})
        return [told[i] for i in range(len(questions))]

    def _continuation_logprobs(self, asked: Sequence[Continued]) -> list[KnownTokens]:
        told: dict[int, KnownTokens] = {}
        for batch in self._batches([(i, each.ids[:-1]) for i, each in enumerate(asked)]):
            logits = self._logits([ids for _, ids in batch])
            for (i, _), row in zip(batch, logits, strict=True):
                ids, start = asked[i].ids, asked[i].start
                logprobs = row[start - 1 : len(ids) - 1].float().log_softmax(dim=-1)  # (n, V)
                following = torch.tensor(ids[start:], device=row.device)
                own = logprobs.gather(1, following[:, None])[:, 0]  # (n,)
                told[i] = KnownTokens(own.tolist(), is_greedy=bool((own >= logprobs.amax(dim=-1)).all()))
        return [told[i] for i in range(len(asked))]

    def _logits(self, sequences: Sequence[list[int]]) -> torch.Tensor:
        """Logits after each token, shape (B, L, V); sequences are padded on the right."""
        longest = max(map(len, sequences))
        pad = self._tokenizer.pad_token_id or 0
        padded = [ids + [pad] * (longest - len(ids)) for ids in sequences]
        mask = [[1] * len(ids) + [0] * (longest - len(ids)) for ids in sequences]
        try:
            with torch.inference_mode():
                output = self._model(
                    input_ids=torch.tensor(padded, device=self._device),  # (B, L)
                    attention_mask=torch.tensor(mask, device=self._device),  # (B, L)
                    use_cache=False,
                )
        except (RuntimeError, MemoryError) as error:
            raise EngineDied(self._name, one_sentence(error)) from error
        return cast(torch.Tensor, output.logits)

    def _padded(self, prompts: Sequence[list[int]]) -> dict[str, torch.Tensor]:
        """Token ids padded on the left, and their mask, both of shape (B, L)."""
        longest = max(map(len, prompts))
        pad = self._tokenizer.pad_token_id or 0
        padded = [[pad] * (longest - len(ids)) + ids for ids in prompts]
        mask = [[0] * (longest - len(ids)) + [1] * len(ids) for ids in prompts]
        return {
            "input_ids": torch.tensor(padded, device=self._device),
            "attention_mask": torch.tensor(mask, device=self._device),
        }

    def _decode(
        self,
        inputs: Mapping[str, torch.Tensor],
        max_new_tokens: int,
        processor: LogitsProcessor,
        *criteria: StoppingCriteria,
    ) -> None:
        pad = self._tokenizer.pad_token_id or 0
        try:
            self._model.generate(
                **inputs,
                generation_config=GenerationConfig(
                    do_sample=False, max_new_tokens=max_new_tokens, pad_token_id=pad, use_cache=True
                ),
                logits_processor=[processor],
                stopping_criteria=list(criteria),
            )
        except (RuntimeError, MemoryError) as error:
            raise EngineDied(self._name, one_sentence(error)) from error

    def close(self) -> None:
        """Release the weights."""
        self._model = None
        if self._is_cuda:
            gc.collect()  # tensors that an exception of the library still holds
            torch.cuda.empty_cache()

    @property
    def _is_cuda(self) -> bool:
        return self._device.partition(":")[0] == "cuda"


def _completion(row: FinishedRow, input_tokens: int, took: float, together: int) -> Completion:
    """Output of a batch of `together` requests that took `took` seconds."""
    return Completion(
        text=row.text,
        finish_reason=row.finish_reason,
        input_tokens=input_tokens,
        output_tokens=row.length,
        seconds=took / together,
        latency=took,
        token_logprobs=row.logprobs,
    )


def start(model: ModelRef, settings: EngineSettings) -> Engine:
    """Load the model in this process; most settings affect only engines in separate processes."""
    return TransformersEngine(model, settings.devices)


def _positive(args: dict[str, JsonTree], name: str, default: int) -> int:
    value = args.get(name, default)
    if not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    return value


def _position_limit(config: PretrainedConfig) -> int:
    limit = getattr(config.get_text_config(), "max_position_embeddings", None)
    return int(limit) if limit else NO_LIMIT


def _end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Tokens that end an output; a chat model's generation config often adds to its tokenizer's."""
    named = model.generation_config.eos_token_id
    several = named if isinstance(named, list) else [named]
    return frozenset(int(token) for token in (*several, tokenizer.eos_token_id) if token is not None)
