"""A campaign while it runs: what is held in memory between rounds. The database alone remembers it."""

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from algorithms.protocols import Batch, Selector
from storage import repository
from storage.database import Database
from storage.records import CampaignRecord, LeaseRecord, Losses
from tasks.certifying.selector import LabelSelector
from tasks.checking import CheckedCampaign
from tasks.engines.pool import EnginePool
from tasks.leasing import holding
from tasks.meetings import Meetings, meetings_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunningCampaign:
    """A campaign this process holds the lease of."""

    database: Database
    lease: LeaseRecord
    record: CampaignRecord
    checked: CheckedCampaign
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

    @property
    def labels_used(self) -> int | None:
        """Human labels that were spent; None where the campaign uses none."""
        return self.selector.n_labels if isinstance(self.selector, LabelSelector) else None

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
    database: Database, record: CampaignRecord, checked: CheckedCampaign
) -> Generator[RunningCampaign, None, None]:
    """Take the lease, tell a fresh selector all that is stored, and have engines at hand.

    Raises:
        LeaseHeld: If another live process runs the campaign.
    """
    execution = checked.spec.execution
    with (
        holding(database, record.id) as lease,
        EnginePool(
            max_loaded=execution.max_loaded,
            max_restarts=execution.max_restarts,
            load_timeout=execution.load_timeout,
            batch_timeout=execution.batch_timeout,
            log_folder=Path(execution.log_folder) / record.name,
        ) as engines,
    ):
        selector, meetings = checked.create_selector(), Meetings()
        with database.reading() as session:
            for told in repository.told_rounds(session, record.id):
                batch = Batch(arms=np.array(told.arms), examples=np.array(told.examples))
                is_losses = checked.certification is not None
                selector.tell(batch, as_losses(told.losses) if is_losses else as_scores(told.outcomes))
                if checked.repeats_meetings:
                    meetings.add(meetings_of(told.arms, told.examples))
            candidate_ids = repository.candidate_ids(session, record.id)
            example_ids = repository.example_ids(session, record.dataset_id)
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
        )


def as_losses(losses: Sequence[Losses]) -> np.ndarray:
    """Losses as a selector takes them, shape (B, 3): NaN where one is not known."""
    known = [[math.nan if loss is None else loss for loss in row] for row in losses]
    return np.array(known, dtype=np.float64).reshape(-1, 3)


def as_scores(outcomes: Sequence[float | None]) -> np.ndarray:
    """Outcomes as a selector takes them, shape (B,): NaN where a comparison was not scored."""
    return np.array([math.nan if outcome is None else outcome for outcome in outcomes], dtype=np.float64)
