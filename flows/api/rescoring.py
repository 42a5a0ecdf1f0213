"""`winnow.rescore`: judge a campaign's stored outputs with another judge."""

import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from winnow.flows.api.call_checks import require_url
from winnow.flows.api.resume import allowed, interruptible, to_the_end
from winnow.tasks.spec.stored_spec import DEFAULT_STORAGE

if TYPE_CHECKING:
    from winnow.flows.api.results import Campaign
    from winnow.flows.run.signals import Interrupts
    from winnow.flows.run.trust_prompt import Trust
    from winnow.tasks.spec.campaign import JudgeSpec

GivenJudge: TypeAlias = "JudgeSpec | Mapping[str, object] | str | Path | None"
"""A `winnow.Judge`, a mapping with its keys, its name, the path of a file that defines it, or None."""


def rescore(
    name: str,
    judge: GivenJudge = None,
    *,
    new_name: str | None = None,
    changes: Mapping[str, object] | None = None,
    storage: str = DEFAULT_STORAGE,
    progress: bool = False,
    trust: bool = False,
) -> "Campaign":
    """Judge a campaign's stored outputs with another judge, as a new campaign.

    No candidate generates an output.

    Args:
        name: Name of the campaign whose outputs are judged.
        judge: A `winnow.Judge`, a mapping with its keys, the name of a judge, or the path of a YAML or JSON
            file that defines a judge. None uses the campaign's own judge in the installed version.
        new_name: Name of the new campaign; None uses NAME-rescored.
        changes: New values of other settings by dotted key, such as {"stopping.budget": 2000}.
        storage: URL of the results database.
        progress: See `winnow.run`.
        trust: See `winnow.run`.

    Returns:
        The new campaign. The same call continues it, or reads its answer if it has ended.

    Raises:
        SpecError: If the judge is invalid, or the campaign's outputs cannot be judged again.
        WinnowError: If the new campaign cannot continue.
        StorageError: If the database cannot be used.
    """
    from winnow.flows.api.results import Campaign

    require_url(storage)
    given = _file_or_keys(judge)
    overrides = _overrides(changes)
    found = interruptible(
        lambda interrupts: _rescore(
            name, given, new_name, overrides, storage, interrupts, progress, allowed(everything=trust)
        )
    )
    return Campaign(*found)


def _rescore(
    name: str,
    judge: str | Mapping[str, object] | None,
    new_name: str | None,
    overrides: list[str],
    storage: str,
    interrupts: "Interrupts",
    progress: bool,
    trust: "Trust",
) -> tuple[str, str]:
    from winnow.flows.run.launch import launching, require_free
    from winnow.flows.run.trust_prompt import approving
    from winnow.storage.admin.schema import existing
    from winnow.tasks.setup.rescore import rescoring_campaign

    with existing(storage, read_only=True) as database:
        checked = rescoring_campaign(database, name, judge, new_name, overrides, approving(trust))
    with launching() as launch:
        campaign = launch.store(checked)
        to_the_end(campaign, interrupts, progress, lambda: require_free(campaign))
        return campaign.storage, campaign.name


def _overrides(changes: Mapping[str, object] | None) -> list[str]:
    from winnow.tasks.setup.written_files import written_changes

    return written_changes(changes or {})


def _file_or_keys(judge: GivenJudge) -> str | Mapping[str, object] | None:
    """Path of a judge's file, or a judge's keys; None for None."""
    from winnow.tasks.errors import SpecError
    from winnow.tasks.setup.written_files import as_in_a_file

    if judge is None or isinstance(judge, Path):
        return None if judge is None else str(judge)
    if isinstance(judge, str):
        return judge if Path(judge).suffix in (".yaml", ".yml", ".json") else {"type": judge}
    written = as_in_a_file(judge)
    if not isinstance(written, dict):
        raise SpecError(f"judge is {reprlib.repr(judge)}; give a winnow.Judge, a judge's name, or a file")
    return written
