"""A checked campaign: everything that follows from its file and data before a run."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Never, Self

import numpy as np
from sqlalchemy.orm import Session

from winnow.algorithms.protocols import Selector
from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.engine.database import Database
from winnow.storage.json_types import JsonObject, JsonView
from winnow.storage.objectives import traits_of
from winnow.storage.records.record_types import Losses, Values
from winnow.tasks.campaign.budget import WORDS
from winnow.tasks.campaign.kept_rules import kept_rules_of, with_rules
from winnow.tasks.campaign.look import Look
from winnow.tasks.campaign.placement import auto_lookahead
from winnow.tasks.candidates.cache_keys import fingerprint_model
from winnow.tasks.candidates.candidates import Candidate
from winnow.tasks.candidates.likelihood_scoring import Weighing
from winnow.tasks.candidates.text_rules import NEWEST, as_stored, rules_of
from winnow.tasks.data.datasets import Dataset
from winnow.tasks.engines.known_providers import REMOTE
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.engines.server_keys import server_url
from winnow.tasks.judges.protocol import Judge, Sample
from winnow.tasks.judges.target_forms import KEY as TARGET_FORMS
from winnow.tasks.judges.target_forms import has_forms, have_forms
from winnow.tasks.plugins.selectors import campaign_selector
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.stored_spec import CUT_AT_STOP, ONLY, cuts_at_stop, has_stop_sequences, own_kind
from winnow.tasks.text.canonical_json import sha256
from winnow.tasks.text.phrases import amount, count_of


@dataclass(frozen=True, kw_only=True)
class ResolvedCampaign(ABC):
    """A campaign with all references resolved and checked.

    Each objective has a subclass.
    """

    RULES: ClassVar[tuple[str, ...]] = ()
    """Names of the rules that apply to this objective; see `tasks.campaign.kept_rules`."""

    spec: CampaignSpec
    dataset: Dataset
    candidates: Sequence[Candidate]
    """The candidates, by arm."""
    judge: Judge[Never]
    """The judge of outputs, or of pairs of outputs, depending on the objective."""
    judge_code: Mapping[str, object] = field(default_factory=dict)
    """Identity of the judge's code as JSON values: a version, or digests of a plug-in's files."""
    selector_code: Mapping[str, str] | None = None
    """Digests of the code of a third-party selector; None for a built-in selector."""
    judge_fingerprints: Mapping[str, str] = field(default_factory=dict)
    """Fingerprint of the weights of each of `judge_models`, by name."""
    first_rounds: Sequence[int] = ()
    """First round of each candidate, by arm; empty if all took part from the beginning."""
    weighing: Weighing | None = None
    """Rules of log-likelihood scoring; None if models generate outputs."""
    metrics: Mapping[str, Judge[Sample]] = field(default_factory=dict)
    """Further judges of outputs, by name; their values affect decisions only through constraints."""
    begun_with_lookahead: int | None = None
    """The lookahead at the start of the campaign, as a number even for `auto`; None before the start."""
    has_auto_epsilon: bool = False
    """Whether the file sets `stopping.epsilon: auto`; `spec` contains the computed number."""
    kept_rules: JsonView | None = None
    """The rules that the campaign began with; None before the start. See `rules`."""
    text_rules: int = NEWEST
    """Version of the rules for outputs; see `tasks.candidates.text_rules`."""
    has_target_forms: bool = True
    """Whether targets are also accepted in other forms; see `tasks.judges.target_forms`."""
    begun_uncut: bool = False
    """Whether the campaign began when whole outputs were judged, even if a server ignored or kept stop
    sequences.
    """
    moved_from: Mapping[str, str] = field(default_factory=dict)
    """First server of each model that another server serves now, by model name."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Models of the file that were missing at the start and have not joined since, with the cause for
    each.
    """
    tried: list[Selector] = field(default_factory=list, repr=False, compare=False)
    """The selector that the check created, until `unused_selector` returns it."""

    @classmethod
    @abstractmethod
    def check(cls, spec: CampaignSpec, dataset: Dataset, *, is_allowed: bool = True) -> Self:
        """Resolve and check everything that the spec refers to besides the data.

        Args:
            spec: The campaign.
            dataset: Its examples.
            is_allowed: See `tasks.data.sources.read_dataset`.

        Raises:
            SpecError: A part is missing or invalid; gives the key, the problem and the remedy.
        """

    def arranged(self, names: Sequence[str], first_rounds: Sequence[int]) -> Self:
        """Order the candidates by arm, as stored.

        Only candidates that join can change the order.
        """
        if not self.takes_more_candidates:
            return self
        by_name = {each.name: each for each in self.candidates}
        found = replace(self, candidates=[by_name[name] for name in names], first_rounds=list(first_rounds))
        return found if found.n_begun == self.n_begun else replace(found, tried=[])

    def begun_at(self, servers: Mapping[str, str]) -> Self:
        """Identify the models by the servers at the campaign's start; see `served_at`.

        A served model is identified by its first server. Its canary shows whether the present server gives
        the same answers, before any of its outputs is used.
        """
        moved = {name: servers[name] for name, url in self.served_at.items() if servers.get(name, url) != url}
        if not moved:
            return self

        def fingerprint(model: ModelRef, known: str) -> str:
            return (
                fingerprint_model(replace(model, model_base_url=moved[model.name]))
                if model.name in moved
                else known
            )

        return replace(
            self,
            candidates=[
                replace(each, fingerprint=fingerprint(each.model, each.fingerprint))
                for each in self.candidates
            ],
            judge_fingerprints={
                each.name: fingerprint(each, self.judge_fingerprints[each.name]) for each in self.judge_models
            },
            moved_from=moved,
        )

    def begun_as(self, identity: JsonView) -> Self:
        """Apply the settings of the campaign's start, from its stored identity."""
        names = {each.name for each in self.models}
        left_out = {name: why for name, why in identity.get("left_out", {}).items() if name not in names}
        begun = replace(
            self.begun_at(identity["served_at"])._with_epsilon(identity["stopping"]["epsilon"]),
            begun_with_lookahead=identity.get("lookahead"),
            left_out=left_out,
            kept_rules=kept_rules_of(identity, self.RULES),
            text_rules=rules_of(identity),
            has_target_forms=has_forms(identity),
            begun_uncut=has_stop_sequences(identity) and not cuts_at_stop(identity),
        )
        return begun if begun.rules == self.rules else replace(begun, tried=[])

    def _with_epsilon(self, begun_with: float) -> Self:
        """Apply the epsilon of the campaign's start, if the file leaves it open."""
        if not self.has_auto_epsilon or begun_with == self.epsilon:
            return self
        stopping = self.spec.stopping.model_copy(update={"epsilon": begun_with})
        return replace(self, spec=self.spec.model_copy(update={"stopping": stopping}), tried=[])

    @property
    def epsilon(self) -> float:
        """`stopping.epsilon` as a number."""
        return float(self.spec.stopping.epsilon)

    @property
    def cuts_at_stop(self) -> bool:
        """Whether outputs are judged only up to their stop sequences.

        This does not depend on how servers handle these.
        """
        return not self.begun_uncut and any(each.sampling.stop for each in self.candidates)

    @classmethod
    def stored_fields(
        cls, look: Look, spec: CampaignSpec, dataset: Dataset, candidates: Sequence[Candidate]
    ) -> JsonObject:
        """Further fields for a stored campaign's selector, without reading any file.

        Raises:
            SpecError: A required value is not stored.
        """
        return {}

    def with_stored_labels(self, session: Session) -> Self:
        """Add the examples with labels in this database, if `size` counts them."""
        return self

    def prepared(self, database: Database) -> Self:
        """Add values that are computed and stored once, before rounds begin."""
        return self

    @property
    def judges(self) -> Sequence[Judge[Never]]:
        """The judge, then the judges of metrics in order."""
        return self.judge, *self.metrics.values()

    @property
    def judge_models(self) -> Sequence[ModelRef]:
        """Judge models, including those of metrics and autoevaluators."""
        return ()

    @property
    def deciding_models(self) -> Sequence[ModelRef]:
        """Those of `judge_models` on which outcomes depend."""
        return self.judge_models

    @property
    def models(self) -> list[ModelRef]:
        """All models to load, those of candidates first."""
        answering = {each.model.name: each.model for each in self.candidates}
        return [*answering.values(), *(each for each in self.judge_models if each.name not in answering)]

    @property
    def models_to_ask(self) -> list[ModelRef]:
        """Models that can receive requests; with `reuse: only`, no models of candidates."""
        return [*self.judge_models] if self.spec.reuse == ONLY else self.models

    @property
    def models_needed(self) -> Sequence[ModelRef]:
        """Models that the campaign needs for any set of candidates, such as judge models."""
        return self.judge_models

    @property
    def served_at(self) -> dict[str, str]:
        """First server URLs, by name, of models identified only by that URL."""
        return {
            each.name: self.moved_from.get(each.name, server_url(each.model_base_url))
            for each in self.models
            if each.provider in REMOTE and each.served_identity is None
        }

    @property
    def judge_id(self) -> str:
        """The judge's type, and a digest of everything that its verdicts depend on."""
        params = dict(self.spec.identity()["judge"])
        del params["type"]
        return f"{self.spec.judge.type}:{sha256([params, self.judge_identity])[:12]}"

    @property
    def judge_identity(self) -> JsonObject:
        """What verdicts depend on besides the spec: code, texts of templates, weights."""
        fingerprints = {each.name: self.judge_fingerprints[each.name] for each in self.deciding_models}
        found = {"code": dict(self.judge_code), "fingerprints": fingerprints}
        return {**self.judge.identity, **{key: value for key, value in found.items() if value}}

    @property
    def takes_more_candidates(self) -> bool:
        """Whether candidates can be added to a campaign that has begun."""
        return False

    @property
    def takes_later_scores(self) -> bool:
        """Whether pairs without an output can be asked again once later rounds were observed."""
        return False

    @property
    def lookahead(self) -> int:
        """Number of rounds in flight besides the first; see `CampaignSpec.lookahead`."""
        if self.spec.lookahead != "auto":
            return self.spec.lookahead
        if self.begun_with_lookahead is not None:
            return self.begun_with_lookahead
        return auto_lookahead(self.models, self.spec.execution, self.spec.batch_size, self.grid)

    @property
    def judges_ahead(self) -> bool:
        """Whether judge models receive each output when it arrives, not whole rounds."""
        return False

    @property
    def spares(self) -> bool:
        """Whether an example needs no verdict if all candidates in question agree on it.

        They agree if they wrote the same output.
        """
        return False

    @property
    def runs_ahead(self) -> bool:
        """Whether more than one step of one round is queued for engines."""
        return self.lookahead > 0 or self.judges_ahead

    @property
    def n_begun(self) -> int:
        """Number of candidates that took part from the beginning."""
        return self.first_rounds.count(0) if self.first_rounds else len(self.candidates)

    @property
    def repeats_examples(self) -> bool:
        """Whether a candidate can be evaluated on an example repeatedly, with new outputs."""
        return False

    @property
    def n_selection_examples(self) -> int:
        """Number of examples that the selector can use."""
        return len(self.dataset.examples)

    @property
    def grid(self) -> int:
        """Number of comparisons of an exhaustive evaluation."""
        return len(self.candidates) * len(self.dataset.examples)

    @property
    def most(self) -> int:
        """Maximum number of comparisons; for certify, maximum number of labels used."""
        budget = self.spec.own_budget
        return self.askable if budget is None else min(budget, self.askable)

    @property
    def askable(self) -> int:
        """Maximum number of comparisons or labels if there is no budget."""
        return self.grid

    @property
    def sides(self) -> str:
        """The candidates, or pairs of them, evaluated on each example, in words."""
        return f"{len(self.candidates)} candidates"

    @property
    def size(self) -> str:
        """The size of the campaign in a few words, for `winnow validate`."""
        examples = count_of(len(self.dataset.examples), "example")
        lookahead = f", {self.lookahead + 1} rounds at once" if self.lookahead else ""
        epsilon = f"; epsilon: auto is {self.epsilon:g}" if self.has_auto_epsilon else ""
        return (
            f"{self.sides} x {examples} = {count_of(self.grid, 'comparison')} in the full grid, "
            f"at most {self._most_words} run, {self.spec.batch_size:,} a round"
            f"{self.samples_words}{lookahead}{self.other_limits}{epsilon}"
            f"{self.held_out_words}{self.compared_words}"
        )

    @property
    def _most_words(self) -> str:
        """Clause on the maximum number of comparisons, such as "500 of them are".

        "them" is the full grid. With repeated duels the maximum can exceed the grid.
        """
        if self.most == self.grid:
            return "all of them are"
        return f"{self.most:,} of them are" if self.most < self.grid else f"{self.most:,} are"

    @property
    def samples_words(self) -> str:
        """The number of outputs per comparison in words; empty for one output.

        It is the middle of a sentence.
        """
        samples = self.spec.samples
        return "" if samples is None else f", each of {samples.n} texts ({samples.reduce})"

    @property
    def held_out_words(self) -> str:
        """The number of held-out examples, as the end of a sentence."""
        return ""

    @property
    def compared_words(self) -> str:
        """The compared value, as the end of a sentence; empty for the plain mean."""
        return ""

    @property
    def other_limits(self) -> str:
        """The limits that the selector does not enforce, as the end of a sentence."""
        own = own_kind(self.spec.objective)
        limits = [f"{WORDS[kind]} {amount(limit)}" for kind, limit in self.spec.limits.items() if kind != own]
        return f"; it ends sooner once it has spent: {', '.join(limits)}" if limits else ""

    def identity(self) -> JsonObject:
        """Everything that must not change: spec fields, data, weights of models, code."""
        return {
            **with_rules(self.spec.identity(), self.rules),
            **({"lookahead": self.lookahead} if "lookahead" in self.spec.identity() else {}),
            **({CUT_AT_STOP: True} if self.cuts_at_stop else {}),
            "dataset_fingerprint": self.dataset.fingerprint,
            "model_fingerprints": {each.model.name: each.fingerprint for each in self.candidates},
            "served_at": self.served_at,
            "few_shot_examples": {
                str(each.names.prompt): sha256(each.template.few_shot.as_record())
                for each in self.candidates
                if each.template.few_shot is not None
            },
            "history_fingerprint": None,
            "judge_identity": self.judge_identity,
            "selector_code": self.selector_code,
            **({"left_out": dict(self.left_out)} if self.left_out else {}),
            **as_stored(self.text_rules, self.models),
            **({TARGET_FORMS: True} if self._needs_target_forms else {}),
            **self.particulars(),
        }

    @property
    def _needs_target_forms(self) -> bool:
        """Whether other accepted forms of targets matter now, or can matter later."""
        if not traits_of(self.spec.objective).looks_for_best:  # labels and prompts come later
            return self.has_target_forms
        return self.has_target_forms and have_forms(each.targets for each in self.dataset.examples)

    @property
    def rules(self) -> JsonView:
        """The campaign's fixed rules, by name; see `tasks.campaign.kept_rules`."""
        return self.new_rules() if self.kept_rules is None else self.kept_rules

    def new_rules(self) -> JsonObject:
        """The rules of a new campaign with this objective, by name."""
        return {}

    def particulars(self) -> JsonObject:
        """Further entries in the identity of campaigns with this objective."""
        return {}

    @property
    def counts_pairs(self) -> bool:
        """Whether the selector's own budget counts observed pairs."""
        return True

    def create_selector(self, limit: int | None = None) -> Selector:
        """Create a selector without observations, for the candidates at the beginning.

        Args:
            limit: Maximum number of pairs, if the selector counts pairs; None for the budget of the spec.
        """
        return campaign_selector(
            self.spec.selector.name,
            n_arms=self.n_begun,
            n_examples=self.n_selection_examples,
            **(common_params(self.spec) | ({} if limit is None else {"budget": limit})),
            **{**self.spec.selector.params, **self.found_params()},
        )

    def unused_selector(self, limit: int | None) -> Selector:
        """A selector without observations; the one of the check if its limit is the same.

        Args:
            limit: As in `create_selector`.
        """
        if self.tried and limit in (None, self.spec.own_budget):
            return self.tried.pop()
        return self.create_selector(limit)

    def found_params(self) -> JsonObject:
        """Parameters of the selector that are not in the spec, or differ from it."""
        return {}

    def at_round(self, selector: Selector, number: int) -> Selector:
        """The selector at a round, after it has observed all earlier rounds.

        Repeated calls have no further effect.
        """
        return selector

    @property
    def told_metrics(self) -> Sequence[str]:
        """Names of the metrics whose values the selector observes."""
        return ()

    def outcomes(self, scores: Values, losses: Sequence[Losses], metrics: Sequence[Values]) -> FloatArray:
        """The outcomes of a round's comparisons for the selector; NaN if unscored.

        Args:
            scores: Score of each comparison.
            losses: Losses of each comparison, for certify.
            metrics: Values of `told_metrics` for each comparison; None for a missing value.
        """
        known = [math.nan if score is None else score for score in scores]
        return np.array(known, dtype=np.float64)

    def labels_used(self, selector: Selector) -> int | None:
        """Number of human labels used so far; None if the campaign uses no labels."""
        return None


def common_params(spec: CampaignSpec) -> JsonObject:
    """Parameters that all selectors of an objective have, from the spec's own keys."""
    common = {
        "batch_size": spec.batch_size,
        "budget": spec.own_budget,
        "delta": spec.stopping.delta,
        "max_unscored": spec.fail_on_error,
    }
    if spec.certify is not None:
        return common | {"alpha": spec.certify.risk}
    traits = traits_of(spec.objective)
    if traits.is_stream and spec.stopping.delta is None:
        del common["delta"]  # the selector then uses its default, for exploration
    if traits.takes_epsilon:
        common["epsilon"] = float(spec.stopping.epsilon)
    return common
