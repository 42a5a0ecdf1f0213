"""Checking a campaign: all it refers to is found, read and understood before the first row is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from algorithms.errors import AlgorithmError
from algorithms.protocols import FloatArray, Selector
from algorithms.registry import create_selector, describe
from tasks.candidates import Candidate, build_candidates
from tasks.certifying.checking import Certification, certify_section, check_certification
from tasks.certifying.parts import Parts
from tasks.certifying.selector import LabelSelector
from tasks.datasets import Dataset, load_dataset
from tasks.engines.protocol import ModelRef
from tasks.errors import SpecError
from tasks.features import chosen_features
from tasks.history import fingerprint_history, load_history
from tasks.identity import fingerprint_model, sha256
from tasks.judges.protocol import Judge
from tasks.judges.registry import create_judge
from tasks.pair_judges.protocol import PairJudge
from tasks.pair_judges.registry import create_pair_judge
from tasks.spec import CampaignSpec, DatasetSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCampaign:
    """A campaign whose every part was found, read and understood."""

    spec: CampaignSpec
    dataset: Dataset
    candidates: Sequence[Candidate]
    judge: Judge | PairJudge
    judge_fingerprints: Mapping[str, str]
    """What the weights of each model that judges are, by its name."""
    history: FloatArray | None
    """Earlier scores on the examples, shape (M, n), where the spec names some."""
    certification: Certification | None = None
    """What is certified, for the objective certify: then candidates are in testing order."""

    @property
    def output_judge(self) -> Judge:
        """The judge of a benchmark."""
        return cast(Judge, self.judge)

    @property
    def pair_judge(self) -> PairJudge:
        """The judge of duels."""
        return cast(PairJudge, self.judge)

    @property
    def judge_models(self) -> Sequence[ModelRef]:
        """The models that judge, or answer in the place of a human."""
        return _models_of(self.spec, self.judge, self.certification)

    @property
    def models(self) -> list[ModelRef]:
        """Every model there is to load, the candidates' first."""
        answering = {each.model.name: each.model for each in self.candidates}
        return [*answering.values(), *(each for each in self.judge_models if each.name not in answering)]

    @property
    def judge_id(self) -> str:
        """The judge's type and a digest of all that its verdicts depend on."""
        params = self.spec.judge.params
        whole = [params, self.judge_identity] if self.judge_identity else params
        return f"{self.spec.judge.type}:{sha256(whole)[:12]}"

    @property
    def judge_identity(self) -> dict[str, Any]:
        """What a judge's verdicts depend on beside the spec: templates' texts, models' weights."""
        fingerprints = {"fingerprints": dict(self.judge_fingerprints)} if self.judge_fingerprints else {}
        return {**self.pair_judge.identity, **fingerprints} if self._is_of_duels else fingerprints

    @property
    def _is_of_duels(self) -> bool:
        return self.spec.objective == "best-duel"

    @property
    def repeats_meetings(self) -> bool:
        """Whether a candidate may meet an example again, and answers it anew."""
        return self.spec.objective == "best-duel" and self.spec.fresh_generations

    @property
    def grid(self) -> int:
        """Comparisons an exhaustive evaluation would need: all candidates, or pairs, on all examples."""
        k = len(self.candidates)
        side = k * (k - 1) // 2 if self.spec.objective == "best-duel" else k
        return side * len(self.dataset.examples)

    def identity(self) -> dict[str, Any]:
        """What may not change: the spec's identity fields, the data's content and the models' weights."""
        return {
            **self.spec.identity(),
            "dataset_fingerprint": self.dataset.fingerprint,
            "model_fingerprints": {each.model.name: each.fingerprint for each in self.candidates},
            "history_fingerprint": fingerprint_history(self.history),
            "judge_identity": self.judge_identity or None,
            **({} if self.certification is None else {"candidate_costs": dict(self.certification.costs)}),
        }

    def create_selector(self) -> Selector:
        """A selector that was told nothing yet."""
        if self.certification is not None:
            return certifying_selector(self.spec, len(self.candidates), self.certification.parts)
        return create_selector(
            self.spec.selector.name,
            n_arms=len(self.candidates),
            n_examples=len(self.dataset.examples),
            **common_params(self.spec),
            **{**self.spec.selector.params, **chosen_features(self.spec, self.candidates)},
            **({} if self.history is None else {"history": self.history}),
        )


