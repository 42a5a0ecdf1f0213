"""Questions to users before a campaign uses permissions, and a record of the answers.

Permissions are kept for each user in `winnow/trust.json` of their configuration folder; a file in the working
folder or in the results database could be from the campaign's author. Each entry is complete, so that it
applies to every campaign: an origin that may receive a key may always receive it. Entries for code contain
digests of its files, so that changed code needs a new permission.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import typer

from winnow.flows.reports.output import can_ask, tell
from winnow.storage.engine.database import shown_url
from winnow.tasks.campaign.campaign import Campaign
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.load import Approve
from winnow.tasks.setup.trust import Permission, permissions, place_of_results
from winnow.tasks.setup.yaml_file import SpecFile
from winnow.tasks.spec.campaign import CampaignSpec

TRUSTED, DIGESTS = "trusted", "digests"

STORAGE = ("storage",)
"""Keys of the permission that users give by naming the database of a campaign to resume."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """The permissions that a user has given."""

    texts: frozenset[str] = frozenset()
    digests: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Text of a permission -> digests of its code files."""

    def allows(self, needed: Permission) -> bool:
        """Whether an act was allowed, with the code in its present state."""
        return needed.text in self.texts and self.digests.get(needed.text) == needed.digests

    def asked(self, needed: Permission) -> str:
        """An act as a clause after "it would", with the key that requests it and the changed code files."""
        changed = ""
        if needed.text in self.texts and not self.allows(needed):
            before, now = self.digests.get(needed.text), needed.digests or {}
            changed = "; its code was not looked at when it was allowed"
            if before is not None:
                names = sorted({name for name, _ in before.items() ^ now.items()})
                changed = f"; changed since it was allowed: {', '.join(map(ascii, names))}"
        return f"{needed.text} ({needed.keys[0]}{changed})"

    def with_these(self, permissions: Iterable[Permission]) -> "Remembered":
        """These permissions and additional ones."""
        texts, digests = set(self.texts), dict(self.digests)
        for each in permissions:
            texts.add(each.text)
            digests.pop(each.text, None)
            if each.digests is not None:
                digests[each.text] = each.digests
        return Remembered(frozenset(texts), digests)


_allowed_here = Remembered()
"""The permissions given in this process, which may be unable to store them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Permissions in addition to stored ones."""

    everything: bool = False
    """Whether a campaign has all permissions, because --trust was given."""
    asks: bool = False
    """Whether to ask the user, if the command runs on a terminal."""
    how: str = "give --trust"
    """Words on how the user can allow everything."""


def approving(
    trust: Trust, folder: Path | None = None, *, own: Callable[[str], bool] | None = None
) -> Approve:
    """A function that refuses a campaign's file if it needs permissions that were not given.

    Options such as --set and --storage imply the permissions that they need.

    Args:
        trust: The permissions that were given.
        folder: Folder that paths are relative to; None for the working folder.
        own: Whether the user of this process has set a key; None for keys that the command has set.
    """

    def approve(file: SpecFile, spec: CampaignSpec) -> None:
        needed = permissions(spec, folder or Path.cwd())
        is_own = own or file.is_overridden
        asked = [each for each in needed if all(map(is_own, each.keys))]
        _remember([each for each in asked if each.keys != STORAGE or trust.everything])
        _require([each for each in needed if each not in asked], trust, str(file.path))

    return approve


def require_stored_trust(campaign: Campaign, trust: Trust) -> None:
    """Refuse a stored campaign that needs permissions not given; naming a database allows its use.

    Raises:
        SpecError: If permissions are missing; one sentence names them.
    """
    needed = [each for each in permissions(campaign.spec, Path.cwd()) if each.keys != STORAGE]
    _require(needed, trust, f"campaign '{campaign.name}'")


def require_place(storage: str, how: str) -> None:
    """Refuse a database that was not named by the user, unless its use is allowed.

    `how` says how to allow it.

    Raises:
        SpecError: If the use of the database is not allowed.
    """
    if (needed := place_of_results(storage, Path.cwd())) is not None:
        _require([needed], Trust(how=how), f"the database {shown_url(storage)}")


def _require(needed: Sequence[Permission], trust: Trust, what: str) -> None:
    if not needed:
        return
    known = remembered()
    missing = [each for each in needed if not known.allows(each)]
    if not missing:
        return
    asks = [known.asked(each) for each in missing]
    if not trust.everything and not (trust.asks and _agreed(asks, what)):
        asked = ", and ".join(asks)
        raise SpecError(
            f"{what}: it would {asked}, which is not permitted here; {trust.how} if you know where it "
            "comes from"
        )
    _remember(missing)


def _agreed(asks: Sequence[str], what: str) -> bool:
    """Ask on the terminal whether the user agrees; False without a terminal."""
    if not can_ask(sys.stderr):
        return False
    lines = "".join(f"\n  - {each}" for each in asks)
    return typer.confirm(f"{what}: it would{lines}\nallow this from now on?", default=False, err=True)


def allows(act: str, digests: Mapping[str, str] | None) -> bool:
    """Whether this user has allowed an act, now or earlier; used by `tasks.plugins.allowed_code`."""
    needed = Permission(text=act, keys=(), digests=digests)
    return _allowed_here.allows(needed) or remembered().allows(needed)


def trust_file() -> Path:
    """The file of this user's permissions.

    Raises:
        RuntimeError: If the user has no home folder.
    """
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(folder) if Path(folder).is_absolute() else Path.home() / ".config"
    return base / "winnow" / "trust.json"


def remembered() -> Remembered:
    """The permissions that this user has given.

    Raises:
        SpecError: If the file cannot be read.
    """
    try:
        path = trust_file()
        held = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, RuntimeError):
        return Remembered()
    except (OSError, ValueError) as error:
        raise SpecError(f"{path} cannot be read ({error}); delete it to be asked again") from error
    texts, digests = (held.get(TRUSTED), held.get(DIGESTS, {})) if isinstance(held, dict) else (None, None)
    if (
        not isinstance(texts, list)
        or not all(isinstance(each, str) for each in texts)
        or not isinstance(digests, dict)
        or not all(isinstance(each, dict) for each in digests.values())
    ):
        raise SpecError(f"{path} is not what Winnow wrote; delete it to be asked again")
    return Remembered(frozenset(texts), digests)


def _remember(permissions: Sequence[Permission]) -> None:
    """Add to the stored permissions; if they cannot be written, the next command asks again."""
    global _allowed_here
    known = remembered()
    if all(map(known.allows, permissions)):
        return
    _allowed_here = _allowed_here.with_these(permissions)
    new = known.with_these(permissions)
    kept = {TRUSTED: sorted(new.texts)} | ({DIGESTS: new.digests} if new.digests else {})
    try:
        path = trust_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, json.dumps(kept, indent=2) + "\n")
    except (OSError, RuntimeError) as error:
        tell(f"what was allowed cannot be remembered and will be asked for again: {error}")


def _replace(path: Path, text: str) -> None:
    """Write a file atomically, readable only for its owner."""
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
