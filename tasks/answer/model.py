"""Data of a campaign's answer, as shown in terminal, log, pages and JSON; none of them computes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from winnow.algorithms.claims import ArmStatus, Assumption, Claim, ClaimKind
from winnow.storage.json_types import JsonView
from winnow.storage.objectives import traits_of
from winnow.tasks.answer.earlier_campaigns import Earlier
from winnow.tasks.answer.new_examples import Beyond
from winnow.tasks.answer.next_step import NextStep
from winnow.tasks.answer.unit_costs import RunningCost
from winnow.tasks.campaign.budget import BudgetUsage
from winnow.tasks.campaign.changed_models import ServerChange
from winnow.tasks.spec.stored_spec import Constraint, Grouping

if TYPE_CHECKING:  # these need numpy, which few answers have need of
    from winnow.tasks.objectives.best_mean.holdout.results import HeldOut
    from winnow.tasks.objectives.certify.certificate import Certificate
    from winnow.tasks.objectives.route.status import Standing

Outcome = Literal["winner", "tied", "policy", "decided", "none", "waiting", "undecided", "failed"]
"""Possible results of a campaign:

* winner: one candidate is the answer, or the m best with `top_m`; for certify, the cheapest certified one.
* tied: several candidates are the answer, and the question does not distinguish between them.
* policy: a routed campaign has answered its prompts; the answer is the learned policy.
* decided: for every candidate not dropped, it is known whether it is worse than the baseline by more than
  epsilon.
* none: the tests are over and no candidate is certified; or no candidate beats or ties every other, or meets
  the constraints.
* waiting: annotators have to label examples or judge outputs before it can continue.
* undecided: a limit is spent, or no pair is left to compare, and the question is open.
* failed: every candidate was dropped, or none can be compared with the baseline.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A candidate's mean minus that of another candidate: the estimate and its interval."""

    against: str
    estimate: float | None
    lower: float | None
    """Lower end of an interval that, with `upper`, holds for all candidates at once; None if unknown."""
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateStanding:
    """The status of one candidate and its estimates."""

    name: str
    status: ArmStatus = "active"
    estimate: float | None = None
    lower: float | None = None
    upper: float | None = None
    difference: Difference | None = None
    wealth: float | None = None
    """Wealth of the bets against the candidate, starting at 1; None if the selector makes no bets."""
    out_in_round: int | None = None
    """The round after which the bets had eliminated the candidate; None if it is not eliminated."""
    out_at: int | None = None
    """Number of comparisons up to that round."""


