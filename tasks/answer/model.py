"""The data of a campaign's answer. Terminal, log, pages and JSON show it; none of them works it out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from winnow.algorithms.claims import ArmStatus, Assumption, Claim
from winnow.storage.json_types import JsonView
from winnow.storage.objectives import traits_of
from winnow.tasks.answer.earlier_campaigns import Earlier
from winnow.tasks.answer.new_examples import Beyond
from winnow.tasks.answer.next_step import NextStep
from winnow.tasks.answer.unit_costs import RunningCost
from winnow.tasks.campaign.budget import BudgetUsage
from winnow.tasks.campaign.canaries.changed_models import ServerChange
from winnow.tasks.spec.stored_spec import Constraint, Grouping

if TYPE_CHECKING:  # these need numpy, which few answers have need of
    from winnow.tasks.objectives.best_mean.holdout.results import HeldOut
    from winnow.tasks.objectives.certify.certificate import Certificate
    from winnow.tasks.objectives.route.status import Standing

Outcome = Literal["winner", "tied", "policy", "decided", "none", "waiting", "undecided", "failed"]
"""The ways in which a campaign can end:

* winner: one candidate is the answer, or the m best where so many are looked for; to certify, the cheapest
  certified one.
* tied: several candidates are the answer, and which of them is chosen does not matter to the question.
* policy: a routed campaign has answered its prompts; the answer is what was learned of whom to ask.
* decided: of every candidate that was not dropped it is known whether it is worse than the baseline by more
  than epsilon.
* none: the tests are over and no candidate is certified; or no candidate beats or ties every other, or meets
  the constraints.
* waiting: people have to label examples, or to judge outputs, before it can continue.
* undecided: nothing more may be spent, or nothing is left to ask, and the question is open.
* failed: every candidate was dropped, or none can be compared with the baseline.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A candidate's mean minus that of another candidate: the estimate and its interval."""

    against: str
    estimate: float | None
    lower: float | None
    """The lower end of an interval that holds for all candidates at once, as does `upper`; None if not
    known."""
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateStanding:
    """The standing of one candidate: its status and the estimates about it."""

    name: str
    status: ArmStatus = "active"
    estimate: float | None = None
    lower: float | None = None
    upper: float | None = None
    difference: Difference | None = None
    wealth: float | None = None
    """Wealth of the bets against the candidate, which began with 1; None if the selector makes none."""
    out_in_round: int | None = None
    """The round after which the bets had shown it to be out; None if they have not."""
    out_at: int | None = None
    """Number of comparisons up to then."""


