"""Changing what may change of a stored campaign, by settings alone: its file may be gone, or never was."""

from pathlib import Path

from winnow.storage import leases
from winnow.storage.engine.database import Database
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.campaign.lease import is_gone, now, this_process, watch
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.load import Approve
from winnow.tasks.setup.open_campaign import FINGERPRINTS, reopen_campaign
from winnow.tasks.spec.campaign import stored_values
from winnow.tasks.spec.yaml_file import SpecFile, overriding, parse_spec

KEPT = ("name", "storage")
"""Keys by which a stored campaign is found."""


def change_campaign(database: Database, name: str, overrides: list[str], approve: Approve) -> None:
    """Let a stored campaign go on with another budget or execution, other tags or servers.

    Args:
        database: Where it is stored.
        name: The campaign's.
        overrides: `key=value` settings that take the place of its own.
        approve: Called before anything that the campaign refers to is used.

    Raises:
        CampaignNotFound: If there is none of this name.
        SpecError: If a setting is not sound.
        IdentityChanged: If one is of what may not change; nothing is written.
        LeaseHeld: If another live process runs it; nothing is written.
    """
    with database.reading() as session:
        campaign = campaign_records.get_campaign(session, name)
    identity = {key: value for key, value in campaign.spec.items() if key not in FINGERPRINTS}
    values = stored_values(identity, campaign.execution, database.url)
    stored = SpecFile(Path(f"campaign '{name}'"), values, overridden=frozenset({("storage",)}))
    file = overriding(stored, overrides)
    spec = parse_spec(file)
    if (spec.name, spec.storage) != (name, database.url):
        raise SpecError(f"--set: a stored campaign stays where it is; leave {' and '.join(KEPT)} out")
    approve(file, spec)
    reopen_campaign(database, name, database.url, spec)
    watch(database, campaign.id, now=now())
    with database.writing() as session:
        leases.require_free(session, campaign.id, this_process(), is_gone=is_gone)
        campaign_records.set_execution(session, campaign.id, spec.execution_fields())
