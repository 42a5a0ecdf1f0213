"""Frozen records that are written to and read from the database.

They are used instead of live rows.
"""

import datetime as dt
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from winnow.storage.json_types import Arms, JsonView


class ExampleContent(Protocol):
    """Parts of an example that are stored."""

    @property
    def key(self) -> str:
        """Name of the example in the dataset."""
        ...

    @property
    def fields(self) -> JsonView:
        """Values that a template can show to a model."""
        ...

    @property
    def targets(self) -> Sequence[str]:
        """Accepted answers."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NewExample:
    """A row of a dataset to be stored."""

    key: str
    fields: JsonView
    targets: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCandidate:
    """A combination of model, prompt and sampling settings to be stored."""

    name: str
    model: JsonView
    prompt: JsonView
    sampling: JsonView


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRecord:
    """A campaign's stored row at the time it was read."""

    id: int
    name: str
    objective: str
    dataset_id: int
    seed: int
    spec: JsonView
    execution: JsonView
    versions: JsonView
    series: str | None
    created_at: dt.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedRecord(CampaignRecord):
    """A record of a deleted campaign."""

    seen: Sequence[int]
    """Positions of the examples with outcomes, as ranges.
    The numbers are: first, one past the last, first, ..."""
    is_decided: bool
    """Whether the campaign had an answer after any of its rounds."""
    has_grown: bool
    """Whether candidates were added after the campaign began."""
    met: Mapping[str, tuple[int, int]]
    """First and last epoch of each contacted served model."""

    @property
    def positions(self) -> set[int]:
        """Positions of the examples on which the campaign had outcomes."""
        runs = zip(self.seen[::2], self.seen[1::2], strict=True)
        return {position for first, end in runs for position in range(first, end)}

    def has_seen(self, position: int) -> bool:
        """Whether the campaign had an outcome on an example."""
        return bisect_right(self.seen, position) % 2 == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRecord:
    """A planned round: the pairs `arms[p]` and `examples[p]` for every position p."""

    id: int
    number: int
    planned_after: int
    """Number of rounds observed when this round was planned."""
    arms: Arms
    examples: Sequence[int]
    planned_at: dt.datetime
    propensities: Sequence[float] | None = None
    """Probability with which each arm was drawn.
    None if arms were not drawn at random."""


Values = Sequence[float | None]
"""Values of several comparisons, or of several metrics of one comparison.
None if missing."""

Losses = tuple[float | None, float | None, float | None, float | None]
"""Losses of one comparison; None if missing.
In order: by the human label; by the autoevaluator's answer; the mean on unlabelled examples; the share of
these whose loss is missing."""


