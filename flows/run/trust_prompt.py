"""Check a campaign's permissions, ask the user for missing ones, and store the answers.

Permissions are stored per user, in `winnow/trust.json` of the configuration folder, because a file in the
working folder or the results database could be from the campaign's author. A permission applies to every
campaign: a server that may receive a key may always receive it. Permissions for code contain digests of its
files, so that changed code needs a new permission.
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
"""Keys of the permission to use a database; naming the database of a campaign to resume gives it."""


@dataclass(frozen=True, slots=True)
class StoredPermissions:
    """The permissions that a user has given."""

    texts: frozenset[str] = frozenset()
    digests: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Text of a permission -> digests of its code files."""

    def allows(self, needed: Permission) -> bool:
        """Whether a permission was given, for the current state of its code."""
        return needed.text in self.texts and self.digests.get(needed.text) == needed.digests

    def describe(self, needed: Permission) -> str:
        """Clause that follows "it would": the act, the key that needs it, and changed code files."""
        changed = ""
        if needed.text in self.texts and not self.allows(needed):
            before, now = self.digests.get(needed.text), needed.digests or {}
            changed = "; its code was not looked at when it was allowed"
            if before is not None:
                names = sorted({name for name, _ in before.items() ^ now.items()})
                changed = f"; changed since it was allowed: {', '.join(map(ascii, names))}"
        return f"{needed.text} ({needed.keys[0]}{changed})"

    def with_these(self, permissions: Iterable[Permission]) -> "StoredPermissions":
        """A copy with additional permissions."""
        texts, digests = set(self.texts), dict(self.digests)
        for each in permissions:
            texts.add(each.text)
            digests.pop(each.text, None)
            if each.digests is not None:
                digests[each.text] = each.digests
        return StoredPermissions(frozenset(texts), digests)


_allowed_here = StoredPermissions()
"""Permissions given in this process; kept in case they cannot be stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """How a command gets permissions in addition to the stored ones."""

    everything: bool = False
    """Whether all permissions are given, because the user gave --trust."""
    asks: bool = False
    """Whether to ask the user if the command runs on a terminal."""
    how: str = "give --trust"
    """Remedy in errors: how the user can give all permissions."""


def approving(
    trust: Trust, folder: Path | None = None, *, own: Callable[[str], bool] | None = None
) -> Approve:
    """A function that refuses a campaign's file if it needs permissions that were not given.

    Keys that the user sets by options, such as --set and --storage, need no further permission.

    Args:
        trust: How missing permissions are given.
        folder: Folder that paths are relative to; None is the working folder.
        own: Returns whether the user of this process has set a key; None for the keys that the command's
            options override.
    """

    def approve(file: SpecFile, spec: CampaignSpec) -> None:
        needed = permissions(spec, folder or Path.cwd())
        is_own = own or file.is_overridden
        asked = [each for each in needed if all(map(is_own, each.keys))]
        _store([each for each in asked if each.keys != STORAGE or trust.everything])
        _require([each for each in needed if each not in asked], trust, str(file.path))

    return approve


def require_stored_trust(campaign: Campaign, trust: Trust) -> None:
    """Refuse a stored campaign that needs permissions that were not given.

    Its database needs no permission, because the user has named it.

    Raises:
        SpecError: If permissions are missing; the message lists them.
    """
    needed = [each for each in permissions(campaign.spec, Path.cwd()) if each.keys != STORAGE]
    _require(needed, trust, f"campaign '{campaign.name}'")


def require_place(storage: str, how: str) -> None:
    """Refuse a database that the user has not named, unless its use is permitted.

    Args:
        storage: URL of the database.
        how: Remedy in the error: how to permit the use.

    Raises:
        SpecError: If the use of the database is not permitted.
    """
    if (needed := place_of_results(storage, Path.cwd())) is not None:
        _require([needed], Trust(how=how), f"the database {shown_url(storage)}")


def _require(needed: Sequence[Permission], trust: Trust, what: str) -> None:
    if not needed:
        return
    stored = stored_permissions()
    missing = [each for each in needed if not stored.allows(each)]
    if not missing:
        return
    acts = [stored.describe(each) for each in missing]
    if not trust.everything and not (trust.asks and _confirm(acts, what)):
        raise SpecError(
            f"{what}: it would {', and '.join(acts)}, which is not permitted here; {trust.how} if you know "
            "where it comes from"
        )
    _store(missing)


def _confirm(acts: Sequence[str], what: str) -> bool:
    """Ask on the terminal whether the user permits these acts; False without a terminal."""
    if not can_ask(sys.stderr):
        return False
    lines = "".join(f"\n  - {each}" for each in acts)
    return typer.confirm(f"{what}: it would{lines}\nallow this from now on?", default=False, err=True)


def allows(act: str, digests: Mapping[str, str] | None) -> bool:
    """Whether the user has permitted an act, in this process or earlier; see `tasks.plugins.allowed_code`."""
    needed = Permission(text=act, keys=(), digests=digests)
    return _allowed_here.allows(needed) or stored_permissions().allows(needed)


def trust_file() -> Path:
    """Path of the file with this user's permissions.

    Raises:
        RuntimeError: If the user has no home folder.
    """
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(folder) if Path(folder).is_absolute() else Path.home() / ".config"
    return base / "winnow" / "trust.json"


def stored_permissions() -> StoredPermissions:
    """Read this user's permissions; empty if the file does not exist.

    Raises:
        SpecError: If the file cannot be read, or has another format.
    """
    try:
        path = trust_file()
        held = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, RuntimeError):
        return StoredPermissions()
    except (OSError, ValueError) as error:
        raise SpecError(f"{path} cannot be read ({error}); delete it to be asked again") from error
    texts, digests = (held.get(TRUSTED), held.get(DIGESTS, {})) if isinstance(held, dict) else (None, None)
    if (
        not isinstance(texts, list)
        or not all(isinstance(each, str) for each in texts)
        or not isinstance(digests, dict)
        or not all(isinstance(each, dict) for each in digests.values())
    ):
        raise SpecError(f"{path} is not a file of permissions by Winnow; delete it to be asked again")
    return StoredPermissions(frozenset(texts), digests)


def _store(permissions: Sequence[Permission]) -> None:
    """Add to the stored permissions; if they cannot be written, the next command asks again."""
    global _allowed_here
    stored = stored_permissions()
    if all(map(stored.allows, permissions)):
        return
    _allowed_here = _allowed_here.with_these(permissions)
    new = stored.with_these(permissions)
    kept = {TRUSTED: sorted(new.texts)} | ({DIGESTS: new.digests} if new.digests else {})
    try:
        path = trust_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, json.dumps(kept, indent=2) + "\n")
    except (OSError, RuntimeError) as error:
        tell(f"the permissions cannot be stored, so you will be asked again: {error}")


def _replace(path: Path, text: str) -> None:
    """Write a file atomically; only its owner can read it."""
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