def check_campaign(spec: CampaignSpec, dataset: Dataset | None = None) -> CheckedCampaign:
    """Read and check all that a campaign refers to; nothing is written.

    Args:
        spec: The campaign.
        dataset: Its data where they are known already, as on resume; else its file is read.

    Raises:
        SpecError: With the key, what is wrong and what to do.
    """
    dataset = dataset or read_dataset(spec.dataset)
    create = create_pair_judge if spec.objective == "best-duel" else create_judge
    judge = create(spec.judge.type, **spec.judge.params)
    candidates = build_candidates(spec, dataset.field_names)
    certification = None
    if spec.objective == "certify":
        certification, candidates = check_certification(spec, dataset, candidates)
    judging = _models_of(spec, judge, certification)
    checked = CheckedCampaign(
        spec=spec,
        dataset=dataset,
        candidates=candidates,
        judge=judge,
        judge_fingerprints={model.name: fingerprint_model(model) for model in judging},
        history=load_history(spec.history, spec.storage, dataset),
        certification=certification,
    )
    _check_selector(checked)
    _render_everything(checked)
    return checked


def read_dataset(spec: DatasetSpec) -> Dataset:
    """The examples a spec points to.

    Raises:
        DatasetError: If the file cannot be read or does not hold what the spec says.
    """
    return load_dataset(spec.path, spec.fields.model_dump(), spec.limit)


def common_params(spec: CampaignSpec) -> dict[str, Any]:
    """The parameters every selector of an objective shares, from the spec's own keys."""
    common = {
        "batch_size": spec.batch_size,
        "budget": spec.stopping.budget,
        "delta": spec.stopping.delta,
        "max_unscored": spec.fail_on_error,
    }
    if spec.objective == "certify":
        return common | {"alpha": certify_section(spec).risk}
    return common | {"epsilon": spec.stopping.epsilon} if spec.objective == "best-mean" else common


def certifying_selector(spec: CampaignSpec, n_arms: int, parts: Parts, **more: object) -> LabelSelector:
    """A selector of a campaign that certifies, told nothing yet; `more` takes the place of its parameters."""
    params = {**common_params(spec), **spec.selector.params, **more}
    inner = create_selector(spec.selector.name, n_arms=n_arms, n_examples=len(parts.labellable), **params)
    return LabelSelector(inner, parts.labellable)


def _models_of(
    spec: CampaignSpec, judge: Judge | PairJudge, certification: Certification | None
) -> Sequence[ModelRef]:
    if certification is not None:
        return () if certification.autoevaluator is None else (certification.autoevaluator.model,)
    return cast(PairJudge, judge).models if spec.objective == "best-duel" else ()


def _check_selector(checked: CheckedCampaign) -> None:
    spec = checked.spec
    for clash in sorted(spec.selector.params.keys() & common_params(spec).keys()):
        raise SpecError(
            f"{clash} is set for every selector by the spec's own keys "
            "(batch_size, stopping, fail_on_error, certify); set it there",
            path=f"selector.params.{clash}",
        )
    try:
        objective = describe(spec.selector.name).objective
        if objective != spec.objective:
            raise SpecError(
                f"{spec.selector.name} answers {objective}, the campaign asks for {spec.objective}; "
                "`winnow selectors` lists what fits",
                path="selector.name",
            )
        checked.create_selector()
    except AlgorithmError as error:
        raise SpecError(str(error), path="selector") from error


def _render_everything(checked: CheckedCampaign) -> None:
    """Render every prompt once: a template that fails on one example fails before anything runs."""
    for candidate in {each.names[1:3]: each for each in checked.candidates}.values():
        for example in checked.dataset.examples:
            candidate.prompt(example.fields, example.key)
