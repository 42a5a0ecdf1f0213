"""A stored campaign in an open database."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from winnow.storage.admin.schema import existing
from winnow.storage.engine.database import Database, storage_option
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look

if TYPE_CHECKING:
    from winnow.tasks.campaign.resolved import ResolvedCampaign
    from winnow.tasks.engines.pool.pool import EnginePool
    from winnow.tasks.spec.campaign import CampaignSpec


@dataclass(kw_only=True, eq=False)
class Campaign:
    """A stored campaign, and the open database that contains it."""

    database: Database
    storage: str
    """URL of the database, including its password."""
    record: CampaignRecord
    """The campaign's row when it was found or stored; `look` reads it again."""
    checked: "ResolvedCampaign | None" = None
    """The checked campaign with everything that it refers to; None until this process has checked it."""
    pool: "EnginePool | None" = None
    """Open engines that a trial of the campaign loaded; None to start new ones."""
    _spec: "CampaignSpec | None" = field(default=None, init=False)

    @property
    def name(self) -> str:
        """The campaign's name."""
        return self.record.name

    @property
    def spec(self) -> "CampaignSpec":
        """The campaign's spec; read once."""
        if self.checked is not None:
            return self.checked.spec
        if self._spec is None:
            from winnow.tasks.campaign.stored_values import stored_spec

            self._spec = stored_spec(self.record, self.storage)
        return self._spec

    @property
    def resume_command(self) -> str:
        """Command that continues the campaign."""
        return f"winnow resume {self.name} {storage_option(self.storage)}"

    @contextmanager
    def look(self) -> Generator[Look, None, None]:
        """Read the campaign's current state.

        Raises:
            CampaignNotFound: The campaign was deleted in the meantime.
            StorageError: The database cannot be read.
        """
        with self.database.reading() as session:
            yield Look(session, campaign_records.read_again(session, self.record))


def find_in(database: Database, storage: str, name: str) -> Campaign:
    """Find a stored campaign in an open database.

    Raises:
        CampaignNotFound: No campaign has this name.
        StorageError: The database cannot be read.
    """
    with database.reading() as session:
        record = campaign_records.get_campaign(session, name)
    return Campaign(database=database, storage=storage, record=record)


@contextmanager
def opened_campaign(storage: str, name: str) -> Generator[Campaign, None, None]:
    """Open a database until the block ends, and find a campaign in it.

    Raises the errors of `find_in`.
    """
    with existing(storage) as database:
        yield find_in(database, storage, name)
