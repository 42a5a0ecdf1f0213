"""A stored campaign as it was begun: its spec, its values as a file would hold them, its dataset."""

from collections.abc import Iterable

from winnow.storage.json_types import JsonObject
from winnow.storage.records.record_types import CampaignRecord, NewExample
from winnow.tasks.candidates.text_rules import KEY as TEXT_RULES
from winnow.tasks.data.datasets import Dataset, Example
from winnow.tasks.data.garbage_collection import not_collecting
from winnow.tasks.judges.target_forms import KEY as TARGET_FORMS
from winnow.tasks.spec.campaign import CampaignSpec, stored_values
from winnow.tasks.spec.sections.dataset import DatasetSpec
from winnow.tasks.spec.stored_spec import CUT_AT_STOP, LAST_ROUNDS
from winnow.tasks.spec.types_alone import read_by_types

FINGERPRINTS = (
    "dataset_fingerprint",
    "model_fingerprints",
    "served_at",
    "few_shot_examples",
    "history_fingerprint",
    LAST_ROUNDS,
    "held_out_fingerprint",
    "judge_identity",
    "metric_code",
    "metric_fingerprints",
    "selector_code",
    "candidate_costs",
    "betting_rule",
    "embedder_identity",
    "deterministic",
    "left_out",
    TEXT_RULES,
    TARGET_FORMS,
    CUT_AT_STOP,
)
"""Keys of a stored identity beside the spec's own fields."""


def stored_spec(campaign: CampaignRecord, storage: str) -> CampaignSpec:
    """The spec a stored campaign was begun with; `storage` is where it is read from."""
    return CampaignSpec.from_stored(_of_file(campaign), campaign.execution, storage)


def values_of(campaign: CampaignRecord, storage: str) -> JsonObject:
    """A stored campaign as a file would hold it."""
    return stored_values(_of_file(campaign), campaign.execution, storage)


def _of_file(campaign: CampaignRecord) -> JsonObject:
    """The identity of a campaign without what was found when it began."""
    return {key: value for key, value in campaign.spec.items() if key not in FINGERPRINTS}


def stored_dataset(campaign: CampaignRecord, examples: Iterable[NewExample]) -> Dataset:
    """The examples of a stored campaign; its file is not needed any more."""
    spec = read_by_types(DatasetSpec, campaign.spec["dataset"])
    with not_collecting():
        found = [Example(key=row.key, fields=row.fields, targets=tuple(row.targets)) for row in examples]
    return Dataset(
        name=spec.title,
        path=spec.source,
        examples=tuple(found),
        fingerprint=str(campaign.spec["dataset_fingerprint"]),
    )
