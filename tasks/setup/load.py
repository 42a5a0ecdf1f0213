"""From a campaign's file to a checked campaign, with every complaint traced back to its line.

From a checked campaign there is a way to the one that asks all that it left out, so that there is a full
table of scores. That one has its own name, so that the first one stays as it is, and the same models,
prompts, examples, judge and seed, so that it takes over every text the first one made.
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
from winnow.tasks.spec.same_scores import exhaustive_name
from winnow.tasks.spec.selector_traits import refuse_confidence
from winnow.tasks.spec.stored_spec import LONGEST_NAME

Approve = Callable[[SpecFile, CampaignSpec], None]
"""A function that raises `SpecError` for a campaign that does what nobody has allowed."""


Recall = Callable[[CampaignSpec], JsonView | None]
"""A function that takes over what the database of an approved campaign remembers of files, and returns the
identity of the stored campaign of its name, if there is one."""


def check_campaign_file(
    path: str, overrides: Sequence[str] = (), approve: Approve | None = None, recall: Recall | None = None
) -> ResolvedCampaign:
    """The campaign a file describes, with all it refers to read and understood; nothing is written.

    Args:
        path: The YAML file.
        overrides: `key=value` settings that take the place of the file's.
        approve: Called before anything that the campaign refers to is used; None approves of all.
        recall: Called once the campaign is approved; None opens its database for that alone.

    Raises:
        SpecError: The message names the file, the line, the key and the remedy.
    """
    return check_spec_file(read_spec_file(path, overrides), approve, recall)


def check_spec_file(
    file: SpecFile, approve: Approve | None = None, recall: Recall | None = None
) -> ResolvedCampaign:
    """The campaign that the values of a file describe; see `check_campaign_file`."""
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
    """What only running the campaign's task says, so that it is run once; None if there is nothing."""
    harness = harness_of(spec.dataset)
    return None if harness is None else harness.read(spec.dataset, is_allowed=is_allowed)


@contextmanager
def _located(file: SpecFile) -> Iterator[None]:
    """Begin the error of a key with the place of that key in the file."""
    try:
        yield
    except SpecError as error:
        raise SpecError(f"{file.locate(error.path or '')}: {error.message}") from error


def _may_look_into(storage: str, *, is_allowed: bool) -> bool:
    """Whether a database may be read: a file that nobody has approved of connects to nothing but files."""
    return is_allowed or storage.startswith("sqlite:")


def _recalled(spec: CampaignSpec) -> JsonView | None:
    """Take over what the campaign's database remembers of files, if there is one.

    Returns:
        The identity of the stored campaign of this name; None if there is none.
    """
    with suppress(StorageError), reading(spec.storage) as session:
        recall_digests(session)
        stored = campaign_records.find_campaign(session, spec.name)
        return None if stored is None else stored.spec
    return None


def with_stored_labels(checked: ResolvedCampaign, *, is_allowed: bool) -> ResolvedCampaign:
    """The campaign with the examples that its database has labels of, where its `size` tells of labels."""
    storage = checked.spec.storage
    reads_labels = traits_of(checked.spec.objective).measures_risk
    if not reads_labels or not _may_look_into(storage, is_allowed=is_allowed):
        return checked
    with suppress(StorageError), reading(storage) as session:
        return checked.with_stored_labels(session)
    return checked


PAIRS_AT_ONCE = 10_000
"""Pairs in a round: every round needs every model, and few rounds load them seldom."""


def exhaustive_campaign(checked: ResolvedCampaign) -> ResolvedCampaign:
    """The campaign that scores every candidate on every example of another one.

    Raises:
        SpecError: If the objective is not best-mean, or the name leaves no room for the suffix.
    """
    spec = checked.spec
    if not traits_of(spec.objective).scores_a_benchmark:
        raise SpecError(
            f"--exhaustive scores every candidate on every example, and '{spec.name}' asks for "
            f"{spec.objective}; leave it out"
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
            "history": [],
            "holdout": None,
            "groups": None,
            "constraints": [],
            "batch_size": min(checked.grid, PAIRS_AT_ONCE),
            "stopping": StoppingSpec(budget=checked.grid),
        }
    )
    return check_campaign(full, checked.dataset)
