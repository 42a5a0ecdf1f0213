"""The candidate that a gate holds the others against."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from winnow.storage.json_types import JsonView
from winnow.tasks.errors import SpecError, unknown_name

if TYPE_CHECKING:  # `winnow status` asks for `baseline_name` alone
    from winnow.tasks.candidates.candidates import Candidate
    from winnow.tasks.spec.campaign import CampaignSpec

GATE = "gate"
"""The selector that compares candidates with a baseline in the place of finding the best."""
PLACE = "selector.params.baseline"


def baseline_name(selector: JsonView) -> str | None:
    """Whom a campaign's selector, as it is stored, holds the others against; None where it is no gate."""
    return str(selector["params"]["baseline"]) if selector["name"] == GATE else None


def check_baseline(spec: "CampaignSpec", candidates: "Sequence[Candidate]") -> int | None:
    """The arm that a gate holds the others against; None for other selectors.

    Raises:
        SpecError: If a gate names no candidate, or may be wrong with a probability that nobody gave.
    """
    if spec.selector.name != GATE:
        return None
    names = [each.name for each in candidates]
    name = spec.selector.params.get("baseline")
    if name is None:
        raise SpecError(
            f"gate holds the others against one of the candidates; name it, one of: {', '.join(names)}",
            path=PLACE,
        )
    if name not in names:
        raise SpecError(unknown_name("candidate", str(name), names), path=PLACE)
    if spec.stopping.delta is None:
        raise SpecError(
            "gate needs delta, the chance that anything it says is wrong; add it", path="stopping.delta"
        )
    return names.index(name)
