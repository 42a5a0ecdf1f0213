"""Serve an exported policy, without database, vLLM or Prefect."""

import hashlib
import json
import reprlib
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Self

import numpy as np

from winnow.algorithms.errors import AlgorithmError
from winnow.algorithms.route.policy import Policy
from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.plain_files import open_plain, read_text
from winnow.tasks.data.array_files import DAMAGED
from winnow.tasks.data.sandboxed_templates import Template, compile_template, render
from winnow.tasks.embedding.protocol import Embedder, of_unit_length
from winnow.tasks.embedding.registry import create_embedder
from winnow.tasks.embedding.sentence_model import Precision, require_precision
from winnow.tasks.errors import WinnowError
from winnow.tasks.spec.sections.objectives import EmbedderSpec

ARRAYS, PARAMETERS = "policy.npz", "policy.json"
FORMAT, VERSION = "winnow-policy", 2

UNREADABLE = (*DAMAGED, OSError, AttributeError, AlgorithmError)
"""Exceptions raised by files that are missing, truncated, or of another kind."""

Prompt = str | Mapping[str, object] | np.ndarray
"""A text, the fields of an example, or a vector of shape (d,)."""


class Router:
    """Choose a candidate for a prompt as its campaign would, without exploration.

        router = Router.load("policy")
        name = router.choose("What is 17 + 25?")

    Args:
        policy: The learned policy.
        candidates: Names of the candidates, by arm.
        embedder: Computes vectors of texts; None if only vectors can be routed.
        template: Template of the text to embed, over a prompt's fields.
    """

    def __init__(
        self, policy: Policy, candidates: Sequence[str], embedder: Embedder | None, template: Template
    ) -> None:
        self.candidates = tuple(candidates)
        self._policy = policy
        self._embedder = embedder
        self._template = template
        self._loaded_from: tuple[Path, Precision] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as a reload from the folder, because an embedder cannot be pickled."""
        if self._loaded_from is None:
            raise TypeError("only a Router that was loaded from a folder can be pickled")
        return type(self).load, self._loaded_from

    @classmethod
    def load(cls, folder: str | Path, precision: Precision = "float32") -> Self:
        """Load a router from a folder written by `winnow route NAME --export`.

        Args:
            folder: Folder with policy.npz and policy.json.
            precision: Precision of the embedder. "bfloat16" is faster, and can choose differently if the
                predictions of two candidates are nearly equal.

        Raises:
            WinnowError: The folder has no router, its embedder is missing or has changed, or the precision is
                unknown.
        """
        require_precision(precision)
        folder = Path(folder)
        try:
            described = json.loads(read_text(folder / PARAMETERS))
            with open_plain(folder / ARRAYS) as stored:
                content = stored.read()
            if described["arrays_sha256"] != hashlib.sha256(content).hexdigest():
                raise ValueError(f"{PARAMETERS} and {ARRAYS} are not of one export")
            with np.load(BytesIO(content), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            if (described["format"], described["version"]) != (FORMAT, VERSION):
                raise ValueError(
                    f"it is {described['format']} {described['version']}, not {FORMAT} {VERSION}"
                )
            policy = Policy(arrays, described["parameters"])
            names = [each["name"] for each in described["candidates"]]
            if not all(isinstance(name, str) for name in names):
                raise ValueError("a candidate's name is not a text")
            if len(names) != len(arrays["usable"]):
                raise ValueError(f"it names {len(names)} candidates of {len(arrays['usable'])}")
            spec = EmbedderSpec.model_validate(described["embedder"])
            template = compile_template(spec.text, described["fields"])
            identity = described["embedder_identity"]
        except UNREADABLE as error:
            why = " ".join(str(error).split())
            raise WinnowError(
                f"{folder} contains no readable policy ({why}); export it again with winnow route NAME "
                "--export DIR"
            ) from error
        embedder = None if spec.type == "precomputed" else create_embedder(spec, precision)
        if embedder is not None and {**embedder.identity, "text": spec.text} != identity:
            raise WinnowError(
                f"the embedder of {folder} is not the one that its policy was learned with; restore its "
                "checkpoint, or export the policy of a campaign with the new embedder"
            )
        router = cls(policy, names, embedder, template)
        router._loaded_from = folder.resolve(), precision
        return router

    def choose(self, prompt: Prompt) -> str:
        """Name of the candidate with the highest predicted score.

        Raises:
            WinnowError: The prompt cannot be embedded, or no candidate had a score when the policy was
                exported.
        """
        if not self._policy.arrays["usable"].any():
            raise WinnowError(
                "this policy was learned from no score, so it cannot choose; let its campaign "
                "route prompts, then export it again"
            )
        return self.candidates[self._policy.choose(self._context(prompt))]

    def scores(self, prompt: Prompt) -> dict[str, float]:
        """Predicted score of each candidate, by name; NaN for a candidate without data.

        Scores are in [0, 1]; a regression can predict values outside of this range.
        """
        predicted = (self._policy.scores(self._context(prompt)) + 1.0) / 2.0
        return dict(zip(self.candidates, predicted.tolist(), strict=True))

    def _context(self, prompt: Prompt) -> FloatArray:
        if isinstance(prompt, np.ndarray):
            if prompt.ndim != 1 or prompt.dtype.kind not in "fiu":
                raise WinnowError(
                    f"a prompt of shape {prompt.shape} and type {prompt.dtype} is not a vector of numbers"
                )
            given: FloatArray = of_unit_length(prompt[np.newaxis], ["the prompt"])[0].astype(np.float64)
            if len(given) != (wanted := self._policy.parameters["dim"]):
                raise WinnowError(
                    f"the vector has {len(given)} numbers, but this policy was learned from vectors of "
                    f"{wanted}; give a vector of {wanted} numbers"
                )
            return given
        if self._embedder is None:
            raise WinnowError(
                "this policy was learned from precomputed vectors, without an embedder; give a vector"
            )
        if not isinstance(prompt, str | Mapping):
            raise WinnowError(
                f"the prompt is {reprlib.repr(prompt)}; give a text, a mapping of fields, or a vector as a "
                "NumPy array"
            )
        fields = {"input": prompt} if isinstance(prompt, str) else prompt
        if missing := sorted(self._template.variables - fields.keys()):
            wanted = ", ".join(f"{name!r}: ..." for name in sorted(self._template.variables))
            raise WinnowError(
                f"the prompt lacks {' and '.join(missing)}, which this policy was learned with; give a "
                f"mapping of fields: {{{wanted}}}"
            )
        text = render(self._template, fields)
        embedded: FloatArray = of_unit_length(self._embedder.embed([text]), [text])[0].astype(np.float64)
        return embedded
