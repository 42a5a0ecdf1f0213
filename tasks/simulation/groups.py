"""Groups by which a stored campaign compares candidates, for a simulation on its table."""

from collections.abc import Sequence

from winnow.algorithms.best_mean.groups import Groups
from winnow.algorithms.registry import describe
from winnow.storage.admin.schema import reading
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records
from winnow.tasks.data.datasets import Example
from winnow.tasks.data.score_tables import CAMPAIGN
from winnow.tasks.errors import SpecError
from winnow.tasks.objectives.best_mean.groups import example_groups
from winnow.tasks.spec.sections.objectives import GroupsSpec


def groups_of_campaign(source: str, storage: str) -> Groups | None:
    """The groups of a table's examples; None for a file, and for a campaign that compares plain means.

    Args:
        source: The table as named by the user.
        storage: URL of the results database for `campaign:NAME`.

    Raises:
        StorageError: If the database cannot be read or has no such campaign.
    """
    if not source.startswith(CAMPAIGN):
        return None
    with reading(storage) as session:
        campaign = campaign_records.get_campaign(session, source.removeprefix(CAMPAIGN))
        if (groups := campaign.spec.get("groups")) is None:
            return None
        stored = dataset_records.examples(session, campaign.dataset_id)
    examples = [Example(key=each.key, fields=each.fields, targets=tuple(each.targets)) for each in stored]
    return example_groups(GroupsSpec.model_validate(groups), examples).as_selectors_have_them


def require_groups(source: str, selectors: Sequence[str]) -> None:
    """Refuse selectors that do not support the campaign's groups.

    Raises:
        SpecError: For the first one without groups.
    """
    for name in selectors:
        if "groups" not in {each.name for each in describe(name).parameters}:
            raise SpecError(
                f"--selector {name}: {source} compares candidates by means of groups, which {name} does "
                "not support; remove it"
            )
