"""The embedder of a campaign, which makes vectors of prompts."""

from typing import Literal, Self

from pydantic import Field, model_validator

from winnow.tasks.engines.known_providers import BUILT_IN_EMBEDDERS
from winnow.tasks.spec.spec_model import FilePath, JsonScalar, SpecModel


class EmbedderSpec(SpecModel):
    """An embedder, which makes a vector of a prompt, so that prompts that are alike can be routed alike."""

    type: str = Field(default="transformers", min_length=1)
    """One of `BUILT_IN_EMBEDDERS`, or an embedder of a package or a program."""
    model: FilePath | None = None
    """Folder of a checkpoint; None for the sentence-embedding model that Winnow installs."""
    pooling: Literal["mean", "cls", "last"] = "mean"
    """For transformers: how the vectors of a text's tokens become one."""
    path: FilePath | None = None
    """For precomputed: a file with the columns id and vector."""
    params: dict[str, JsonScalar] = {}
    """For an embedder of a package or a program: the parameters that it is made with."""
    text: str = Field(default="{{ input }}", min_length=1)
    """A jinja2 template over the fields of an example, whose text is embedded."""

    @model_validator(mode="after")
    def _has_what_its_type_needs(self) -> Self:
        if (self.path is not None) != (self.type == "precomputed"):
            raise ValueError("path is for type: precomputed, which needs it")
        if self.model is None and self.type == "vllm":
            raise ValueError("type: vllm needs the folder of a checkpoint as model")
        # A stored spec has every key, so that a default is as good as nothing.
        given = {key for key, field in type(self).model_fields.items() if getattr(self, key) != field.default}
        if self.type == "precomputed" and {"model", "pooling", "text"} & given:
            raise ValueError("precomputed vectors need no model, pooling or text; leave them out")
        if self.type == "vllm" and "pooling" in given:
            raise ValueError("vLLM pools as the checkpoint says; leave pooling out")
        if self.type in BUILT_IN_EMBEDDERS and self.params:
            raise ValueError("params is for an embedder of a package or a program; leave it out")
        if self.type not in BUILT_IN_EMBEDDERS and {"model", "pooling"} & given:
            raise ValueError("an embedder of a package or a program takes what it needs from params")
        return self
