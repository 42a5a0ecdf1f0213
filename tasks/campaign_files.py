"""From a campaign's file to a checked campaign, with every complaint traced back to its line."""

from collections.abc import Callable, Sequence

from tasks.checking import check_campaign
from tasks.errors import SpecError
from tasks.objectives.checked import CheckedCampaign
from tasks.spec import CampaignSpec
from tasks.spec_file import SpecFile, parse_spec, read_spec_file

Approve = Callable[[SpecFile, CampaignSpec], None]
"""Refuses, by a SpecError, a campaign that does what nobody has allowed."""


def check_campaign_file(
    path: str, overrides: Sequence[str] = (), approve: Approve | None = None
) -> CheckedCampaign:
    """The campaign a file describes, with all it refers to read and understood; nothing is written.

    Args:
        path: The YAML file.
        overrides: `key=value` settings that take the place of the file's.
        approve: Called before anything that the campaign refers to is used; None approves of all.

    Raises:
        SpecError: The message names the file, the line, the key and the remedy.
    """
    file = read_spec_file(path, overrides)
    spec = parse_spec(file)
    if approve is not None:
        approve(file, spec)
    try:
        return check_campaign(spec)
    except SpecError as error:
        raise SpecError(f"{file.locate(error.path or '')}: {error.message}") from error