@dataclass(frozen=True, slots=True)
class People:
    """Progress of the annotators of a campaign."""

    annotators: int
    """Number of different annotator names with a judgment."""
    wanted: int
    """Judgments that the planned round waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constrained:
    """A constraint, and how well the best candidate meets it so far."""

    constraint: Constraint
    mean: float | None
    """Mean of the best candidate's values so far; None if it has no value."""
    valued: int
    """Number of the best candidate's comparisons that have a value."""
    judges: tuple[str, ...] = ()
    """Models that compute the values, at least in part; empty if rules alone do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscored:
    """A candidate with missing outcomes."""

    name: str
    told: int
    """Number of observed comparisons of the candidate."""
    unscored: int
    """Those comparisons without an outcome; for certify, without a loss that counts."""
    reason: str | None
    """The most frequent reason for missing scores; None if unknown."""
    left_out_in: int | None = None
    """The round, counted from 1, in which a user left the candidate out; None for any other cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """Candidates that joined in one list after the campaign began."""

    names: tuple[str, ...]
    rounds: int
    """Number of rounds before the candidates joined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """A proven bound: no other candidate that was not dropped is better than one by more than a margin.

    Nothing is shown of how much worse the others are. If the m best are looked for, at most m - 1 candidates
    are better than this one by more.
    """

    over: str
    """The candidate."""
    most: float
    """The margin, in the units of the score."""
    claim: ClaimKind
    """exact or proven."""
    delta: float
    """Upper bound of the probability that any such statement of the campaign is wrong; 0 if exact."""
    not_excluded: tuple[str, ...]
    """The others that can be better by up to the margin, for all that is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The current answer of a running or ended campaign."""

    objective: str
    outcome: Outcome | None
    """The way the campaign ended; None while it has not ended."""
    claim: Claim
    reason: str
    """The selector's reason for the end, "budget" for any spent limit, or "running"."""
    best: str | None
    """The winner, the first of the tied, or the current leader; None for a gate, which has no best one."""
    candidates: tuple[CandidateStanding, ...]
    """All candidates, by position."""
    dropped: tuple[Unscored, ...] = ()
    """Candidates that were dropped permanently; nothing is claimed about them."""
    lacking: tuple[Unscored, ...] = ()
    """Candidates still in question when no pair is left to compare and the question is open. A limit may
    still have ended the campaign if held-out examples are left to score."""
    additions: tuple[Addition, ...] = ()
    """Lists of candidates that joined after the campaign had begun, in order."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Models that were unreachable at the start and take no part, with the cause for each."""
    expects_additions: bool = False
    """Whether additions were planned from the start, so that they do not raise the error probability."""
    n_examples: int
    """Number of the benchmark's examples without held-out ones; for route, of its initial prompts."""
    judged: int | None = None
    """Number of examples with a score of the best candidate, if equal outputs need no verdict; else None."""
    delta: float | None
    """Error probability that was requested; None if only a budget ends the campaign."""
    epsilon: float = 0.0
    baseline: str | None = None
    """The candidate that the others are compared with; None if the best is searched for."""
    groups: Grouping | None = None
    """The groups whose means are compared, with the rule; None if means over all examples are compared."""
    constraints: tuple[Constrained, ...] = ()
    """The constraints on the best candidate."""
    top_m: int = 1
    """Number of best candidates to find."""
    costs: Mapping[str, float] | None = None
    """Cost of each candidate, if the cheapest good enough one is searched for."""
    judges: tuple[str, ...] = ()
    """The models that score outputs; empty if no model does."""
    silent: Mapping[str, int] = field(default_factory=dict)
    """Number of scored outputs without a readable reply, for each of several judge models."""
    judged_in_part: bool = False
    """Whether rules also contribute to the scores that judge models give."""
    people: People | None = None
    """Annotators and the judgments that they still owe; None if people do not judge outputs."""
    samples: tuple[int, str] | None = None
    """Outputs per candidate and example, and how their scores are combined; None for one output."""
    stored_texts: tuple[int, int] | None = None
    """Comparisons with a stored output, and all of them, for a campaign that generates nothing; else None."""
    servers: tuple[ServerChange, ...] = ()
    """Served models that were found to have changed, or to be several models."""
    intervals_if: tuple[Assumption, ...] = ()
    """Assumptions of the estimates and their intervals, with or without a claim."""
    refuted: tuple[Assumption, ...] = ()
    """Assumptions of the method that the outcomes refuted."""
    excess: Excess | None = None
    """Bound on how much better another candidate can be; None if nothing is shown."""
    known: frozenset[str] = frozenset()
    """Names of candidates scored on every example, whose means are therefore exact: of the best ones and the
    runner-up, or of the baseline and all candidates compared with it."""
    plugin: str | None = None
    """The third-party selector, whose guarantee Winnow has not verified; None for Winnow's own."""
    is_of_program: bool = False
    """Whether a program's own function gives the scores, so that only that program can continue."""
    named_by_program: str | None = None
    """The plug-in that no installed package provides, such as "judge 'short' is named by @winnow.judge", so
    that only a program can continue the campaign; looked up only if the campaign is unfinished."""
    limit: BudgetUsage | None = None
    """The spent limit that prevents a better answer."""
    also_spent: tuple[BudgetUsage, ...] = ()
    """Other spent limits that must be raised as well before the campaign can continue."""
    held_out: "HeldOut | None" = None
    """The winner's results on examples that selection did not use; None if no examples are held out."""
    only_held_out_left: bool = False
    """Whether selection was complete when a limit ended the campaign, so that only held-out examples are left
    to score."""
    beyond: Beyond | None = None
    """Comparison with the closest opponent on new examples; None if not requested or not possible."""
    shown: int = 0
    """Examples with outputs shown to a user before the campaign began; 0 if not requested."""
    running: tuple[RunningCost, ...] = ()
    """Running costs of the best candidate and the runner-up, or of the tied; empty if not requested."""
    unsteady: tuple[str, ...] | None = None
    """Engines whose outputs may differ if the run is repeated; None if not requested."""
    rival: str | None = None
    """In a duel campaign, the strongest opponent of the best candidate that is not tied with it."""
    rival_share: tuple[float, int] | None = None
    """The best candidate's share of their scored duels (a tie is half a win), and the number of these; None
    if a model estimates the share."""
    asked_before: tuple[str, ...] | None = None
    """Earlier campaigns on the same question with other draws or another test; None if not requested."""
    next_step: NextStep | None = None
    """Comparisons that would probably settle an undecided answer; None if it cannot be computed."""
    earlier: Earlier | None = None
    """An earlier campaign that tested something else on some examples that count as fresh here: those with
    labels, or those held out."""
    certificate: "Certificate | None" = None
    """Results of a certify campaign; None for others."""
    standing: "Standing | None" = None
    """Results of a route campaign; None for others."""
    without_text: int = 0
    """Comparisons for which no output could be generated; they do not count for the budget, but for bets."""
    is_unsolved: bool = False
    """Whether the campaign ended with an answer, or certified none, and every known score is 0."""
    without_canaries: bool = False
    """Whether `execution.canaries` disabled the requests that detect changes of served models."""
    allows_all_zero: bool = False
    """Whether an answer counts even if every score is 0."""
    campaign: str = "NAME"
    """The campaign's name in commands."""

    @property
    def is_mixed(self) -> bool:
        """Whether outputs of two models are compared as if one model had written them."""
        return any(each.mixes for each in self.servers)

    @property
    def is_own_baseline(self) -> bool:
        """Whether the answer is the baseline itself, whose drop of 0 needs no proof."""
        baseline = None if self.certificate is None else self.certificate.baseline
        return baseline is not None and self.best == baseline

    @property
    def of_best(self) -> CandidateStanding | None:
        """Status and estimate of the best candidate; None if the best candidate is unknown."""
        return next((each for each in self.candidates if each.name == self.best), None)

    @property
    def listed(self) -> tuple[str, ...]:
        """The candidates that a list of campaigns shows as the best: chosen, tied, the m best, or leading."""
        if (best := self.of_best) is None:
            return ()
        if self.chosen is not None:
            return (self.chosen,)
        return (*self.top, *self.tied) or (best.name,)

    @property
    def listed_estimate(self) -> float | None:
        """The estimate that all listed candidates share; None if they differ."""
        listed = frozenset(self.listed)
        found = {each.estimate for each in self.candidates if each.name in listed}
        return found.pop() if len(found) == 1 else None

    @property
    def runner_up(self) -> CandidateStanding | None:
        """The candidate closest to the best, or to the last of the m best; None if unknown.

        Tied candidates do not count, and candidates still in question precede eliminated ones. Among these,
        the runner-up is the candidate whose difference has the highest lower end, so a high estimate on a few
        examples is not enough. Without intervals, it is the candidate with the highest estimate. None with
        constraints, because it is often unknown whether the next candidate meets them. None also if the m
        best are not settled, because the candidate next to the first of them is itself one of them. For duels
        it is the strongest opponent of the best.
        """
        if self.constraints or (self.top_m > 1 and not self.top and not self.tied):
            return None
        if traits_of(self.objective).compares_pairs:
            return next((each for each in self.candidates if each.name == self.rival), None)
        first = {self.best, *self.top, *self.tied}
        known = [
            ((each.status == "active", _at_worst(each.difference), each.difference.estimate), each)
            for each in self.candidates
            if each.difference is not None
            and each.difference.estimate is not None
            and each.difference.against in first
            and each.status not in ("dropped", "top", "tied")
        ]
        return max(known, key=lambda pair: pair[0])[1] if known else None

    @property
    def unsettled(self) -> tuple[str, ...]:
        """For certify, candidates that would be the answer if their open risk were shown to be low enough.

        Empty for a plain mean, once it has all labels.
        """
        if self.certificate is None or not self.certificate.is_reliable:
            return ()
        if self.outcome not in ("winner", "none"):
            return ()
        cheaper = [each.name for each in self.candidates].index(self.best) + 1 if self.best else 0
        return tuple(each.name for each in self.candidates[cheaper:] if each.status == "active")

    @property
    def held_out_mean(self) -> float | None:
        """The best candidate's mean on the held-out examples, once all of them are scored."""
        return None if self.held_out is None else self.held_out.mean

    @property
    def listed_held_out(self) -> float | None:
        """`held_out_mean` if it belongs to the only listed candidate; else None."""
        found = self.held_out
        return found.mean if found is not None and self.listed == (found.winner,) else None

    def named(self, *statuses: ArmStatus) -> tuple[str, ...]:
        """Candidates with one of the given statuses, by position."""
        return tuple(each.name for each in self.candidates if each.status in statuses)

    @property
    def tied(self) -> tuple[str, ...]:
        """The candidates tied for first place."""
        return self.named("tied")

    @property
    def top(self) -> tuple[str, ...]:
        """The candidates shown to be among the m best and not tied with another candidate, best first."""
        found = [each for each in self.candidates if each.status == "top"]
        found.sort(key=lambda each: (each.name != self.best, -(each.estimate or 0.0)))
        return tuple(each.name for each in found)

    @property
    def chosen(self) -> str | None:
        """The cheapest candidate shown to be good enough, if it is not the best itself."""
        return next(iter(self.named("chosen")), None)

    @property
    def lacks_texts(self) -> bool:
        """Whether the campaign generates nothing, and some comparison had no stored output."""
        return self.stored_texts is not None and self.stored_texts[0] < self.stored_texts[1]

    @property
    def winners(self) -> frozenset[str]:
        """The winners: one candidate, the tied ones, or the m best; empty if the question is open.

        If a cheaper candidate was chosen, it is the winner, even if several are tied for first place.
        """
        if self.outcome not in ("winner", "tied"):
            return frozenset()
        alone = self.chosen or (None if self.tied or self.top else self.best)
        return frozenset(self.tied + self.top if alone is None else (alone,))

    @property
    def contenders(self) -> tuple[str, ...]:
        """Candidates still in question: the leader, then by estimate, then those without an estimate.

        A candidate eliminated by bets is not in question, although its status stays active until something is
        proven: it could be the best by less than epsilon.
        """
        open_ = [
            each
            for each in self.candidates
            if (each.status == "active" and each.out_in_round is None) or each.name == self.best
        ]
        open_.sort(key=lambda each: (each.name != self.best, each.estimate is None, -(each.estimate or 0.0)))
        return tuple(each.name for each in open_)

    @property
    def ranked(self) -> tuple[str, ...]:
        """The contenders with a known score, and always the leader, in the same order."""
        unknown = {each.name for each in self.candidates if each.estimate is None} - {self.best}
        return tuple(name for name in self.contenders if name not in unknown)

    def is_known(self, *names: str | None) -> bool:
        """Whether the candidates' means are exact: one model scored all of their examples."""
        return self.known.issuperset(names) and not self.is_mixed

    @property
    def is_guaranteed(self) -> bool:
        """Whether the answer is exact, or proven up to its stated error probability."""
        return self.outcome is not None and self.claim.kind in ("exact", "proven")


def _at_worst(difference: Difference) -> float:
    """The worst-case lead of a candidate; a number below all possible leads if it is unknown."""
    return -2.0 if difference.lower is None else difference.lower


def claim_of(stored: JsonView) -> Claim:
    """The claim as stored in the database."""
    return Claim(
        kind=stored["kind"],
        delta=stored["delta"],
        raised_by=tuple(stored["raised_by"]),
        assumptions=tuple(stored["assumptions"]),
        refuted=tuple(stored["refuted"]),
    )
