"""Embedders by name: built in or from plug-ins."""

from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.algorithms.state.plugin_registry import plugins
from winnow.storage.json_types import JsonObject
from winnow.tasks.embedding.protocol import Embedder
from winnow.tasks.embedding.sentence_model import Precision, SentenceModel
from winnow.tasks.engines.known_providers import BUILT_IN_EMBEDDERS
from winnow.tasks.errors import SpecError, WinnowError, unknown_name
from winnow.tasks.plugins.entry_points import Plugin, calling
from winnow.tasks.plugins.source_code import code_digests
from winnow.tasks.spec.sections.objectives import EmbedderSpec


class PluginEmbedder:
    """Create and call a plug-in's embedder, and check its results.

    Args:
        entry: Entry point of a callable that takes the parameters and returns an object with `dim` and
            `embed`, and optionally `close`, which releases its resources.
        params: The parameters from the spec.

    Raises:
        PluginFailed: If the plug-in raises any exception except a `WinnowError`.
    """

    def __init__(self, entry: EntryPoint, params: Mapping[str, object]) -> None:
        self._plugin = Plugin(kind="embedder", name=entry.name, location=entry.value)
        self._params = dict(params)
        with calling(self._plugin, WinnowError):
            self._inner = entry.load()(**params)
            self.dim = int(self._inner.dim)
            self._code = code_digests(entry)

    @property
    def identity(self) -> JsonObject:
        """See `Embedder`; name, parameters and code of the plug-in."""
        return {"type": self._plugin.name, "params": self._params, "code": self._code}

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """See `Embedder`.

        Raises:
            PluginFailed: If the embedder raises, or does not return a row of `dim` numbers for each text.
        """
        with calling(self._plugin, WinnowError):
            vectors = np.asarray(self._inner.embed(texts), dtype=np.float64)
            if vectors.shape != (len(texts), self.dim):
                raise ValueError(
                    f"embed returned shape {vectors.shape} for {len(texts)} texts of dim {self.dim}"
                )
            return vectors

    def close(self) -> None:
        """See `Embedder`."""
        with calling(self._plugin, WinnowError):
            getattr(self._inner, "close", lambda: None)()


GROUP = "winnow.embedders"
"""Entry-point group in which installed packages register embedders."""


def create_embedder(spec: EmbedderSpec, precision: Precision = "float32") -> Embedder:
    """Create an embedder of texts; a model is loaded with the first text.

    Args:
        spec: The embedder's part of the spec; not for precomputed vectors.
        precision: See `SentenceModel`; vLLM uses that of the checkpoint.

    Raises:
        SpecError: If the embedder does not exist, or the given folder has no checkpoint.
        PluginFailed: If the embedder is a plug-in and cannot be created.
    """
    if spec.type == "vllm":
        from winnow.tasks.embedding.vllm_embedder import VllmEmbedder

        assert spec.model is not None
        return VllmEmbedder(spec.model)
    if spec.type == "transformers":
        return SentenceModel(spec.model, spec.pooling, precision)
    found = plugins(GROUP)
    if spec.type not in found:
        names = sorted({*BUILT_IN_EMBEDDERS, *found})
        raise SpecError(unknown_name("embedder", spec.type, names), path="embedder.type")
    return PluginEmbedder(found[spec.type], spec.params)
