"""The models that make vectors of texts, by what a spec says."""

from winnow.tasks.embedding.protocol import Embedder
from winnow.tasks.embedding.sentence_model import Precision, SentenceModel
from winnow.tasks.spec.campaign import EmbedderSpec


def create_embedder(spec: EmbedderSpec, precision: Precision = "float32") -> Embedder:
    """The model that makes vectors of texts; it is loaded when the first one comes.

    Args:
        spec: Which.
        precision: See `SentenceModel`; vLLM keeps to what the checkpoint says.

    Raises:
        SpecError: If there is no checkpoint where the spec says.
    """
    if spec.type == "vllm":
        from winnow.tasks.embedding.vllm_embedder import VllmEmbedder

        assert spec.model is not None
        return VllmEmbedder(spec.model)
    return SentenceModel(spec.model, spec.pooling, precision)
