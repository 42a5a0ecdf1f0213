"""Spec, file keys and dataset of a stored campaign."""

from collections.abc import Iterable

from winnow.storage.json_types import JsonObject
from winnow.storage.records.record_types import CampaignRecord, NewExample
from winnow.tasks.data.datasets import Dataset, Example
from winnow.tasks.data.garbage_collection import not_collecting
from winnow.tasks.spec.campaign import CampaignSpec, stored_values
from winnow.tasks.spec.identity_keys import FOUND
from winnow.tasks.spec.sections.dataset import DatasetSpec
from winnow.tasks.spec.types_alone import read_by_types


def stored_spec(campaign: CampaignRecord, storage: str) -> CampaignSpec:
    """The spec of a stored campaign at its start.

    Args:
        campaign: The campaign.
        storage: URL of the database that it is read from.
    """
    return CampaignSpec.from_stored(_of_file(campaign), campaign.execution, storage)


def values_of(campaign: CampaignRecord, storage: str) -> JsonObject:
    """The keys of a stored campaign as in a file."""
    return stored_values(_of_file(campaign), campaign.execution, storage)


def _of_file(campaign: CampaignRecord) -> JsonObject:
    """The identity of a campaign without the values determined at its start."""
    return {key: value for key, value in campaign.spec.items() if key not in FOUND}


def stored_dataset(campaign: CampaignRecord, examples: Iterable[NewExample]) -> Dataset:
    """The examples of a stored campaign, without reading its file."""
    spec = read_by_types(DatasetSpec, campaign.spec["dataset"])
    with not_collecting():
        found = [Example(key=row.key, fields=row.fields, targets=tuple(row.targets)) for row in examples]
    return Dataset(
        name=spec.title,
        path=spec.source,
        examples=tuple(found),
        fingerprint=str(campaign.spec["dataset_fingerprint"]),
    )
