"""What makes vectors of texts, by what a spec says."""

from winnow.algorithms.state.registered import plugins
from winnow.tasks.embedding.plugin import PluginEmbedder
from winnow.tasks.embedding.protocol import Embedder
from winnow.tasks.embedding.sentence_model import Precision, SentenceModel
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.sections.embedder import BUILT_IN_EMBEDDERS, EmbedderSpec
from winnow.tasks.spec.suggestions import unknown_name

GROUP = "winnow.embedders"
"""Of entry points, by which installed packages name embedders."""


def create_embedder(spec: EmbedderSpec, precision: Precision = "float32") -> Embedder:
    """What makes vectors of texts; a model is loaded when the first one comes.

    Args:
        spec: Which; not one whose vectors were made elsewhere.
        precision: See `SentenceModel`; vLLM keeps to what the checkpoint says.

    Raises:
        SpecError: If there is no such embedder, or no checkpoint where the spec says.
        PluginFailed: If it is a plug-in and cannot be made.
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
