"""In-memory state of a running campaign between rounds, and prefetched outputs."""

import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path

from winnow.algorithms.protocols import Selector
from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.engine.database import Database
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import stream_batches
from winnow.storage.records.candidate_states import Known
from winnow.storage.records.leases import writing_under
from winnow.storage.records.record_types import CampaignRecord, LeaseRecord, RoundRecord, StoredText
from winnow.tasks.campaign.budget import Allowance, BudgetTracker, BudgetUsage
from winnow.tasks.campaign.example_seed import seed_of_draws
from winnow.tasks.campaign.lease import holding
from winnow.tasks.campaign.placement import imports_once, placed
from winnow.tasks.campaign.planned_outputs import GenerationBatch
from winnow.tasks.campaign.replay import (
    ReplicateCounter,
    as_of_round,
    batch_of,
    leave_out_by,
    observe,
    restored,
    retold,
    take_up_rounds,
)
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.candidates.cache_keys import RequestKeys
from winnow.tasks.engines.pool.pool import EnginePool
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.plugins.entry_points import plugin_log
from winnow.tasks.plugins.own_files import settled_folder
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.stored_spec import LEFT_OUT, left_out_of, retries_of


class EarlyTexts:
    """Outputs of one round that a background thread generates.

    Args:
        round_id: Database id of the round.
        make: Function that generates the outputs; it is called in the thread.
    """

    def __init__(self, round_id: int, make: Callable[[], GenerationBatch]) -> None:
        self.round_id = round_id
        self.began = time.monotonic()
        """Monotonic time of the start."""
        self._made: Future[GenerationBatch] = Future()
        # A daemon thread: a generation that cannot be stopped must not keep the process from ending.
        threading.Thread(
            target=copy_context().run, args=(self._run, make), name="head-start", daemon=True
        ).start()

    @property
    def is_over(self) -> bool:
        """Whether the generation has ended, with or without success."""
        return self._made.done()

    def texts(self) -> GenerationBatch:
        """Wait for the outputs and return them; raise the error of their generation."""
        return self._made.result()

    def wait(self) -> None:
        """Wait until the generation has ended; only `texts` raises its errors."""
        self._made.exception()

    def _run(self, make: Callable[[], GenerationBatch]) -> None:
        try:
            self._made.set_result(make())
        except BaseException as error:
            self._made.set_exception(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """A served model at this process's first contact."""

    epoch: int
    """Number of detected changes of the model; outputs of another epoch are another model's."""
    canary_id: int | None
    """Id of the canary to store with the model's outputs; None if no answer could be compared."""
    refusal: str | None = None
    """The server's message if it refused all canary prompts; else None."""
    is_unchecked: bool = False
    """Whether the model received no canary prompts, because the campaign sends none."""


Place = tuple[str, str]
"""A served model: its digest from `served_model`, and its server's URL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrepeated:
    """A reference canary whose prompts have been sent only once."""

    model: ModelRef
    canary_id: int
    known: Sequence[str | None] = ()
    """Answers of an earlier second request of its first prompts."""


@dataclass(slots=True)
class Contacts:
    """Served models that this process contacted, by name, and by identity and address."""

    by_name: dict[str, Contact] = field(default_factory=dict)
    by_place: dict[Place, Contact] = field(default_factory=dict)
    unrepeated: dict[Place, Unrepeated] = field(default_factory=dict)
    """New references whose prompts still have to be sent a second time."""

    def epoch(self, name: str) -> int:
        """Epoch of a model; 0 if the model is not served."""
        return self.by_name[name].epoch if name in self.by_name else 0

    def canary_id(self, name: str) -> int | None:
        """Id of the canary to store with a model's outputs; None if the model is not served."""
        return self.by_name[name].canary_id if name in self.by_name else None

    def refusal(self, name: str) -> str | None:
        """The message of a model's server if it refused all canary prompts; else None."""
        return self.by_name[name].refusal if name in self.by_name else None

    def is_unknown(self, name: str) -> bool:
        """Whether changes of a served model could not be checked."""
        contact = self.by_name.get(name)
        return contact is not None and contact.canary_id is None and not contact.is_unchecked


@dataclass(slots=True, kw_only=True, eq=False)
class CampaignSession:
    """Mutable state of a running campaign whose lease this process holds."""

    database: Database
    lease: LeaseRecord
    record: CampaignRecord
    seed_of_draws: int
    """Seed for drawing examples, see `tasks.campaign.example_seed`; computed once, because every round uses
    it.
    """
    checked: ResolvedCampaign
    candidate_ids: Sequence[int]
    """Database id of each arm."""
    example_ids: Sequence[int]
    """Database id of each example position."""
    selector: Selector
    """The selector, which has observed every finished round."""
    allowance: Allowance
    """The selector's limit of pairs."""
    replicates: ReplicateCounter
    """Pair counts of every finished round."""
    engines: EnginePool
    judge_id: str
    """The judge's type and a digest of everything that its verdicts depend on."""
    budgets: BudgetTracker
    """Tracks spending against the budget."""
    contacts: Contacts
    """Served models contacted by this process."""
    n_in_flight: int = 0
    """Number of rounds that are planned and not yet recorded."""
    known: Known | None = None
    """Stored values of each candidate after the last round that this process recorded; None before."""
    texts_in_use: dict[int, dict[int, str]] = field(default_factory=dict)
    """Stored outputs that an unfinished round uses: for each round id, the key of each output by output
    id.
    """
    request_keys: dict[int, dict[bool, RequestKeys]] = field(default_factory=dict)
    """Request keys by arm; cache of `plan_text`."""
    is_loading: bool = False
    """Whether loading of models has started."""
    head_start: EarlyTexts | None = None
    """Prefetched outputs of the first round; None if they are not prefetched."""

    @property
    def other_budgets(self) -> Sequence[BudgetUsage]:
        """Usage of each limit that the selector does not enforce itself."""
        if self.budgets.is_idle:
            return ()
        with self.database.reading() as session:
            return [each for each in self.budgets.usage(session) if each.kind != self.budgets.primary]

    @property
    def is_overspent(self) -> bool:
        """Whether one of `other_budgets` is spent, so that no further round can begin."""
        return any(each.is_spent for each in self.other_budgets)

    @property
    def labels_used(self) -> int | None:
        """Number of human labels used so far; None if the campaign uses no labels."""
        return self.checked.labels_used(self.selector)

    @property
    def most_restarts(self) -> int:
        """Maximum number of engine restarts, summed over all models.

        The pool enforces the limit of each model.
        """
        return self.checked.spec.execution.max_restarts * len(self.checked.models)

    def tell(self, round_: RoundRecord, outcomes: FloatArray, answered: int) -> None:
        """Let the selector observe a judged round, and raise its limit by the free pairs.

        `selector` can be another object afterwards, with the same observations, so read the attribute again.

        Args:
            round_: The round, not yet stored as finished.
            outcomes: Outcomes of its B comparisons for the selector, NaN if missing. Shape (B,); with J
                constraints (B, 1 + J), the score first; for certify (B, 4), as in `Losses`.
            answered: Number of its comparisons with all outputs.
        """
        n_new = 0 if self.is_retry(round_) else len(round_.examples)
        if self.allowance.add(n_new, answered):
            # A selector's limit is fixed when it is created, so a new one observes all rounds again.
            self.selector = self.checked.create_selector(self.allowance.limit)
            with self.database.reading() as session:
                for _ in retold(session, self.record, self.checked, self.selector):
                    pass
                as_of_round(self.selector, self.record, self.checked, round_.number)
                take_up_rounds(session, self.record, self.checked, self.selector)
        observe(self.selector, self.record, round_.number, batch_of(round_), outcomes)

    def is_retry(self, round_: RoundRecord) -> bool:
        """Whether a round requests missing outputs of earlier rounds again."""
        return round_.number in retries_of(self.record.execution)

    def leave_out(self, round_: RoundRecord, arms: Iterable[int]) -> None:
        """Exclude candidates permanently, as of a judged but not yet observed round.

        Raises:
            LeaseLost: Another process took the campaign over; nothing is stored.
        """
        names = {self.checked.candidates[arm].name: round_.number for arm in sorted(arms)}
        execution = {**self.record.execution, LEFT_OUT: {**left_out_of(self.record.execution), **names}}
        with writing_under(self.database, self.lease) as session:
            self.record = campaign_records.set_execution(session, self.record.id, execution)
        leave_out_by(self.selector, self.record, self.checked.candidates, round_.number)

    def use_texts(self, round_: RoundRecord, texts: Mapping[str, StoredText]) -> None:
        """Record which stored outputs an unfinished round uses.

        Args:
            round_: The round.
            texts: The outputs, by key.
        """
        in_use = self.texts_in_use.setdefault(round_.id, {})
        in_use.update({text.id: key for key, text in texts.items()})

    def load_engines(self) -> None:
        """Start loading as many models as can be in memory at once.

        Only the first call has an effect.
        """
        if self.is_loading:
            return
        self.is_loading = True
        for model in self.checked.models_to_ask:
            self.engines.preload(model)


@contextmanager
def engine_pool(checked: ResolvedCampaign) -> Generator[EnginePool, None, None]:
    """Start the engine pool of a campaign; close it after the block.

    Raises:
        ClusterUnavailable: The campaign requests a cluster that is not available.
    """
    execution = checked.spec.execution
    with (
        imports_once(checked.spec),
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
            streaming=checked.spec.streaming,
            log_folder=_log_folder(checked.spec),
            factory=placement.factory,
        ) as engines,
    ):
        yield engines


