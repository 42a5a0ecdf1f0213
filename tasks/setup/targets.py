"""Whether a judge that compares outputs with targets has any to compare with."""

from collections.abc import Sequence

from winnow.tasks.data.datasets import Example
from winnow.tasks.errors import SpecError
from winnow.tasks.judges.protocol import Sample, lacks_target
from winnow.tasks.judges.registry import BUILT_IN
from winnow.tasks.objectives.resolved import ResolvedCampaign
from winnow.tasks.objectives.scored import ScoredCampaign

TRIED = (".judges.rules.", ".judges.isolated.")
"""Where the judges are that nothing has to be asked or allowed for."""
NOT_TRIED = ("human", "python")
TARGETS_COME_LATER = "certify"
"""The objective whose labels may still be given."""


def check_targets(checked: ResolvedCampaign) -> None:
    """Refuse a dataset without targets where every comparison would be unscored for it.

    Raises:
        SpecError: With the judge and the field.
    """
    lacking = without_targets(checked)
    if len(lacking) == len(checked.dataset.examples):
        raise SpecError(
            f"judge {checked.spec.judge.type} compares outputs with targets, and no example has one; name "
            "the field that holds them, or choose a judge that needs none",
            path="dataset.fields.target",
        )


def without_targets(checked: ResolvedCampaign) -> Sequence[Example]:
    """The examples that no output can be scored on, as they have no target and their judge needs one.

    Known of the judges that are rules or libraries; of the others none is named.
    """
    if not isinstance(checked, ScoredCampaign) or checked.spec.objective == TARGETS_COME_LATER:
        return ()
    name = checked.spec.judge.type
    if name in NOT_TRIED or not any(place in BUILT_IN.get(name, "") for place in TRIED):
        return ()
    lacking = checked.dataset.without_targets
    if not lacking:
        return ()
    sample = Sample(output="1", fields=lacking[0].fields, example=lacking[0].key)
    return lacking if lacks_target(checked.judge, sample) else ()
