"""A campaign that was checked: all that follows from its file and its data, before and apart from any run."""

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
from winnow.tasks.spec.stored_spec import (
    CUT_AT_STOP,
    ONLY,
    cuts_at_stop,
    has_stop_sequences,
    own_kind,
)
from winnow.tasks.text.canonical_json import sha256
from winnow.tasks.text.phrases import amount, count_of


@dataclass(frozen=True, kw_only=True)
class ResolvedCampaign(ABC):
    """A campaign whose every part was found, read and understood; each objective has a class of its own."""

    RULES: ClassVar[tuple[str, ...]] = ()
    """Names of the rules that campaigns of this objective keep; see `tasks.campaign.kept_rules`."""

    spec: CampaignSpec
    dataset: Dataset
    candidates: Sequence[Candidate]
    """The candidates, by arm."""
    judge: Judge[Never]
    """The judge of outputs or of pairs, as the objective has it."""
    judge_code: Mapping[str, object] = field(default_factory=dict)
    """The code of the judge, as JSON values: a version, or digests of a plug-in's files."""
    selector_code: Mapping[str, str] | None = None
    """The code of a selector that was installed as a plug-in, as digests; None for one of Winnow's."""
    judge_fingerprints: Mapping[str, str] = field(default_factory=dict)
    """Fingerprints of the weights of each of `judge_models`, by its name."""
    first_rounds: Sequence[int] = ()
    """The round that each candidate first took part in, by arm; empty while all did from the beginning."""
    weighing: Weighing | None = None
    """The rules for the texts that models weigh; None if they write texts of their own."""
    metrics: Mapping[str, Judge[Sample]] = field(default_factory=dict)
    """Further judges of outputs by name, whose values decide only where they have to meet constraints."""
    begun_with_lookahead: int | None = None
    """The lookahead that the campaign began with, a number for `auto` too; None before it has begun."""
    has_auto_epsilon: bool = False
    """Whether its file leaves `stopping.epsilon` to the number of examples; in `spec` it is a number."""
    kept_rules: JsonView | None = None
    """The rules that it began with; None before it has begun. See `rules`."""
    text_rules: int = NEWEST
    """The rules by which texts are made; see `tasks.candidates.text_rules`."""
    has_target_forms: bool = True
    """Whether targets count in their other forms too; see `tasks.judges.target_forms`."""
    begun_uncut: bool = False
    """Whether it began when outputs were judged whole, where a server ignored stop sequences or kept them."""
    moved_from: Mapping[str, str] = field(default_factory=dict)
    """The server at which a model was first asked, by its name, where another one is asked now."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Models of the file that the campaign began without and that have not joined, and the cause of each."""
    tried: list[Selector] = field(default_factory=list, repr=False, compare=False)
    """The selector that the check made, until `unused_selector` returns it."""

    @classmethod
    @abstractmethod
    def check(cls, spec: CampaignSpec, dataset: Dataset, *, is_allowed: bool = True) -> Self:
        """Find, read and understand what the spec refers to beside the data.

        Args:
            spec: The campaign.
            dataset: Its examples.
            is_allowed: See `tasks.data.sources.read_dataset`.

        Raises:
            SpecError: With the key, what is wrong and what to do.
        """

    def arranged(self, names: Sequence[str], first_rounds: Sequence[int]) -> Self:
        """The campaign with its candidates as stored, by arm; only joining can change their order."""
        if not self.takes_more_candidates:
            return self
        by_name = {each.name: each for each in self.candidates}
        found = replace(self, candidates=[by_name[name] for name in names], first_rounds=list(first_rounds))
        return found if found.n_begun == self.n_begun else replace(found, tried=[])

    def begun_at(self, servers: Mapping[str, str]) -> Self:
        """The campaign with its models known by the servers that it began with; see `served_at`.

        What a served model is follows from where it was first asked. Whether the server that is asked now
        answers as that one did, its canary tells before any of its texts is used.
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
        """The campaign with what was settled when it began, by its stored identity."""
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
        """The campaign with the epsilon that it began with, if its file leaves that open."""
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
        """Whether outputs are judged up to their stop sequences alone, whatever servers do with these."""
        return not self.begun_uncut and any(each.sampling.stop for each in self.candidates)

    @classmethod
    def stored_fields(
        cls,
        look: Look,
        spec: CampaignSpec,
        dataset: Dataset,
        candidates: Sequence[Candidate],
    ) -> JsonObject:
        """The further fields of a stored campaign that its selector depends on, without reading any file.

        Raises:
            SpecError: If what the selector depends on is not stored.
        """
        return {}

    def with_stored_labels(self, session: Session) -> Self:
        """The campaign with the examples that have labels in this database, if its `size` counts them."""
        return self

    def prepared(self, database: Database) -> Self:
        """The campaign with all that is worked out once and kept in the database, before rounds begin."""
        return self

    @property
    def judges(self) -> Sequence[Judge[Never]]:
        """The judge, then those of metrics in their order."""
        return self.judge, *self.metrics.values()

    @property
    def judge_models(self) -> Sequence[ModelRef]:
        """The models that judge, those of metrics too, or answer instead of a human."""
        return ()

    @property
    def deciding_models(self) -> Sequence[ModelRef]:
        """Those of `judge_models` that outcomes come from."""
        return self.judge_models

    @property
    def models(self) -> list[ModelRef]:
        """Every model there is to load, the candidates' first."""
        answering = {each.model.name: each.model for each in self.candidates}
        return [*answering.values(), *(each for each in self.judge_models if each.name not in answering)]

    @property
    def models_to_ask(self) -> list[ModelRef]:
        """The models that may be asked: under `reuse: only` no candidate's."""
        return [*self.judge_models] if self.spec.reuse == ONLY else self.models

    @property
    def models_needed(self) -> Sequence[ModelRef]:
        """The models that the campaign cannot do without, whichever candidates there are."""
        return self.judge_models

    @property
    def served_at(self) -> dict[str, str]:
        """URLs at which models were first asked that are known by their server's URL alone, by model name."""
        return {
            each.name: self.moved_from.get(each.name, server_url(each.model_base_url))
            for each in self.models
            if each.provider in REMOTE and each.served_identity is None
        }

    @property
    def judge_id(self) -> str:
        """The judge's type and a digest of all that its verdicts depend on."""
        params = dict(self.spec.identity()["judge"])
        del params["type"]
        return f"{self.spec.judge.type}:{sha256([params, self.judge_identity])[:12]}"

    @property
    def judge_identity(self) -> JsonObject:
        """All that verdicts depend on beside the spec: code, templates' texts, models' weights."""
        fingerprints = {each.name: self.judge_fingerprints[each.name] for each in self.deciding_models}
        found = {"code": dict(self.judge_code), "fingerprints": fingerprints}
        return {**self.judge.identity, **{key: value for key, value in found.items() if value}}

    @property
    def takes_more_candidates(self) -> bool:
        """Whether candidates may join once the campaign has begun."""
        return False

    @property
    def lookahead(self) -> int:
        """Number of rounds in flight beside the first; see `CampaignSpec.lookahead`."""
        if self.spec.lookahead != "auto":
            return self.spec.lookahead
        if self.begun_with_lookahead is not None:
            return self.begun_with_lookahead
        return auto_lookahead(self.models, self.spec.execution, self.spec.batch_size, self.grid)

    @property
    def judges_ahead(self) -> bool:
        """Whether models that judge are asked about each text as it comes, and not about whole rounds."""
        return False

    @property
    def runs_ahead(self) -> bool:
        """Whether engines have more in hand than one step of one round."""
        return self.lookahead > 0 or self.judges_ahead

    @property
    def n_begun(self) -> int:
        """Number of candidates that took part from the beginning."""
        return self.first_rounds.count(0) if self.first_rounds else len(self.candidates)

    @property
    def repeats_examples(self) -> bool:
        """Whether a candidate may be asked an example again, and answers it again."""
        return False

    @property
    def n_selection_examples(self) -> int:
        """Number of examples that the algorithm has numbers for."""
        return len(self.dataset.examples)

    @property
    def grid(self) -> int:
        """Comparisons an exhaustive evaluation would need."""
        return len(self.candidates) * len(self.dataset.examples)

    @property
    def most(self) -> int:
        """Comparisons that may be made, or labels that may be used where it certifies, at most."""
        budget = self.spec.own_budget
        return self.askable if budget is None else min(budget, self.askable)

    @property
    def askable(self) -> int:
        """The most comparisons or labels where no budget limits them."""
        return self.grid

    @property
    def sides(self) -> str:
        """The candidates that examples are crossed with, in words."""
        return f"{len(self.candidates)} candidates"

    @property
    def size(self) -> str:
        """The size of the campaign in a few words, for the command that checks a file."""
        examples = count_of(len(self.dataset.examples), "example")
        return (
            f"{self.sides} x {examples} = {count_of(self.grid, 'comparison')} in the full grid, "
            f"at most {self._most_words} run, {self.spec.batch_size:,} a round"
            f"{self.samples_words}{self.lookahead_words}{self.other_limits}{self.epsilon_words}"
            f"{self.held_out_words}"
            f"{self.compared_words}"
        )

    @property
    def _most_words(self) -> str:
        """The number of comparisons that may be made, in words; repeated duels may exceed the grid."""
        if self.most == self.grid:
            return "all of them are"
        return f"{self.most:,} of them are" if self.most < self.grid else f"{self.most:,} are"

    @property
    def samples_words(self) -> str:
        """The number of texts that a comparison takes where that is not one, as the middle of a sentence."""
        samples = self.spec.samples
        return "" if samples is None else f", each of {samples.n} texts ({samples.reduce})"

    @property
    def lookahead_words(self) -> str:
        """The number of rounds in flight at once, as the middle of a sentence."""
        return f", {self.lookahead + 1} rounds at once" if self.lookahead else ""

    @property
    def epsilon_words(self) -> str:
        """The epsilon that the number of examples sets, as the end of a sentence; empty for any other."""
        return f"; epsilon: auto is {self.epsilon:g}" if self.has_auto_epsilon else ""

    @property
    def held_out_words(self) -> str:
        """The number of examples held out, as the end of a sentence."""
        return ""

    @property
    def compared_words(self) -> str:
        """The measure that candidates are compared by, as a sentence's end; empty for the plain mean."""
        return ""

    @property
    def other_limits(self) -> str:
        """The other limits that end the campaign, as the end of a sentence."""
        own = own_kind(self.spec.objective)
        limits = [f"{WORDS[kind]} {amount(limit)}" for kind, limit in self.spec.limits.items() if kind != own]
        return f"; it ends sooner once it has spent: {', '.join(limits)}" if limits else ""

    def identity(self) -> JsonObject:
        """All that may not change: the spec's identity fields, the data, the models' weights, code."""
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
        """Whether it makes a difference that targets count in their other forms, or may make one later."""
        if not traits_of(self.spec.objective).looks_for_best:  # labels and prompts come later
            return self.has_target_forms
        return self.has_target_forms and have_forms(each.targets for each in self.dataset.examples)

    @property
    def rules(self) -> JsonView:
        """The rules that the campaign keeps, by name; see `tasks.campaign.kept_rules`."""
        return self.new_rules() if self.kept_rules is None else self.kept_rules

    def new_rules(self) -> JsonObject:
        """The rules of a campaign of this objective that begins now, by name."""
        return {}

    def particulars(self) -> JsonObject:
        """Further entries in the identity of this objective's campaigns."""
        return {}

    @property
    def counts_pairs(self) -> bool:
        """Whether the algorithm's own budget counts the pairs that it is told."""
        return True

    def create_selector(self, limit: int | None = None) -> Selector:
        """A selector that was told nothing yet, of the candidates that took part from the beginning.

        Args:
            limit: Pairs that it may ask, where it counts them; None for the budget of the spec.
        """
        return campaign_selector(
            self.spec.selector.name,
            n_arms=self.n_begun,
            n_examples=self.n_selection_examples,
            **(common_params(self.spec) | ({} if limit is None else {"budget": limit})),
            **{**self.spec.selector.params, **self.found_params()},
        )

    def unused_selector(self, limit: int | None) -> Selector:
        """A selector that observed no round: the one of the check if its limit is the same, else a new one.

        Args:
            limit: See `create_selector`.
        """
        if self.tried and limit in (None, self.spec.own_budget):
            return self.tried.pop()
        return self.create_selector(limit)

    def found_params(self) -> JsonObject:
        """Parameters of the selector that are not in the spec as they are."""
        return {}

    def at_round(self, selector: Selector, number: int) -> Selector:
        """The selector as it takes part in a round, told all rounds before it; safe to call again."""
        return selector

    @property
    def told_metrics(self) -> Sequence[str]:
        """The metrics whose values the selector is told, by name."""
        return ()

    def outcomes(self, scores: Values, losses: Sequence[Losses], metrics: Sequence[Values]) -> FloatArray:
        """The outcomes of a round's comparisons for a selector, NaN if one was not scored.

        Args:
            scores: Score of each comparison.
            losses: Losses of each comparison, to certify.
            metrics: Values of `told_metrics` for each comparison, None if there is none.
        """
        known = [math.nan if score is None else score for score in scores]
        return np.array(known, dtype=np.float64)

    def labels_used(self, selector: Selector) -> int | None:
        """Human labels that were spent; None if the campaign uses none."""
        return None


def common_params(spec: CampaignSpec) -> JsonObject:
    """The parameters every selector of an objective shares, from the spec's own keys."""
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
        del common["delta"]  # without one, exploration is set for the algorithm's own
    if traits.takes_epsilon:
        common["epsilon"] = float(spec.stopping.epsilon)
    return common
