"""`winnow validate`: check a campaign's file without requests, storage or a run."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from winnow.flows.notify.announce import unset_variables
from winnow.flows.run.trust_prompt import Trust, approving, stored_permissions
from winnow.storage.engine.database import open_database
from winnow.storage.errors import StorageError
from winnow.tasks.answer.expected_engines import expected_unsteady
from winnow.tasks.answer.resolution import expected_resolution
from winnow.tasks.answer.status_lines import repeat_lines
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.data.harnesses import harness_of
from winnow.tasks.engines.known_providers import REMOTE
from winnow.tasks.errors import SpecError
from winnow.tasks.plugins.extras import ExtraMissing
from winnow.tasks.queries.warnings.from_spec import begun_twice, hidden_thoughts, own_judge, there_twice
from winnow.tasks.setup.check import require_extras, without_targets
from winnow.tasks.setup.load import check_spec_file, with_stored_labels
from winnow.tasks.setup.task_key import BECOMES
from winnow.tasks.setup.trust import permissions
from winnow.tasks.setup.unintended_settings import likely_mistakes
from winnow.tasks.setup.unread_targets import unread_targets
from winnow.tasks.setup.yaml_file import SpecFile

NOT_SENT = "no request was sent; winnow run first checks that the servers answer and have the models"


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """Facts on a valid campaign before it runs; as a text, the output of `winnow validate`."""

    source: str
    """The campaign's file."""
    name: str
    size: str
    """Clause on the numbers of candidates, examples and comparisons."""
    of_the_task: str | None
    """Keys that the campaign's benchmark sets, as YAML; None without a benchmark."""
    missing: str | None
    """Sentence on required packages that are not installed; None if all are installed."""
    permissions: tuple[str, ...]
    """Acts that need a permission; each begins with "allowed" or "to be allowed"."""
    warnings: tuple[str, ...]
    """Likely mistakes."""
    notes: tuple[tuple[str, str], ...]
    """Pairs of a label and a sentence: power on new examples, and possible differences of another run."""

    def lines(self) -> list[str]:
        """The lines that `winnow validate` prints."""
        task = [] if self.of_the_task is None else [f"keys set by the task:\n{self.of_the_task}"]
        lacking = "until then, winnow run refuses the campaign on this machine"
        missing = [] if self.missing is None else [f"check: {self.missing}; {lacking}"]
        return [
            f"{self.source}: campaign '{self.name}' is sound: {self.size}",
            *task,
            *missing,
            *self.permissions,
            *(f"check: {each}" for each in self.warnings),
            *(f"{word}: {sentence}" for word, sentence in self.notes),
        ]

    def __repr__(self) -> str:
        return "\n".join(self.lines())


def validate(file: SpecFile, *, trust: bool = False) -> Validation:
    """Check a campaign's file and everything that it refers to.

    Args:
        file: The campaign's file.
        trust: Whether to give all permissions, such as to run code and to download data.

    Raises:
        SpecError: If the file is invalid.
    """
    checked = check_spec_file(file, approving(Trust(everything=True)) if trust else None)
    _require_storage_url(file, checked.spec.storage)
    checked = with_stored_labels(checked, is_allowed=trust)
    resolution = expected_resolution(checked)
    return Validation(
        source=str(file.path),
        name=checked.spec.name,
        size=checked.size,
        of_the_task=_of_the_task(checked) if "task" in file.values else None,
        missing=_missing(checked),
        permissions=tuple(_permissions(checked)),
        warnings=tuple(warnings_before(file, checked)),
        notes=(
            *([] if resolution is None else [("new examples", resolution)]),
            *repeat_lines(expected_unsteady(checked)),
            *([("metrics left out", others)] if (others := _omitted_metrics(file, checked)) else []),
            *([("servers", NOT_SENT)] if any(each.provider in REMOTE for each in checked.models) else []),
        ),
    )


def _require_storage_url(file: SpecFile, url: str) -> None:
    """Refuse a URL that is not valid for a results database, without contacting or creating it."""
    try:
        open_database(url, read_only=True).close()
    except StorageError as error:
        raise SpecError(f"{file.locate('storage')}: {error}") from error


def _missing(checked: ResolvedCampaign) -> str | None:
    try:
        require_extras(checked)
    except ExtraMissing as missing:
        return str(missing)
    return None


def _permissions(checked: ResolvedCampaign) -> Iterator[str]:
    stored = stored_permissions()
    for needed in permissions(checked.spec, Path.cwd()):
        head = "allowed" if stored.allows(needed) else "to be allowed"
        yield f"{head}: it would {stored.describe(needed)}"


def warnings_before(file: SpecFile, checked: ResolvedCampaign) -> Iterator[str]:
    """Sentences on likely mistakes in a valid campaign, before it runs."""
    identity = checked.identity()
    for warning in (
        own_judge(identity),
        there_twice(identity),
        hidden_thoughts(identity),
        begun_twice(identity),
    ):
        if warning is not None:
            yield warning.sentence
    yield from checked.dataset.remarks
    for mistake in likely_mistakes(checked):
        yield f"{file.locate(mistake.path)}: {mistake.sentence}"
    if lacking := without_targets(checked):
        yield (
            f"{len(lacking)} of {len(checked.dataset.examples)} examples have no target, such as "
            f"{lacking[0].key!r}, so judge {checked.spec.judge.type} cannot score them: exclude them by "
            "dataset.filter, or add targets"
        )
    yield from unread_targets(checked.spec, checked.dataset.examples)
    yield from unset_variables(checked.spec.execution.notify)


def _omitted_metrics(file: SpecFile, checked: ResolvedCampaign) -> str:
    """Clause on the benchmark's metrics that its judge does not compute.

    Empty without a benchmark, or if the file sets another judge.
    """
    harness = harness_of(checked.spec.dataset)
    if harness is None or "task" not in file.values or "judge" in file.values:
        return ""
    judge = checked.spec.judge.model_dump()
    others = ", ".join(harness.left_out(checked.spec.dataset, judge))
    return f"{others}; task.metric sets the metric that decides" if others else ""


def _of_the_task(checked: ResolvedCampaign) -> str:
    """The keys that a benchmark sets, as YAML with indentation."""
    spec = checked.spec
    without_images = {"dataset": {"images"}}  # of which tasks have none
    values = spec.model_dump(mode="json", exclude_none=True, include={*BECOMES}, exclude=without_images)
    first = spec.models[0].generate_config.model_dump(mode="json", exclude_unset=True)
    shown = {**values, **({"generate_config": first} if first else {})}
    text: str = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=100)
    return "\n".join(f"  {line}" for line in text.splitlines())
