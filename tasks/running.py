"""A campaign while it runs: what is held in memory between rounds. The database alone remembers it."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy.orm import Session

from algorithms.protocols import Batch, Selector
from storage import arrivals, campaign_records, dataset_records, round_records
from storage.database import Database
from storage.records import CampaignRecord, LeaseRecord
from tasks.budgets import Ledger, Spending
from tasks.engines.placement import placed
from tasks.engines.pool import EnginePool
from tasks.leasing import holding
from tasks.meetings import Meetings, meetings_of

if TYPE_CHECKING:  # it knows the steps of a campaign that runs
    from tasks.objectives.checked import CheckedCampaign


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunningCampaign:
    """A campaign this process holds the lease of."""

    database: Database
    lease: LeaseRecord
    record: CampaignRecord
    checked: "CheckedCampaign"
    candidate_ids: Sequence[int]
    """Database id of each arm."""
    example_ids: Sequence[int]
    """Database id of each example position."""
    selector: Selector
    """Told every finished round."""
    meetings: Meetings
    """Of every finished round."""
    engines: EnginePool
    judge_id: str
    """The judge's type and a digest of its parameters."""
    ledger: Ledger
    """What was spent of the budget."""
    texts_in_use: dict[int, str] = field(default_factory=dict)
    """Key of each stored text that the unfinished round uses, by its id."""

    @property
    def other_budgets(self) -> Sequence[Spending]:
        """What is spent of each limit that the algorithm does not keep to itself."""
        if self.ledger.is_idle:
            return ()
        with self.database.reading() as session:
            return [each for each in self.ledger.look(session) if each.kind != self.ledger.own]

    @property
    def is_overspent(self) -> bool:
        """Whether one of those limits is spent, so that no further round may begin."""
        return any(each.is_spent for each in self.other_budgets)

    @property
    def labels_used(self) -> int | None:
        """Human labels that were spent; None where the campaign uses none."""
        return self.checked.labels_used(self.selector)

    @property
    def most_restarts(self) -> int:
        """Upper limit of engine restarts over all models; the pool keeps to the limit of each."""
        return self.checked.spec.execution.max_restarts * len(self.checked.models)

    def load_engines(self) -> None:
        """Begin to load as many models as may be held at once, while other things start up."""
        for model in self.checked.models:
            self.engines.preload(model)


@contextmanager
def running(
    database: Database, record: CampaignRecord, checked: "CheckedCampaign"
) -> Generator[RunningCampaign, None, None]:
    """Take the lease, tell a fresh selector all that is stored, and have engines at hand.

    Raises:
        LeaseHeld: If another live process runs the campaign.
        ClusterUnavailable: If engines are to run on a cluster and there is none.
    """
    execution = checked.spec.execution
    with (
        holding(database, record.id) as lease,
        placed(execution) as placement,
        EnginePool(
            max_loaded=placement.max_loaded,
            devices=placement.devices,
            width=placement.width,
            most_asleep=execution.max_asleep if execution.sleep else 0,
            models=checked.models,
            max_restarts=execution.max_restarts,
            load_timeout=execution.load_timeout,
            batch_timeout=execution.batch_timeout,
            log_folder=Path(execution.log_folder) / record.name,
            factory=placement.factory,
        ) as engines,
    ):
        checked = checked.prepared(database)
        with database.reading() as session:
            selector, meetings = restored(session, record, checked)
            candidate_ids = campaign_records.candidate_ids(session, record.id)
            example_ids = [
                id_
                for dataset_id in arrivals.dataset_ids(session, record.id)
                for id_ in dataset_records.example_ids(session, dataset_id)
            ]
        yield RunningCampaign(
            database=database,
            lease=lease,
            record=record,
            checked=checked,
            candidate_ids=candidate_ids,
            example_ids=example_ids,
            selector=selector,
            meetings=meetings,
            engines=engines,
            judge_id=checked.judge_id,
            ledger=Ledger(record),
        )


def restored(
    session: Session, record: CampaignRecord, checked: "CheckedCampaign"
) -> tuple[Selector, Meetings]:
    """A selector that was told every finished round, and the meetings of those rounds."""
    selector, meetings = checked.create_selector(), Meetings()
    for told in round_records.told_rounds(session, record.id):
        batch = Batch(arms=np.array(told.arms), examples=np.array(told.examples))
        outcomes = checked.outcomes(told.outcomes, told.losses)
        checked.at_round(selector, told.number).tell(batch, outcomes)
        if checked.repeats_meetings:
            meetings.add(meetings_of(told.arms, told.examples))
    return selector, meetings
