"""Checking a campaign: all it refers to is found, read and understood before the first row is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from algorithms.errors import AlgorithmError
from algorithms.protocols import FloatArray, Selector
from algorithms.registry import create_selector, describe
from tasks.candidates import Candidate, build_candidates
from tasks.datasets import Dataset, load_dataset
from tasks.errors import SpecError
from tasks.history import fingerprint_history, load_history
from tasks.judges.protocol import Judge
from tasks.judges.registry import create_judge
from tasks.spec import CampaignSpec, DatasetSpec
from tasks.templates import render


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCampaign:
    """A campaign whose every part was found, read and understood."""

    spec: CampaignSpec
    dataset: Dataset
    candidates: Sequence[Candidate]
    judge: Judge
    history: FloatArray | None
    """Earlier scores on the examples, shape (M, n), where the spec names some."""

    @property
    def grid(self) -> int:
        """Comparisons an exhaustive evaluation would need."""
        return len(self.candidates) * len(self.dataset.examples)

    def identity(self) -> dict[str, Any]:
        """What may not change: the spec's identity fields, the data's content and the models' weights."""
        return {
            **self.spec.identity(),
            "dataset_fingerprint": self.dataset.fingerprint,
            "model_fingerprints": {each.model.name: each.fingerprint for each in self.candidates},
            "history_fingerprint": fingerprint_history(self.history),
        }

    def create_selector(self) -> Selector:
        """A selector that was told nothing yet."""
        return create_selector(
            self.spec.selector.name,
            n_arms=len(self.candidates),
            n_examples=len(self.dataset.examples),
            **_common_params(self.spec),
            **self.spec.selector.params,
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
    checked = CheckedCampaign(
        spec=spec,
        dataset=dataset,
        candidates=build_candidates(spec, dataset.field_names),
        judge=create_judge(spec.judge.type, **spec.judge.params),
        history=load_history(spec.history, spec.storage, dataset),
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


def _common_params(spec: CampaignSpec) -> dict[str, Any]:
    """The parameters every selector shares, from the spec's own keys."""
    return {
        "batch_size": spec.batch_size,
        "budget": spec.stopping.budget,
        "delta": spec.stopping.delta,
        "epsilon": spec.stopping.epsilon,
        "max_unscored": spec.fail_on_error,
    }


def _check_selector(checked: CheckedCampaign) -> None:
    spec = checked.spec
    for clash in sorted(spec.selector.params.keys() & _common_params(spec).keys()):
        raise SpecError(
            f"{clash} is set for every selector by the spec's own keys "
            "(batch_size, stopping, fail_on_error); set it there",
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
    templates = {candidate.template_source: candidate.template for candidate in checked.candidates}
    for template in templates.values():
        for example in checked.dataset.examples:
            render(template, example.fields, example.key)
