"""Values that go into and come out of the database: frozen, never live rows."""

import datetime as dt
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from winnow.storage.json_types import Arms, JsonView


class ExampleContent(Protocol):
    """The parts of an example that are stored."""

    @property
    def key(self) -> str:
        """Its name in the dataset."""
        ...

    @property
    def fields(self) -> JsonView:
        """The values that a template may show."""
        ...

    @property
    def targets(self) -> Sequence[str]:
        """The accepted answers."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NewExample:
    """One row of a dataset that is about to be stored."""

    key: str
    fields: JsonView
    targets: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCandidate:
    """One model x prompt x sampling that is about to be stored."""

    name: str
    model: JsonView
    prompt: JsonView
    sampling: JsonView


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRecord:
    """A campaign as it was opened."""

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
    """A campaign that was deleted, as it is remembered."""

    seen: Sequence[int]
    """Positions of the examples that it had outcomes on: first, one past the last, first, ..."""
    is_decided: bool
    """Whether it had an answer, after whichever round."""
    has_grown: bool
    """Whether candidates joined it once it had begun."""
    met: Mapping[str, tuple[int, int]]
    """By served model that it met, the first and the last epoch."""

    def has_seen(self, position: int) -> bool:
        """Whether it had an outcome on an example."""
        return bisect_right(self.seen, position) % 2 == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRecord:
    """A planned round: `arms[p]` on `examples[p]` for every position p."""

    id: int
    number: int
    planned_after: int
    """Number of rounds that had been told when it was planned."""
    arms: Arms
    examples: Sequence[int]
    planned_at: dt.datetime
    propensities: Sequence[float] | None = None
    """Probability with which each arm was drawn; None where nothing was left to chance."""


Values = Sequence[float | None]
"""Values of several comparisons, or of several metrics of one; None where there is none."""

Losses = tuple[float | None, float | None, float | None, float | None]
"""Losses of one comparison: with the human label, with the autoevaluator's answer, the mean on unlabelled
examples, and the share of these whose loss is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldRound:
    """A round with its outcomes, in planned order; None where a comparison was not scored."""

    number: int
    arms: Arms
    examples: Sequence[int]
    outcomes: Values
    losses: Sequence[Losses]
    """For certify; elsewhere, all of them are None."""
    metrics: Sequence[Values]
    """Of each comparison, the values of the metrics that were named, None where there is none."""
    propensities: Sequence[float] | None = None
    """Probability with which each arm was drawn; None where nothing was left to chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewGeneration:
    """One text that is about to be stored; `key` holds everything that determines it."""

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
    """The answers of a served model at one contact, about to be stored; see `storage.models.Canary`."""

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
    """One time that a model was loaded or woken, about to be stored; see `storage.models.ModelLoad`."""

    model: str
    devices: Sequence[int]
    kind: str
    seconds: float
    ended_at: dt.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredText:
    """A stored generation, as far as a judge needs it."""

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
    """One call of a model judge that is about to be stored with its comparison."""

    judge: str
    presentation_order: str
    repeat: int
    attempt: int
    generation_id: int | None
    verdict: float | None
    reason: str | None
    metric: str | None = None
    """The metric of the comparison that the call was made for; None where it is behind the outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOutput:
    """One of several texts of a comparison that is about to be stored: its score, or why there is none."""

    number: int
    generation_id: int
    answer: str | None = None
    score: float | None = None
    reason: str | None = None
    no_answer: bool = False
    preference: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMetric:
    """A further judge's score of a comparison that is about to be stored, or the reason there is none."""

    name: str
    score: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewComparison:
    """One scored pair that is about to be stored: an outcome, or the reason there is none."""

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
    """The texts that could be made, where the outcome is of several."""
    metrics: Sequence[NewMetric] = ()

    @property
    def is_answered(self) -> bool:
        """Whether every text that it compares could be made."""
        is_duel = self.candidate_b_id is not None
        return self.generation_a_id is not None and (self.generation_b_id is not None or not is_duel)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDecision:
    """A decision after a round; one number per candidate position, None where nothing is known."""

    best_candidate_id: int | None
    estimates: Sequence[float | None]
    lower: Sequence[float | None]
    upper: Sequence[float | None]
    status: Sequence[str]
    """One word per candidate position; see `algorithms.claims.ArmStatus`."""
    claim: JsonView
    """The fields of an `algorithms.claims.Claim`."""
    stop: bool
    reason: str
    ranking: Sequence[float | None] | None = None
    """The scores that order the candidates, where those are not `estimates`."""
    differences: JsonView | None = None
    """The fields of an `algorithms.decision.Differences`, None where nothing is known."""
    bets: Mapping[str, Sequence[float | None]] | None = None
    """The fields of an `algorithms.decision.Bets`: wealths, levels, out_in_round, out_at."""


SET_ASIDE = ("dropped", "removed")
"""The status of a candidate that is no rival of the best any more."""


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
    """"active" for candidates that joined after it."""
    claim: JsonView
    stop: bool
    reason: str
    decided_at: dt.datetime
    ranking: Sequence[float | None] | None = None
    differences: JsonView | None = None
    """See `NewDecision`; of candidates that joined after it, it says nothing."""
    bets: Mapping[str, Sequence[float | None]] | None = None
    n_joined: int = 0
    """Number of candidates that joined after it; the best one of a benchmark is then open again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process that runs a campaign."""

    host: str
    """Its machine's name, for people: several machines may have the same."""
    pid: int
    boot_id: str
    """Identity of the start of its system: no other machine and no other start has the same."""
    pid_namespace: str
    """Within which `pid` counts; containers on one machine have their own."""
    started_ticks: int
    """Clock ticks from the system's start to the process's: a later process of the same number has more."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """A lease as stored."""

    campaign_id: int
    token: int
    holder: Holder
    beats: int
    """Heartbeats since it was taken."""
    heartbeat_at: dt.datetime
    """Time of the last heartbeat, or of taking the lease: by PostgreSQL's clock, else by the holder's."""
    lifetime: dt.timedelta
    """Without a heartbeat for as long, it may be taken over."""
    released_at: dt.datetime | None
    is_expired: bool | None
    """Whether it has had none for as long, by the clock that `heartbeat_at` is of; None where the database
    has no clock of its own, which is SQLite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAnnotationTask:
    """One text for people to rate, or two to compare; see `storage.models.AnnotationTask`."""

    key: str
    example_id: int
    generation_a_id: int
    generation_b_id: int | None = None
    presentation_order: str = "original"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationRecord:
    """A person's answer to a task: a verdict, or the reason there is none."""

    verdict: float | None
    reason: str | None
    annotator: str
    source: str
    annotated_at: dt.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationTaskRecord(NewAnnotationTask):
    """A stored task, and what was said of it."""

    id: int
    round_id: int
    presentation_order: str
    annotation: AnnotationRecord | None
    """None while nobody has answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTask:
    """A task as people see it."""

    example: str
    """The example's key."""
    question: str
    """The example's input."""
    targets: Sequence[str]
    """The answers that count as right, where people are shown them."""
    texts: tuple[str, ...]
    """In the order in which they are shown: one, or two."""
