"""Load a campaign's file into a checked campaign; every error names its line.

From a checked campaign, `exhaustive_campaign` derives the campaign that also evaluates everything that it
left out, for a full table of scores. The derived campaign has its own name, so that the first one does not
change. It has the same models, prompts, examples, judge and seed, so that it reuses every output of the first
one.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from winnow.storage.admin.schema import reading
from winnow.storage.errors import StorageError
from winnow.storage.json_types import JsonView
from winnow.storage.objectives import traits_of
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.data.file_digests import recall_digests
from winnow.tasks.data.harnesses import harness_of
from winnow.tasks.data.hub_cache import pinned, revisions_of
from winnow.tasks.data.sources import read_dataset
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.check import check_campaign
from winnow.tasks.setup.yaml_file import SpecFile, parse_spec, read_spec_file
from winnow.tasks.spec.campaign import CampaignSpec, SelectorSpec, StoppingSpec
from winnow.tasks.spec.identity_keys import exhaustive_name
from winnow.tasks.spec.selector_traits import refuse_confidence
from winnow.tasks.spec.stored_spec import LONGEST_NAME

Approve = Callable[[SpecFile, CampaignSpec], None]
"""A function that raises `SpecError` if a campaign needs permissions that were not given."""


Recall = Callable[[CampaignSpec], JsonView | None]
"""A function that loads the file digests stored in an approved campaign's database. It returns the identity
of the stored campaign of this name, or None.
"""


def check_campaign_file(
    path: str, overrides: Sequence[str] = (), approve: Approve | None = None, recall: Recall | None = None
) -> ResolvedCampaign:
    """Load the campaign of a file, and check everything that it refers to.

    Nothing is written.

    Args:
        path: The YAML file.
        overrides: `key=value` settings that override the file's.
        approve: Called before anything that the campaign refers to is used; None approves everything.
        recall: Called when the campaign is approved; None opens its database only for that.

    Raises:
        SpecError: The message gives the file, the line, the key and the remedy.
    """
    return check_spec_file(read_spec_file(path, overrides), approve, recall)


def check_spec_file(
    file: SpecFile, approve: Approve | None = None, recall: Recall | None = None
) -> ResolvedCampaign:
    """Check the campaign described by the values of a file; see `check_campaign_file`."""
    spec = parse_spec(file)
    if approve is not None:
        approve(file, spec)
    is_allowed, dataset = approve is not None, None
    begun = (recall or _recalled)(spec) if _may_look_into(spec.storage, is_allowed=is_allowed) else None
    if begun is None:
        with _located(file):
            refuse_confidence(spec.stopping.delta)
    with _located(file):
        task = _read_task(spec, is_allowed=is_allowed)
    if task is not None:
        spec = parse_spec(file, task)
        with _located(file):
            dataset = read_dataset(spec.dataset, task=task)
    with _located(file):
        revisions = {} if begun is None else revisions_of(begun)
        spec = pinned(spec, revisions, asks_hub=is_allowed)
        checked = check_campaign(spec, dataset, is_allowed=is_allowed)
        if approve is not None:
            for judge in checked.judges:
                judge.try_out()
        return checked


def _read_task(spec: CampaignSpec, *, is_allowed: bool) -> object:
    """Read the dataset's harness task, which runs it once; None without a harness."""
    harness = harness_of(spec.dataset)
    return None if harness is None else harness.read(spec.dataset, is_allowed=is_allowed)


@contextmanager
def _located(file: SpecFile) -> Iterator[None]:
    """Prefix an error about a key with its place in the file."""
    try:
        yield
    except SpecError as error:
        raise SpecError(f"{file.locate(error.path or '')}: {error.message}") from error


def _may_look_into(storage: str, *, is_allowed: bool) -> bool:
    """Whether a database can be read; without approval, only SQLite files can."""
    return is_allowed or storage.startswith("sqlite:")


def _recalled(spec: CampaignSpec) -> JsonView | None:
    """Load the file digests stored in the campaign's database, if it exists.

    Returns:
        The identity of the stored campaign of this name; None if no such campaign is stored.
    """
    with suppress(StorageError), reading(spec.storage) as session:
        recall_digests(session)
        stored = campaign_records.find_campaign(session, spec.name)
        return None if stored is None else stored.spec
    return None


def with_stored_labels(checked: ResolvedCampaign, *, is_allowed: bool) -> ResolvedCampaign:
    """Add the labels in the campaign's database, if `size` reports labels."""
    storage = checked.spec.storage
    reads_labels = traits_of(checked.spec.objective).measures_risk
    if not reads_labels or not _may_look_into(storage, is_allowed=is_allowed):
        return checked
    with suppress(StorageError), reading(storage) as session:
        return checked.with_stored_labels(session)
    return checked


PAIRS_AT_ONCE = 10_000
"""Number of pairs per round.
Every round needs every model, so with few rounds models are loaded rarely.
"""


def exhaustive_campaign(checked: ResolvedCampaign) -> ResolvedCampaign:
    """Derive the campaign that scores every candidate of another one on every example.

    Raises:
        SpecError: The objective is not best-mean, or the name with its suffix is too long.
    """
    spec = checked.spec
    if not traits_of(spec.objective).scores_a_benchmark:
        raise SpecError(
            f"--exhaustive scores every candidate on every example, and '{spec.name}' has objective "
            f"{spec.objective}; remove --exhaustive"
        )
    name = exhaustive_name(spec.name)
    if len(name) > LONGEST_NAME:
        raise SpecError(
            f"--exhaustive: {name} has more than {LONGEST_NAME} characters; choose a shorter name with --fork"
        )
    full = spec.model_copy(
        update={
            "name": name,
            "selector": SelectorSpec(name="row-mean"),
            "judge": spec.judge.judging_all,
            "history": [],
            "holdout": None,
            "groups": None,
            "constraints": [],
            "batch_size": min(checked.grid, PAIRS_AT_ONCE),
            "stopping": StoppingSpec(budget=checked.grid),
        }
    )
    return check_campaign(full, checked.dataset)
