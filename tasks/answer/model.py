"""Data of a campaign's answer, as shown in terminal, log, pages and JSON."""

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

if TYPE_CHECKING:  # these import numpy, which few answers need
    from winnow.tasks.objectives.best_mean.holdout.results import HeldOut
    from winnow.tasks.objectives.certify.certificate import Certificate
    from winnow.tasks.objectives.route.status import Standing

Outcome = Literal["winner", "tied", "policy", "decided", "none", "waiting", "undecided", "failed"]
"""Possible results of a campaign:

* winner: one candidate is the answer, or the m best with `top_m`; for certify, the cheapest certified one.
* tied: several candidates are the answer, and the question does not distinguish between them.
* policy: a routed campaign has answered its prompts; the answer is the learned policy.
* decided: for every candidate that was not dropped, it is known whether it is worse than the baseline by more
  than epsilon.
* none: the tests have ended without a certified candidate; or no candidate beats or ties every other one; or
  no candidate meets the constraints.
* waiting: annotators have to label examples or judge outputs before the campaign can continue.
* undecided: a limit is spent, or no pair is left to compare, and the question is open.
* failed: every candidate was dropped, or no candidate can be compared with the baseline.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A candidate's mean minus that of another one: the estimate and its interval."""

    against: str
    estimate: float | None
    lower: float | None
    """Lower end of an interval that, with `upper`, holds for all candidates at once; None if unknown."""
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateStanding:
    """Status and estimates of one candidate."""

    name: str
    status: ArmStatus = "active"
    estimate: float | None = None
    lower: float | None = None
    upper: float | None = None
    difference: Difference | None = None
    wealth: float | None = None
    """Wealth of the bets against the candidate, which starts at 1; None if the selector makes no bets."""
    out_in_round: int | None = None
    """The round, counted from 0, after which bets had eliminated the candidate; None if it is not
    eliminated.
    """
    out_at: int | None = None
    """Number of comparisons up to the end of that round."""


