"""Objective route: choose a candidate for each prompt when it arrives."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, cast

import numpy as np

from winnow.algorithms.protocols import Selector
from winnow.algorithms.route.protocol import Router
from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.engine.database import Database
from winnow.storage.json_types import JsonObject
from winnow.storage.records import generations
from winnow.tasks.campaign.look import Look
from winnow.tasks.campaign.resolved import common_params
from winnow.tasks.campaign.scored import ScoredCampaign, check_judges
from winnow.tasks.candidates.candidates import Candidate, build_candidates
from winnow.tasks.data.datasets import Dataset
from winnow.tasks.data.sandboxed_templates import compile_template, render
from winnow.tasks.dotted_names import MISSING, value_of
from winnow.tasks.embedding.embedded_prompts import (
    Embedding,
    GivenVectors,
    as_rows,
    check_embedder,
    digest_of,
)
from winnow.tasks.errors import SpecError
from winnow.tasks.objectives.route.selector import PromptRouter, as_router
from winnow.tasks.plugins.selectors import campaign_selector
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.text.canonical_json import sha256
from winnow.tasks.text.phrases import count_of


@dataclass(frozen=True, kw_only=True)
class Route(ScoredCampaign):
    """Campaign in which one candidate answers each prompt, and the router learns.

    It learns from the answer's score. Candidates can join later.
    """

    embedding: Embedding
    contexts: FloatArray | None = None
    """Vector of each prompt, shape (n, d); None until `prepared` has stored them in a database."""

    @classmethod
    def check(cls, spec: CampaignSpec, dataset: Dataset, *, is_allowed: bool = True) -> Self:
        """See `ResolvedCampaign`."""
        candidates = build_candidates(spec, dataset, is_allowed=is_allowed)
        # One example with the field is enough: a prompt that arrives may have no known type.
        kind = spec.prompt_type
        if kind is not None and all(value_of(each.fields, kind) is MISSING for each in dataset.examples):
            raise SpecError(dataset.unknown_field(kind), path="prompt_type")
        if "dim" in spec.selector.params:
            raise SpecError(
                "is set to the length of the embedder's vectors; remove dim", path="selector.params.dim"
            )
        reserved = sorted(spec.selector.params.keys() & {"name", "n_arms", "n_examples"})
        if reserved:
            raise SpecError(
                f"is not a parameter of a selector; remove {reserved[0]}",
                path=f"selector.params.{reserved[0]}",
            )
        return cls(
            spec=spec,
            dataset=dataset,
            **check_judges(spec, candidates),
            candidates=candidates,
            embedding=check_embedder(spec.embedder, dataset),
        )

    @classmethod
    def stored_fields(
        cls, look: Look, spec: CampaignSpec, dataset: Dataset, candidates: Sequence[Candidate]
    ) -> JsonObject:
        """See `ResolvedCampaign`."""
        if spec.embedder.path is not None:
            raise SpecError(f"its vectors are in {spec.embedder.path}, and no file is read here")
        stored = look.record.spec["embedder_identity"]
        identity = {key: value for key, value in stored.items() if key != "text"}
        template = compile_template(spec.embedder.text, dataset.field_names)
        digests = [digest_of(render(template, each.fields, each.key)) for each in dataset.examples]
        known = generations.vectors(look.session, sha256(identity), digests)
        if lacking := [digest for digest in digests if digest not in known]:
            raise SpecError(f"{count_of(len(lacking), 'vector')} of its prompts are not stored")
        contexts = as_rows(known[digest] for digest in digests)
        embedding = GivenVectors(vectors={}, dim=contexts.shape[1])
        return {"embedding": embedding, "contexts": contexts}

    def prepared(self, database: Database) -> Self:
        """Add the vectors of all prompts, which are stored in the database."""
        return replace(self, contexts=self.embedding.contexts(database, self.dataset), tried=[])

    @property
    def takes_more_candidates(self) -> bool:
        """See `ResolvedCampaign`."""
        return True

    def particulars(self) -> JsonObject:
        """See `ResolvedCampaign`."""
        return {"embedder_identity": self.embedding.identity, **self.metric_particulars}

    @property
    def askable(self) -> int:
        """Number of prompts: each is answered once."""
        return len(self.dataset.examples)

    def create_selector(self, limit: int | None = None) -> Selector:
        """See `ResolvedCampaign`."""
        inner = campaign_selector(
            self.spec.selector.name,
            n_arms=self.n_begun,
            n_examples=len(self.dataset.examples),
            **{**common_params(self.spec), "budget": None},
            **self.spec.selector.params,
            dim=self.embedding.dim,
        )
        contexts = np.empty((0, self.embedding.dim)) if self.contexts is None else self.contexts
        return PromptRouter(
            cast(Router, inner),
            contexts,
            n_arms=self.n_begun,
            budget=limit or self.spec.own_budget or len(self.dataset.examples),
        )

    def at_round(self, selector: Selector, number: int) -> Selector:
        """Add the candidates that joined up to a round to the selector."""
        as_router(selector).grow_to(self.n_begun + sum(0 < first <= number for first in self.first_rounds))
        return selector
