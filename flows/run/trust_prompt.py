"""Asks a user before a campaign does what users want to be asked about, and remembers the answer.

What was allowed is kept for each user, in `winnow/trust.json` of their configuration folder: a file in the
working folder, or in the results database, could come from whoever the campaign came from. Each entry says
all that it allows, so that it holds for every campaign: a key may go to an origin where it may go already.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from winnow.flows.reports.open_readonly import reading
from winnow.flows.reports.output import tell
from winnow.storage.engine.database import shown_url
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.load import Approve
from winnow.tasks.setup.open_campaign import stored_spec
from winnow.tasks.setup.trust import Permission, permissions, place_of_results
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.yaml_file import SpecFile

TRUSTED = "trusted"

STORAGE = ("storage",)
"""Keys of the permission that the user gives by naming the database of a campaign to resume."""


_allowed_here: set[str] = set()
"""What was allowed in this process, which may be unable to remember it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The permissions beside those that are remembered."""

    everything: bool = False
    """Whether a campaign may do whatever it needs: --trust was given."""
    asks: bool = False
    """Whether a user may be asked, where there is a terminal."""
    how: str = "give --trust"
    """Words that tell how whoever began this allows everything."""


def approving(
    trust: Trust, folder: Path | None = None, *, own: Callable[[str], bool] | None = None
) -> Approve:
    """The function that refuses a campaign's file which needs more than was allowed.

    A permission that the user of the command asked for, by --set or --storage, is allowed with it.

    Args:
        trust: The permissions that were given.
        folder: Folder in which paths begin; None for the working folder.
        own: Whether the user of this process has set a key; None for keys that the command has set.
    """

    def approve(file: SpecFile, spec: CampaignSpec) -> None:
        needed = permissions(spec, folder or Path.cwd())
        is_own = own or file.is_overridden
        asked = [each for each in needed if all(map(is_own, each.keys))]
        _remember(each.text for each in asked if each.keys != STORAGE or trust.everything)
        _require([each for each in needed if each not in asked], trust, str(file.path))

    return approve


def require_stored_trust(storage: str, name: str, trust: Trust) -> None:
    """Refuse a stored campaign that needs more than was allowed; naming a database allows the use of it.

    Raises:
        SpecError: In one sentence that names what is needed.
        StorageError: If the database cannot be read.
    """
    with reading(storage) as session:
        spec = stored_spec(campaign_records.get_campaign(session, name), storage)
    needed = [each for each in permissions(spec, Path.cwd()) if each.keys != STORAGE]
    _require(needed, trust, f"campaign '{name}'")


def require_place(storage: str, how: str) -> None:
    """Refuse a database that somebody else names, unless the user has allowed it.

    Args:
        storage: Its URL.
        how: Words that tell how to allow it.

    Raises:
        SpecError: If nobody has.
    """
    if (needed := place_of_results(storage, Path.cwd())) is not None:
        _require([needed], Trust(how=how), f"the database {shown_url(storage)}")


def _require(needed: Sequence[Permission], trust: Trust, what: str) -> None:
    if not needed:
        return
    known = remembered()
    missing = [each for each in needed if each.text not in known]
    if not missing:
        return
    if not trust.everything and not (trust.asks and _agreed(missing, what)):
        asked = ", and ".join(f"{each.text} ({each.keys[0]})" for each in missing)
        raise SpecError(
            f"{what}: it would {asked}, which nobody has allowed here; {trust.how} if you know where it "
            "comes from"
        )
    _remember({each.text for each in missing})


def _agreed(missing: Sequence[Permission], what: str) -> bool:
    """Whether the user, asked on a terminal where there is one, agrees."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty()):
        return False
    lines = "".join(f"\n  - {each.text} ({each.keys[0]})" for each in missing)
    return typer.confirm(f"{what}: it would{lines}\nallow this from now on?", default=False, err=True)


def allows(act: str) -> bool:
    """Whether this user has allowed an act, now or before; see `tasks.plugins.allowed_code`."""
    return act in _allowed_here or act in remembered()


def trust_file() -> Path:
    """The file that keeps what this user has allowed.

    Raises:
        RuntimeError: If the user has no home.
    """
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(folder) if Path(folder).is_absolute() else Path.home() / ".config"
    return base / "winnow" / "trust.json"


def remembered() -> frozenset[str]:
    """The texts of the permissions that this user has given.

    Raises:
        SpecError: If what was kept of them cannot be read.
    """
    try:
        path = trust_file()
        held = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, RuntimeError):
        return frozenset()
    except (OSError, ValueError) as error:
        raise SpecError(f"{path} cannot be read ({error}); delete it to be asked again") from error
    texts = held.get(TRUSTED) if isinstance(held, dict) else None
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise SpecError(f"{path} is not what Winnow wrote; delete it to be asked again")
    return frozenset(texts)


def _remember(texts: Iterable[str]) -> None:
    """Add to the remembered permissions; where they cannot be written, the next command asks again."""
    known = remembered()
    if not (new := set(texts) - known):
        return
    _allowed_here.update(new)
    try:
        path = trust_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, json.dumps({TRUSTED: sorted(known | new)}, indent=2) + "\n")
    except (OSError, RuntimeError) as error:
        tell(f"what was allowed cannot be remembered and will be asked for again: {error}")


def _replace(path: Path, text: str) -> None:
    """Write a file that others see whole or not at all, and that only its owner can read."""
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