EQUAL_OUTPUTS = "equal_outputs"
"""Reason of a comparison that needed no verdict.
Its campaign spares such verdicts. All candidates in question have the same output on its example, so their
difference on it is 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldRound:
    """An observed round with its outcomes, in planned order.

    None for a comparison without a score.
    """

    number: int
    arms: Arms
    examples: Sequence[int]
    outcomes: Values
    losses: Sequence[Losses]
    """Losses for certify; all None for other objectives."""
    metrics: Sequence[Values]
    """Values of the requested metrics for each comparison, None if missing."""
    propensities: Sequence[float] | None = None
    """Probability with which each arm was drawn.
    None if arms were not drawn at random."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewGeneration:
    """A model output to be stored; `key` covers everything that determines it."""

    key: str
    model: str
    prompt: str
    seed: int
    replicate: int
    text: str
    reasoning: str | None = None
    choice_logprobs: Mapping[str, float] | None = None
    token_logprobs: Sequence[float] | None = None
    finish_reason: str
    input_tokens: int
    output_tokens: int
    seconds: float
    latency: float | None = None
    engine: str
    served_as: str | None = None
    canary_id: int | None = None
    request_key: str | None = None
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCanary:
    """Canary outputs of a served model at one contact, to be stored.

    See `storage.models.Canary`.
    """

    model: str
    name: str
    server: str
    epoch: int
    prompts: str
    texts: Sequence[str | None]
    repeated: Sequence[str | None]
    changed: int
    verdict: str
    served_as: str | None = None
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryRecord(NewCanary):
    """A stored canary."""

    id: int
    campaign_id: int | None
    created_at: dt.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewModelLoad:
    """A load or wake of a model, to be stored; see `storage.models.ModelLoad`."""

    model: str
    devices: Sequence[int]
    kind: str
    seconds: float
    ended_at: dt.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredText:
    """A stored generation with the fields that a judge needs."""

    id: int
    text: str
    finish_reason: str
    input_tokens: int
    output_tokens: int
    choice_logprobs: Mapping[str, float] | None = None
    reasoning: str | None = None
    token_logprobs: Sequence[float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJudgment:
    """A call of a judge model, to be stored with its comparison."""

    judge: str
    presentation_order: str
    repeat: int
    attempt: int
    generation_id: int | None
    verdict: float | None
    reason: str | None
    metric: str | None = None
    """Metric for which the call was made; None for the outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOutput:
    """One of several outputs of a comparison, to be stored.

    It has a score, or the reason why it has none.
    """

    number: int
    generation_id: int
    answer: str | None = None
    score: float | None = None
    reason: str | None = None
    no_answer: bool = False
    preference: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMetric:
    """A metric's score of a comparison to be stored, or the reason why it is missing."""

    name: str
    score: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewComparison:
    """A scored pair to be stored: an outcome, or the reason why it is missing."""

    position: int
    candidate_a_id: int
    example_id: int
    judge: str
    candidate_b_id: int | None = None
    generation_a_id: int | None = None
    generation_b_id: int | None = None
    answer: str | None = None
    outcome: float | None = None
    reason: str | None = None
    detail: str | None = None
    no_answer: bool = False
    """Whether the judge found no answer in the output."""
    human_loss: float | None = None
    auto_loss: float | None = None
    unlabelled_loss: float | None = None
    unlabelled_missing: float | None = None
    judgments: Sequence[NewJudgment] = ()
    outputs: Sequence[NewOutput] = ()
    """Outputs that could be generated, if the outcome uses several."""
    metrics: Sequence[NewMetric] = ()

    @property
    def is_answered(self) -> bool:
        """Whether all outputs of the comparison could be generated."""
        is_duel = self.candidate_b_id is not None
        return self.generation_a_id is not None and (self.generation_b_id is not None or not is_duel)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDecision:
    """A decision after a round.

    Sequences have one value per candidate position, None if unknown.
    """

    best_candidate_id: int | None
    estimates: Sequence[float | None]
    lower: Sequence[float | None]
    upper: Sequence[float | None]
    status: Sequence[str]
    """One of `algorithms.claims.ArmStatus` per candidate position."""
    claim: JsonView
    """Fields of an `algorithms.claims.Claim`.
    `excess`, if known, has the fields of a decision's `Excess`."""
    stop: bool
    reason: str
    ranking: Sequence[float | None] | None = None
    """Scores that order the candidates; None if the estimates order them."""
    differences: JsonView | None = None
    """Fields of an `algorithms.decision.Differences`, None if unknown."""
    bets: Mapping[str, Sequence[float | None]] | None = None
    """Fields of an `algorithms.decision.Bets`: wealths, levels, out_in_round, out_at."""


SET_ASIDE = ("dropped", "removed")
"""Statuses of candidates that can no longer be the best."""
OUT = frozenset({*SET_ASIDE, "eliminated", "infeasible", "unfit", "refuted", "worse"})
"""Statuses of candidates that are no longer in question and are not part of the answer."""
THE_ANSWER = ("best", "top", "tied", "chosen")
"""Statuses of candidates that are part of the answer."""


def is_out(status: str, out_in_round: float | None) -> bool:
    """Whether a candidate is eliminated, dropped or removed.

    The status alone does not tell for candidates that are active or not-better. They are eliminated if bets
    eliminated them up to epsilon. Without that, a not-better candidate can equal the best one.

    Args:
        status: Status of the candidate.
        out_in_round: Round in which bets eliminated the candidate; None if they did not.
    """
    return status in OUT or (out_in_round is not None and status not in THE_ANSWER)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecord:
    """A stored decision."""

    round_number: int
    best: str | None
    """Name of the best candidate."""
    estimates: Sequence[float | None]
    lower: Sequence[float | None]
    upper: Sequence[float | None]
    status: Sequence[str]
    """Statuses; "active" for candidates added after the decision."""
    claim: JsonView
    stop: bool
    reason: str
    decided_at: dt.datetime
    ranking: Sequence[float | None] | None = None
    differences: JsonView | None = None
    """See `NewDecision`; candidates added after the decision are not included."""
    bets: Mapping[str, Sequence[float | None]] | None = None
    n_joined: int = 0
    """Number of candidates added after the decision.
    In a benchmark, the best candidate is then open again."""

    @property
    def are_out(self) -> list[bool]:
        """Whether each candidate is out, see `is_out`."""
        rounds = self.bets["out_in_round"] if self.bets else [None] * len(self.status)
        return list(map(is_out, self.status, rounds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process that runs a campaign."""

    host: str
    """Name of its machine, for display only: several machines can have the same name."""
    pid: int
    boot_id: str
    """Unique id of the current boot of its machine."""
    pid_namespace: str
    """PID namespace of `pid`; containers on one machine have their own."""
    started_ticks: int
    """Clock ticks from boot to the start of the process.
    A later process with the same pid has more."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """A stored lease."""

    campaign_id: int
    token: int
    holder: Holder
    beats: int
    """Number of heartbeats since the lease was taken."""
    heartbeat_at: dt.datetime
    """Time of the last heartbeat, or of taking the lease.
    The time is by PostgreSQL's clock, otherwise by the holder's clock."""
    lifetime: dt.timedelta
    """Time without a heartbeat after which the lease can be taken over."""
    released_at: dt.datetime | None
    is_expired: bool | None
    """Whether the lease has expired, by the clock of `heartbeat_at`.
    None for SQLite, which has no clock of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAnnotationTask:
    """One output for annotators to rate, or two to compare.

    See `storage.models.AnnotationTask`.
    """

    key: str
    example_id: int
    generation_a_id: int
    generation_b_id: int | None = None
    presentation_order: str = "original"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationRecord:
    """An annotator's answer to a task: a verdict, or the reason why it is missing."""

    verdict: float | None
    reason: str | None
    annotator: str
    source: str
    annotated_at: dt.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationTaskRecord(NewAnnotationTask):
    """A stored task with its answer."""

    id: int
    round_id: int
    presentation_order: str
    annotation: AnnotationRecord | None
    """The answer; None until the task is answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTask:
    """A task as annotators see it."""

    example: str
    """Key of the example."""
    example_number: int
    """Position of the example in the dataset, from 0."""
    question: str
    """Input of the example."""
    targets: Sequence[str]
    """Correct answers; empty if annotators do not see them."""
    texts: tuple[str, ...]
    """One or two outputs, in the order shown."""
