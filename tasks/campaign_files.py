"""From a campaign's file to a checked campaign, with every complaint traced back to its line."""

from collections.abc import Sequence

from tasks.checking import check_campaign
from tasks.errors import SpecError
from tasks.objectives.checked import CheckedCampaign
from tasks.spec_file import parse_spec, read_spec_file


def check_campaign_file(path: str, overrides: Sequence[str] = ()) -> CheckedCampaign:
    """The campaign a file describes, with all it refers to read and understood; nothing is written.

    Args:
        path: The YAML file.
        overrides: `key=value` settings that take the place of the file's.

    Raises:
        SpecError: The message names the file, the line, the key and the remedy.
    """
    file = read_spec_file(path, overrides)
    spec = parse_spec(file)
    try:
        return check_campaign(spec)
    except SpecError as error:
        raise SpecError(f"{file.locate(error.path or '')}: {error.message}") from error