@dataclass(frozen=True, slots=True)
class People:
    """Progress of the people who judge a campaign."""

    annotators: int
    """Number of different names that have judged something."""
    wanted: int
    """Judgments that the planned round waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constrained:
    """A constraint, and what is known of how the best candidate meets it."""

    constraint: Constraint
    mean: float | None
    """Mean of the best candidate's values so far; None if there is no value."""
    valued: int
    """Number of its comparisons that have a value."""
    judges: tuple[str, ...] = ()
    """The models that the values come from, in part at least; empty if rules alone give them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscored:
    """A candidate, and what it lacks."""

    name: str
    told: int
    """Comparisons that it took part in."""
    unscored: int
    """Number of those comparisons without an outcome; to certify, without a loss that counts."""
    reason: str | None
    """The most frequent reason for that; None where it is not known."""
    left_out_in: int | None = None
    """The round, counted from 1, in which a user left it out; None for any other cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """Candidates that joined together once the campaign had begun."""

    names: tuple[str, ...]
    rounds: int
    """Number of rounds before the candidates joined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer as it stands, of a campaign that runs or has ended."""

    objective: str
    outcome: Outcome | None
    """The way the campaign ended; None while it has not ended."""
    claim: Claim
    reason: str
    """The selector's reason for the end of the campaign, or "running"; "budget" whichever limit is spent."""
    best: str | None
    """The winner, the first of the tied, or the one leading so far; None for a gate, which looks for no best
    one."""
    candidates: tuple[CandidateStanding, ...]
    """All of them, by position."""
    dropped: tuple[Unscored, ...] = ()
    """The candidates that were left out for good, of which nothing is claimed."""
    lacking: tuple[Unscored, ...] = ()
    """The candidates that are still in question, where nothing is left to ask and the question is open. A
    limit may have ended the campaign all the same, where held-out examples are left to score."""
    additions: tuple[Addition, ...] = ()
    """Lists of candidates that joined a benchmark's campaign once it had begun, in order."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Models that could not be asked when the campaign began and take no part, and the cause of each."""
    expects_additions: bool = False
    """Whether additions were reckoned with from the start, so that they raise no error probability."""
    n_examples: int
    """Number of the benchmark's examples, less those held out; of a routed campaign, of the prompts it began
    with."""
    delta: float | None
    """Error probability that was requested; None if only a budget ends the campaign."""
    epsilon: float = 0.0
    baseline: str | None = None
    """The candidate to compare the others with, where that is the question and not which is the best."""
    groups: Grouping | None = None
    """The groups whose means are compared, and how; None if means over all examples are compared."""
    constraints: tuple[Constrained, ...] = ()
    """The constraints that the best candidate has to meet."""
    top_m: int = 1
    """Number of best candidates that are looked for."""
    costs: Mapping[str, float] | None = None
    """The cost of each candidate, where the cheapest that is good enough is looked for."""
    judges: tuple[str, ...] = ()
    """The models that score outputs; empty if none does."""
    silent: Mapping[str, int] = field(default_factory=dict)
    """Number of scored outputs, by each of several judging models, of which it said nothing that could be
    read."""
    judged_in_part: bool = False
    """Whether rules, too, have a part in the scores that the judging models give."""
    people: People | None = None
    """The people who judge, and the judgments wanted of them; None if people do not judge outputs."""
    samples: tuple[int, str] | None = None
    """Texts that a candidate writes for each example, and how their scores become one; None for one text."""
    stored_texts: tuple[int, int] | None = None
    """Number of comparisons that had a stored output, and of all, of a campaign that makes no text; else
    None."""
    servers: tuple[ServerChange, ...] = ()
    """Served models that were found to have changed, or to be several."""
    intervals_if: tuple[Assumption, ...] = ()
    """Assumptions of the estimates and their intervals, whether anything is claimed or not."""
    refuted: tuple[Assumption, ...] = ()
    """Assumptions of the method that the outcomes refuted."""
    known: frozenset[str] = frozenset()
    """The names of candidates that were scored on everything, so that nothing about them is an estimate: of
    the best ones and the runner-up, or of the baseline and all that are compared with it."""
    plugin: str | None = None
    """The selector, where it is a plug-in's, whose claims nobody but its author vouches for."""
    is_of_program: bool = False
    """Whether a program's own function gives the scores, so that nobody else can continue with it."""
    named_by_program: str | None = None
    """The plug-in that no installed package has, such as "judge 'short' is named by @winnow.judge", so that
    only a program can continue with the campaign; looked for where there is more to do."""
    limit: BudgetUsage | None = None
    """The spent limit without which more would be known."""
    also_spent: tuple[BudgetUsage, ...] = ()
    """The other limits that are spent, so that nothing continues before they are raised as well."""
    held_out: "HeldOut | None" = None
    """The winner's results on examples that selection never saw; None if none are held out."""
    only_held_out_left: bool = False
    """Whether selection had learned all that it wants to know when a limit ended the campaign, so that only
    held-out examples are left to score."""
    beyond: Beyond | None = None
    """The comparison with the closest opponent on new examples; None if nobody asked or none is made."""
    shown: int = 0
    """Examples on which a user was shown outputs before the campaign began; 0 if nobody asked."""
    running: tuple[RunningCost, ...] = ()
    """Running costs of the best candidate and the runner-up, or of the tied; empty if nobody asked."""
    unsteady: tuple[str, ...] | None = None
    """Engines whose texts may be others in a run that is made again; None if nobody asked."""
    rival: str | None = None
    """The candidate of a duel campaign that does best against the best so far, of those not tied with it."""
    rival_share: tuple[float, int] | None = None
    """The share of scored duels of the two that the best candidate won, a tie being half a win, and the
    number of these duels; None if a model estimates the share."""
    asked_before: tuple[str, ...] | None = None
    """Earlier campaigns that asked the same by other draws or another test; None if nobody asked."""
    next_step: NextStep | None = None
    """The comparisons that would probably settle an undecided answer; None if these cannot be reckoned."""
    earlier: Earlier | None = None
    """A campaign begun earlier that tested something else on some of the examples that count as fresh here:
    those with labels, or those held out."""
    certificate: "Certificate | None" = None
    """Results of a campaign that certifies; None of others."""
    standing: "Standing | None" = None
    """Results of a campaign that routes; None of others."""
    without_text: int = 0
    """Comparisons for which a text could not be made: a budget does not count them, and bets do."""
    is_unsolved: bool = False
    """Whether the campaign has ended with an answer, or certified nobody, and every known score is 0."""
    allows_all_zero: bool = False
    """Whether an answer counts although every score is 0."""
    campaign: str = "NAME"
    """The campaign's name in commands."""

    @property
    def is_mixed(self) -> bool:
        """Whether texts of two models are compared as if they were one's."""
        return any(each.mixes for each in self.servers)

    @property
    def is_own_baseline(self) -> bool:
        """Whether the answer is the candidate that drops are from, of which nothing was to be shown."""
        baseline = None if self.certificate is None else self.certificate.baseline
        return baseline is not None and self.best == baseline

    @property
    def of_best(self) -> CandidateStanding | None:
        """The standing of the best candidate; None if none is known."""
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
        """The estimate that all listed candidates share; None if they differ, as one would mislead."""
        listed = frozenset(self.listed)
        found = {each.estimate for each in self.candidates if each.name in listed}
        return found.pop() if len(found) == 1 else None

    @property
    def runner_up(self) -> CandidateStanding | None:
        """The candidate that comes closest to the best, or to the last of the m best, as far as is known.

        Not a tied candidate. Those still in question come before all that are out. Of either, it is
        the candidate that is behind by the least in the worst case: the one whose difference has the highest
        lower end. A high estimate on a few examples does not make a runner-up. Without intervals it is the
        highest estimate. None with constraints: whether the candidate with the next mean meets them is often
        not known. None, too, where the m best are not settled: the candidate next to the first of them is one
        of them itself. In duels it is the candidate that does best against the best.
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
        """To certify, who would be the answer if its risk, open at the end, were shown to be low enough.

        A plain mean leaves nothing open, once it has all labels.
        """
        if self.certificate is None or not self.certificate.is_reliable:
            return ()
        if self.outcome not in ("winner", "none"):
            return ()
        cheaper = [each.name for each in self.candidates].index(self.best) + 1 if self.best else 0
        return tuple(each.name for each in self.candidates[cheaper:] if each.status == "active")

    @property
    def held_out_mean(self) -> float | None:
        """The mean of the best candidate on the held-out examples, once all of them are done."""
        return None if self.held_out is None else self.held_out.mean

    @property
    def listed_held_out(self) -> float | None:
        """`held_out_mean`, where the one listed candidate is the one that it is the mean of."""
        found = self.held_out
        return found.mean if found is not None and self.listed == (found.winner,) else None

    def named(self, *statuses: ArmStatus) -> tuple[str, ...]:
        """The candidates with one of these statuses, by position."""
        return tuple(each.name for each in self.candidates if each.status in statuses)

    @property
    def tied(self) -> tuple[str, ...]:
        """The candidates that share the first place."""
        return self.named("tied")

    @property
    def top(self) -> tuple[str, ...]:
        """The candidates shown to be among the m best and not tied with another one, best first."""
        found = [each for each in self.candidates if each.status == "top"]
        found.sort(key=lambda each: (each.name != self.best, -(each.estimate or 0.0)))
        return tuple(each.name for each in found)

    @property
    def chosen(self) -> str | None:
        """The cheapest candidate that was shown to be good enough, where it is not the best itself."""
        return next(iter(self.named("chosen")), None)

    @property
    def lacks_texts(self) -> bool:
        """Whether it makes no text, and some comparison had no stored one."""
        return self.stored_texts is not None and self.stored_texts[0] < self.stored_texts[1]

    @property
    def winners(self) -> frozenset[str]:
        """The winners: one candidate, the tied ones, or the m best; empty if the question is open.

        A cheaper one that was chosen won, also where several share the first place.
        """
        if self.outcome not in ("winner", "tied"):
            return frozenset()
        alone = self.chosen or (None if self.tied or self.top else self.best)
        return frozenset(self.tied + self.top if alone is None else (alone,))

    @property
    def contenders(self) -> tuple[str, ...]:
        """Candidates still in question: the leading one, then by estimate, then those without an estimate.

        A candidate that bets have ruled out is in question no more, though its status says so until something
        is proven: it may be the best one by less than epsilon.
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
        """The contenders with a known score, and in any case the leading one, in the same order."""
        unknown = {each.name for each in self.candidates if each.estimate is None} - {self.best}
        return tuple(name for name in self.contenders if name not in unknown)

    def is_known(self, *names: str | None) -> bool:
        """Whether the means of candidates have no error: all of their examples were scored by one model."""
        return self.known.issuperset(names) and not self.is_mixed

    @property
    def is_guaranteed(self) -> bool:
        """Whether the answer is exact, or proven up to its stated error probability."""
        return self.outcome is not None and self.claim.kind in ("exact", "proven")


def _at_worst(difference: Difference) -> float:
    """The lead of a candidate in the worst case; a number below all possible leads where it is not known."""
    return -2.0 if difference.lower is None else difference.lower


def claim_of(stored: JsonView) -> Claim:
    """A claim from what the database holds of it."""
    return Claim(
        kind=stored["kind"],
        delta=stored["delta"],
        raised_by=tuple(stored["raised_by"]),
        assumptions=tuple(stored["assumptions"]),
        refuted=tuple(stored["refuted"]),
    )