@dataclass(frozen=True, slots=True)
class People:
    """Progress of the annotators of a campaign."""

    annotators: int
    """Number of different annotator names with at least one judgment."""
    wanted: int
    """Number of judgments that the planned round waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constrained:
    """A constraint, and the best candidate's mean of its metric so far."""

    constraint: Constraint
    mean: float | None
    """Mean of the best candidate's values so far; None if it has no values."""
    valued: int
    """Number of the best candidate's comparisons with a value."""
    judges: tuple[str, ...] = ()
    """Names of the models that compute the values, at least in part; empty if only rules do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscored:
    """A candidate with missing outcomes."""

    name: str
    told: int
    """Number of the candidate's comparisons so far."""
    unscored: int
    """Number of those comparisons without an outcome; for certify, without a loss that counts."""
    reason: str | None
    """The most frequent reason for missing scores; None if unknown."""
    left_out_in: int | None = None
    """The round, counted from 1, in which a user excluded the candidate; None if no user excluded it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """Candidates that joined together after the campaign had begun."""

    names: tuple[str, ...]
    rounds: int
    """Number of rounds before the candidates joined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """A proven bound on how much better another candidate can be than a given one.

    Dropped candidates are not covered. The bound says nothing about how much worse other candidates are. In a
    search for the m best, at most m - 1 candidates are better than the given one by more than the bound.
    """

    over: str
    """The given candidate."""
    most: float
    """The bound, in the units of the score."""
    claim: ClaimKind
    """Kind of the claim: exact or proven."""
    delta: float
    """Upper bound on the probability that any such statement of the campaign is wrong; 0 if exact."""
    not_excluded: tuple[str, ...]
    """Candidates that can be better than the given one by up to the bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a running or ended campaign at one moment."""

    objective: str
    outcome: Outcome | None
    """The result of the campaign; None while it has not ended."""
    claim: Claim
    reason: str
    """The selector's reason for the end; "budget" for any spent limit; "running" before the end."""
    best: str | None
    """The winner, the first of the tied candidates, or the current leader; None for a gate."""
    candidates: tuple[CandidateStanding, ...]
    """All candidates, by position."""
    dropped: tuple[Unscored, ...] = ()
    """Candidates that were dropped permanently; the answer claims nothing about them."""
    lacking: tuple[Unscored, ...] = ()
    """Candidates that could still be the answer although no pair is left to compare.
    A limit can have ended the campaign nevertheless, if held-out examples were left to score.
    """
    additions: tuple[Addition, ...] = ()
    """Candidates that joined after the campaign had begun, in the order in which they joined."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Models that were unreachable at the start and do not take part, with the cause for each."""
    expects_additions: bool = False
    """Whether the error probability already allows for candidates that join later."""
    n_examples: int
    """Number of the benchmark's examples without held-out ones; for route, number of its initial prompts."""
    judged: int | None = None
    """Number of examples with a score of the best candidate; None unless equal outputs need no verdict."""
    delta: float | None
    """Requested error probability; None if only a budget ends the campaign."""
    epsilon: float = 0.0
    baseline: str | None = None
    """The candidate that the others are compared with; None if the campaign searches for the best."""
    groups: Grouping | None = None
    """Groups whose means are compared, and how these are combined; None for means over all examples."""
    constraints: tuple[Constrained, ...] = ()
    """The constraints on the best candidate; empty without constraints."""
    top_m: int = 1
    """Number of best candidates to find."""
    costs: Mapping[str, float] | None = None
    """Cost of each candidate; None unless the campaign searches for the cheapest one that is good enough."""
    judges: tuple[str, ...] = ()
    """Names of the models that score outputs; empty if only rules or people do."""
    silent: Mapping[str, int] = field(default_factory=dict)
    """Number of scored comparisons without a readable verdict, by judge model.
    Empty for a single judge model.
    """
    judged_in_part: bool = False
    """Whether scores of judge models are combined with scores of rules."""
    people: People | None = None
    """Number of annotators and of missing judgments; None if people do not judge outputs."""
    samples: tuple[int, str] | None = None
    """Number of outputs per candidate and example, and how their scores are combined; None for one output."""
    stored_texts: tuple[int, int] | None = None
    """Number of comparisons with a stored output, and of all comparisons; None if the campaign generates
    outputs.
    """
    servers: tuple[ServerChange, ...] = ()
    """Served models that changed, or that turned out to be several models."""
    intervals_if: tuple[Assumption, ...] = ()
    """Assumptions of the estimates and their intervals, whether or not the answer has a claim."""
    refuted: tuple[Assumption, ...] = ()
    """Assumptions of the selector's method that the outcomes refuted."""
    excess: Excess | None = None
    """Bound on how much better another candidate can be; None without a valid bound."""
    known: frozenset[str] = frozenset()
    """Names of candidates with exact means, because they are scored on every example.
    Only the best candidates and the runner-up are looked up, or, for a gate, the baseline and all candidates.
    """
    scored: tuple[int, float] | None = None
    """Number of the best candidate's scored examples, and their plain mean.
    None if its mean is exact, without scores, for means of groups, and for questions without means.
    """
    measured: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    """For an ended gate: number of examples scored for a candidate and for the baseline, and the mean
    difference on them; without candidates that have no such example.
    """
    plugin: str | None = None
    """Name of the third-party selector, whose guarantee Winnow has not verified; None for a built-in
    selector.
    """
    is_of_program: bool = False
    """Whether scores come from a function of a program, so that only this program can continue the
    campaign.
    """
    named_by_program: str | None = None
    """Clause on a plug-in that only a program registers, so that only this program can continue the campaign.
    Example: "judge 'short' is named by @winnow.judge". None without such a plug-in, and for a finished
    campaign.
    """
    limit: BudgetUsage | None = None
    """The spent limit that prevents a better answer; None without such a limit."""
    also_spent: tuple[BudgetUsage, ...] = ()
    """Other spent limits, which also have to be raised before the campaign can continue."""
    held_out: "HeldOut | None" = None
    """The winner's results on the held-out examples; None if no examples are held out."""
    only_held_out_left: bool = False
    """Whether selection was complete when a limit ended the campaign, so that only held-out examples are left
    to score.
    """
    beyond: Beyond | None = None
    """Comparison with the closest opponent on new examples; None if not computed or not possible."""
    shown: int = 0
    """Number of examples with outputs shown to a user before the campaign began; 0 if not computed."""
    running: tuple[RunningCost, ...] = ()
    """Running costs of the best candidate and the runner-up, or of the tied candidates; empty if not
    computed.
    """
    unsteady: tuple[str, ...] | None = None
    """Engines that may not reproduce their outputs; None if not computed."""
    rival: str | None = None
    """For duels: the strongest opponent of the best candidate, tied candidates excluded; None if unknown."""
    rival_share: tuple[float, int] | None = None
    """For duels: the best candidate's share of wins against `rival` (a tie is half a win), and the number of
    scored duels. None if a model estimates the share.
    """
    asked_before: tuple[str, ...] | None = None
    """Earlier campaigns on the same question, with other draws or another test; None if not computed."""
    next_step: NextStep | None = None
    """Estimated comparisons that would settle an undecided answer; None if not computed."""
    earlier: Earlier | None = None
    """An earlier campaign with another test and with outcomes on some of the labelled or held-out examples;
    None without such a campaign.
    """
    certificate: "Certificate | None" = None
    """Results of a certify campaign; None for other objectives."""
    standing: "Standing | None" = None
    """Results of a route campaign; None for other objectives."""
    without_text: int = 0
    """Number of comparisons for which no output could be generated.
    They count for bets but not for the budget.
    """
    is_unsolved: bool = False
    """Whether the campaign ended with an answer or without a certified candidate, and every known score
    is 0.
    """
    without_canaries: bool = False
    """Whether `execution.canaries` disables the prompts that detect changes of served models."""
    allows_all_zero: bool = False
    """Whether an answer counts although every score is 0."""
    campaign: str = "NAME"
    """The campaign's name, for commands."""

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
        """Status and estimates of the best candidate; None if it is unknown."""
        return next((each for each in self.candidates if each.name == self.best), None)

    @property
    def listed(self) -> tuple[str, ...]:
        """Names of the candidates that lists of campaigns show as the best.

        These are the chosen, the tied, the m best or the leading candidates.
        """
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
        """The candidate closest to the best, or to the last of the m best; None if unclear.

        Tied candidates do not count, and candidates still in question come before eliminated ones. Among
        these, the runner-up is the candidate whose difference has the highest lower end, so a high estimate
        on a few examples is not enough. Without intervals, it is the candidate with the highest estimate. For
        duels it is the strongest opponent of the best.

        None in two further cases. With constraints, it is often unknown whether the next candidate meets
        them. If the m best are not settled, the candidate next to the first of them is itself one of them.
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
        """For certify: candidates that would be the answer if their risk were lower.

        More precisely, if it were shown to be low enough. Empty for selectors that certify by a plain mean.
        """
        if self.certificate is None or not self.certificate.is_reliable:
            return ()
        if self.outcome not in ("winner", "none"):
            return ()
        cheaper = [each.name for each in self.candidates].index(self.best) + 1 if self.best else 0
        return tuple(each.name for each in self.candidates[cheaper:] if each.status == "active")

    @property
    def held_out_mean(self) -> float | None:
        """The best candidate's mean on the held-out examples; None until all are scored."""
        return None if self.held_out is None else self.held_out.mean

    @property
    def listed_held_out(self) -> float | None:
        """`held_out_mean` if its candidate is the only listed one; else None."""
        found = self.held_out
        return found.mean if found is not None and self.listed == (found.winner,) else None

    def named(self, *statuses: ArmStatus) -> tuple[str, ...]:
        """Names of the candidates with one of the given statuses, by arm."""
        return tuple(each.name for each in self.candidates if each.status in statuses)

    @property
    def tied(self) -> tuple[str, ...]:
        """Names of the candidates tied for first place: the best one, then by estimate.

        With `top_m`: of those tied for the last places, by arm.
        """
        return self._best_first("tied") if self.top_m == 1 else self.named("tied")

    @property
    def top(self) -> tuple[str, ...]:
        """Names of the candidates shown to be among the m best and not tied, best first."""
        return self._best_first("top")

    def _best_first(self, status: ArmStatus) -> tuple[str, ...]:
        found = [each for each in self.candidates if each.status == status]
        found.sort(key=lambda each: (each.name != self.best, -(each.estimate or 0.0)))
        return tuple(each.name for each in found)

    @property
    def chosen(self) -> str | None:
        """The cheapest candidate shown to be good enough; None if it is the best."""
        return next(iter(self.named("chosen")), None)

    @property
    def lacks_texts(self) -> bool:
        """Whether the campaign generates no outputs and lacks a stored one."""
        return self.stored_texts is not None and self.stored_texts[0] < self.stored_texts[1]

    @property
    def winners(self) -> frozenset[str]:
        """Names of the winners: one candidate, the tied ones, or the m best.

        Empty if the question is open. A cheaper candidate that was chosen is the only winner, even if several
        are tied for first place.
        """
        if self.outcome not in ("winner", "tied"):
            return frozenset()
        alone = self.chosen or (None if self.tied or self.top else self.best)
        return frozenset(self.tied + self.top if alone is None else (alone,))

    @property
    def contenders(self) -> tuple[str, ...]:
        """Names of the candidates still in question: the leader, then by estimate.

        Those without an estimate come last. A candidate eliminated by bets is not in question, although its
        status stays active until something is proven: it could be the best by less than epsilon.
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
        """The leader, and the contenders with an estimate, in the order of `contenders`."""
        unknown = {each.name for each in self.candidates if each.estimate is None} - {self.best}
        return tuple(name for name in self.contenders if name not in unknown)

    def is_known(self, *names: str | None) -> bool:
        """Whether the means of the given candidates are exact.

        They are if all their examples are scored and no served model changed.
        """
        return self.known.issuperset(names) and not self.is_mixed

    @property
    def is_guaranteed(self) -> bool:
        """Whether the answer is exact, or proven up to its stated error probability."""
        return self.outcome is not None and self.claim.kind in ("exact", "proven")


def _at_worst(difference: Difference) -> float:
    """The lowest possible lead of a candidate; -2, below all leads, if unknown."""
    return -2.0 if difference.lower is None else difference.lower


def claim_of(stored: JsonView) -> Claim:
    """Convert a stored claim to a `Claim`."""
    return Claim(
        kind=stored["kind"],
        delta=stored["delta"],
        raised_by=tuple(stored["raised_by"]),
        assumptions=tuple(stored["assumptions"]),
        refuted=tuple(stored["refuted"]),
    )
