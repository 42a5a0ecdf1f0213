"""Clusters of examples that were drawn together: questions of one document, turns of one conversation."""

from collections.abc import Mapping, Sequence

from sqlalchemy.orm import Session

from winnow.storage.records import datasets as dataset_records
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.dotted_names import MISSING, unknown_field, value_of
from winnow.tasks.errors import SpecError
from winnow.tasks.text.canonical_json import canonical_json

PLACE = "dataset.cluster"

LEAST_CLUSTERS = 30
"""Minimum number of clusters for an interval.

With fewer clusters, no claim is made about new examples.
"""


def clusters_of(fields: Sequence[Mapping[str, object]], name: str) -> list[str]:
    """The cluster of each example, by position.

    Args:
        fields: Fields of the examples.
        name: The field that names the cluster, dotted if it is within an object.

    Raises:
        SpecError: If an example is in no cluster.
    """
    found: list[str] = []
    for each in fields:
        value = value_of(each, name)
        if value is MISSING and not found and all(value_of(other, name) is MISSING for other in fields):
            raise SpecError(unknown_field("field", name, fields), path=PLACE)
        if value is MISSING or value is None or isinstance(value, list | dict):
            what = "no value" if value is MISSING or value is None else "a list or an object"
            raise SpecError(
                f"example {len(found) + 1} has {what} in {name}, so its cluster is unknown; give it a text "
                "or a number, or exclude the example by dataset.filter",
                path=PLACE,
            )
        found.append(canonical_json(value))
    return found


def stored_clusters(session: Session, campaign: CampaignRecord) -> list[str] | None:
    """Cluster of each example of a stored campaign, by position.

    None if the campaign has no clusters, because its examples were drawn one by one.
    """
    name: str | None = campaign.spec.get("dataset", {}).get("cluster")
    if name is None:
        return None
    examples = dataset_records.each_example(session, campaign.dataset_id)
    return clusters_of([each.fields for each in examples], name)