def _log_folder(spec: CampaignSpec) -> Path:
    return settled_folder(spec.execution.log_folder) / spec.name


@contextmanager
def running(
    database: Database,
    record: CampaignRecord,
    checked: ResolvedCampaign,
    pool: EnginePool | None = None,
) -> Generator[CampaignSession, None, None]:
    """Take the lease, and replay all stored rounds into a new selector.

    `pool` is an engine pool that stays open after the block; by default, `engine_pool` starts one.

    Raises:
        LeaseHeld: Another live process runs the campaign.
        ClusterUnavailable: The campaign requests a cluster that is not available.
    """
    with (
        plugin_log(_log_folder(checked.spec), record.name),
        holding(database, record.id) as lease,
        nullcontext(pool) if pool else engine_pool(checked) as engines,
    ):
        checked = checked.prepared(database)
        with database.reading() as session:
            selector, allowance, replicates = restored(session, record, checked)
            candidate_ids = campaign_records.candidate_ids(session, record.id)
            example_ids = stream_batches.example_ids(session, record.id)
        yield CampaignSession(
            database=database,
            lease=lease,
            record=record,
            seed_of_draws=seed_of_draws(record),
            checked=checked,
            candidate_ids=candidate_ids,
            example_ids=example_ids,
            selector=selector,
            allowance=allowance,
            replicates=replicates,
            engines=engines,
            judge_id=checked.judge_id,
            budgets=BudgetTracker(record),
            contacts=Contacts(),
        )
