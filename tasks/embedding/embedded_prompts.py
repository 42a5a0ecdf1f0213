"""Vectors of a campaign's prompts: from text by an embedder, or from a file."""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.engine.database import Database
from winnow.storage.records import generations
from winnow.tasks.data.datasets import Dataset
from winnow.tasks.data.sandboxed_templates import Template, compile_template, render
from winnow.tasks.data.trial_renders import try_templates
from winnow.tasks.embedding.precomputed import PLACE, read_vectors
from winnow.tasks.embedding.protocol import MOST_TEXTS, Embedder, EmbeddingFailed, of_unit_length
from winnow.tasks.embedding.registry import create_embedder
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.sections.objectives import EmbedderSpec
from winnow.tasks.text.canonical_json import sha256


def stored_vectors(database: Database, embedder: Embedder, texts: Sequence[str]) -> FloatArray:
    """Vectors of texts, shape (n, d), of length 1 up to single precision.

    Missing vectors are computed now and committed in small groups. Every row is read from the database, so
    that a resumed campaign uses identical bits.

    Raises:
        WinnowError: If a text cannot be embedded; groups committed before stay stored.
    """
    name = sha256(embedder.identity)
    digests = list(map(digest_of, texts))
    with database.reading() as session:
        known = generations.vectors(session, name, digests)
    missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known}
    with closing(embedder):
        for group in _groups(list(missing.items())):
            rows = _embedded(embedder, [text for _, text in group])
            new = {digest: row.tobytes() for (digest, _), row in zip(group, rows, strict=True)}
            with database.writing() as session:
                generations.add_vectors(session, name, new)
                known |= generations.vectors(session, name, list(new))
    return as_rows(known[digest] for digest in digests)


def digest_of(text: str) -> str:
    """Digest under which a text's vector is stored."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def as_rows(vectors: Iterable[bytes]) -> FloatArray:
    """Stored vectors as an array in double precision, shape (n, d)."""
    return np.array([np.frombuffer(each, dtype="<f4") for each in vectors]).astype(np.float64)


def _embedded(embedder: Embedder, texts: list[str]) -> np.ndarray:
    """Vectors of texts, shape (B, d), of length 1."""
    vectors = embedder.embed(texts)
    if vectors.shape != (len(texts), embedder.dim):
        raise EmbeddingFailed(
            f"the embedder returned vectors of shape {vectors.shape}, not {(len(texts), embedder.dim)}; the "
            "checkpoint does not match its config.json"
        )
    return of_unit_length(vectors, texts)


def _groups(items: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    return [items[start : start + MOST_TEXTS] for start in range(0, len(items), MOST_TEXTS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedTexts:
    """A template for the text of each prompt, and the embedder of these texts."""

    embedder: Embedder
    template: Template
    source: str
    """Source of the template."""

    @property
    def dim(self) -> int:
        """Length d of a vector."""
        return self.embedder.dim

    @property
    def identity(self) -> dict[str, object]:
        """Everything that determines the vectors, as JSON values."""
        return {**self.embedder.identity, "text": self.source}

    @property
    def fields(self) -> frozenset[str]:
        """Fields of an example that the template needs."""
        return self.template.variables

    def contexts(self, database: Database, dataset: Dataset) -> FloatArray:
        """Vectors of the examples, shape (n, d)."""
        texts = [render(self.template, example.fields, example.key) for example in dataset.examples]
        return stored_vectors(database, self.embedder, texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenVectors:
    """Vectors computed elsewhere, by the example's key."""

    vectors: dict[str, FloatArray]
    dim: int

    @property
    def identity(self) -> dict[str, object]:
        """See `EmbeddedTexts`."""
        return {
            "type": "precomputed",
            "vectors": sha256({key: row.tolist() for key, row in self.vectors.items()}),
        }

    def contexts(self, database: Database, dataset: Dataset) -> FloatArray:
        """See `EmbeddedTexts`; the database is not used."""
        keys = [example.key for example in dataset.examples]
        self.require(keys)
        rows = of_unit_length(np.array([self.vectors[key] for key in keys]), keys)
        return rows.astype(np.float64)

    def require(self, keys: list[str]) -> None:
        """Refuse examples without a vector.

        Raises:
            SpecError: If an example has no vector.
        """
        for key in keys:
            if key not in self.vectors:
                raise SpecError(
                    f"example {key!r} has no vector; add it, or choose an embedder that reads text",
                    path=PLACE,
                )


Embedding = EmbeddedTexts | GivenVectors


def check_embedder(spec: EmbedderSpec, dataset: Dataset) -> Embedding:
    """Set up the embedder of a spec; nothing is embedded yet.

    Raises:
        SpecError: If a setting is invalid or an example lacks a vector; the message names the key and what to
            do.
    """
    if spec.path is not None:
        vectors = read_vectors(spec.path)
        given = GivenVectors(vectors=vectors, dim=len(next(iter(vectors.values()))))
        keys = [example.key for example in dataset.examples]
        given.require(keys)
        try:
            of_unit_length(np.array([vectors[key] for key in keys]), keys)
        except EmbeddingFailed as error:
            raise SpecError(str(error), path=PLACE) from error
        return given
    template = compile_template(spec.text, dataset.field_names, "embedder.text")
    try_templates([lambda example: render(template, example.fields, example.key)], dataset.examples)
    return EmbeddedTexts(embedder=create_embedder(spec), template=template, source=spec.text)
