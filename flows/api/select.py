"""`winnow.select`: find the best candidate with a Python function as scorer."""

import reprlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.claims import HEURISTIC, ArmStatus, Claim
from winnow.algorithms.decision import Decision
from winnow.algorithms.errors import AlgorithmError
from winnow.algorithms.protocols import Selector, round_rng
from winnow.algorithms.registry import describe
from winnow.algorithms.state.arrays import FloatArray
from winnow.flows.api.call_checks import require_url
from winnow.flows.api.progress_lines import ProgressLines
from winnow.flows.api.score_calls import FailedCall, OnError, ScoreCalls
from winnow.tasks.campaign.blas_threads import on_one_thread
from winnow.tasks.errors import SpecError
from winnow.tasks.objectives.best_mean.groups import require_several
from winnow.tasks.objectives.best_mean.traits import NAME as SELECTED
from winnow.tasks.plugins.selectors import campaign_selector
from winnow.tasks.setup.auto_epsilon import AUTO, auto_epsilon, why_a_number
from winnow.tasks.spec.selector_traits import ENDS_WITH_TIES, PREFERS_COST, refuse_confidence
from winnow.tasks.spec.shorthands import DELTA

if TYPE_CHECKING:
    import pandas as pd

    from winnow.flows.api.results import Campaign

COMPARED: tuple[ArmStatus, ...] = ("better", "no-worse", "worse")
"""Statuses of a candidate after its comparison with a baseline."""

OF_EACH = {"costs": "candidate", "groups": "example", "group_weights": "group"}
"""Parameters that are arrays of numbers, and what each number belongs to."""

Candidate = TypeVar("Candidate")
Example = TypeVar("Example")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Selection(Generic[Candidate]):
    """The result of a selection: the best candidate, and the claim about it."""

    best: Candidate | None
    """The selector's best candidate. If nothing is claimed (`claim.kind` is "none"), the current leader.

    None before the first score, and for a gate, which looks for no best candidate. With `top_m`, the claim
    about this candidate is not stronger than that about the others in `top` and `tied`."""
    chosen: Candidate | None
    """With `prefer="cost"`, the cheapest candidate shown to be within `epsilon` of `best`; None if that
    candidate is `best` itself."""
    top: tuple[Candidate, ...]
    """With `top_m`, the candidates shown to be among the m best and not tied for the last place, best
    first."""
    tied: tuple[Candidate, ...]
    """Candidates tied for first place; with `top_m`, those tied for the last places of the m best."""
    claim: Claim
    """What is proven, with its error probability and its assumptions.

    The claim is about `best`. With `top_m`, the claim is that `top` and `tied` are the best candidates, in
    any order. With a selector that compares with a baseline, it is about `decision.status`. Nothing is
    claimed about candidates with the status "dropped"; about a single remaining candidate, nothing
    certain."""
    epsilon: float
    """Margin of the claim: another candidate's mean may be higher by at most this much."""
    decision: Decision
    """The selector's full decision, indexed by the position of the candidates.

    While nothing is claimed about the best candidate, `decision.excess` is an upper bound on how much better
    another candidate can be than the candidate `decision.excess.over`."""
    candidates: tuple[Candidate, ...]
    scores: FloatArray
    """The requested scores, shape (K, N); NaN for other pairs and for missing scores."""
    comparisons: int
    """Number of requested scores; with a database, including those of earlier calls."""
    results: "Campaign | None" = None
    """With a database, the campaign as `winnow.open(storage)[name]` returns it; None without a database."""
    names: tuple[str, ...] = ()
    """With a database, the stored names of `candidates`, in order; empty without a database.

    A name has letters, digits, `.`, `_` and `-`, and a suffix if names would otherwise be equal."""
    failed: tuple[FailedCall[Candidate, Any], ...] = ()
    """With on_error="unscored", the calls of this process that raised; they count as missing scores."""

    def __repr__(self) -> str:
        excluded = self._named("dropped")
        dropped = f", dropped {reprlib.repr(excluded)}" if excluded else ""
        error = "" if self.claim.delta is None else f" (wrong with probability at most {self.claim.delta:g})"
        cost = f"{self.comparisons} of {self.scores.size} scores"
        cost += f", {len(self.failed)} failed" if self.failed else ""
        within = f" to within {self.epsilon:g}" if self.epsilon and self.claim.kind != "none" else ""
        return f"<Selection: {self._result()}{dropped}, claim {self.claim.kind}{within}{error}, {cost}>"

    def _result(self) -> str:
        """The result as a clause: against a baseline, the m best, or the best candidate."""
        compared = [f"{word} {reprlib.repr(found)}" for word in COMPARED if (found := self._named(word))]
        if (baselines := self._named("baseline")) or compared:
            open_ = self._named("active")
            compared += [f"open {reprlib.repr(open_)}"] if open_ else []
            baseline = "".join(f" {each!r}" for each in baselines)
            return f"against the baseline{baseline}: {', '.join(compared) or 'nothing'}"
        if self.top:
            shared = f", tied for the last places {reprlib.repr(list(self.tied))}" if self.tied else ""
            return f"the best are {reprlib.repr(list(self.top))}{shared}"
        is_tied = self.decision.best is not None and self.decision.status[self.decision.best] == "tied"
        tied = f", tied with {len(self.tied) - 1} more" if is_tied else ""
        return f"best {self.best!r}{tied}" + (f", chosen {self.chosen!r}" if self.chosen is not None else "")

    def _named(self, status: ArmStatus) -> list[Candidate]:
        pairs = zip(self.candidates, self.decision.status, strict=True)
        return [each for each, found in pairs if found == status]

    @property
    def share(self) -> float:
        """Requested scores as a share of all pairs (candidates x examples)."""
        return self.comparisons / self.scores.size

    def leaderboard(self) -> "pd.DataFrame":
        """One row per candidate, highest estimate first; see `Decision` for the columns."""
        import pandas as pd

        decision = self.decision
        columns = {
            "candidate": [str(each) for each in self.candidates],
            "estimate": decision.estimates,
            "lower": decision.lower,
            "upper": decision.upper,
            "status": list(decision.status),
            "scored": np.isfinite(self.scores).sum(axis=1),
        }
        rows = pd.DataFrame(columns).sort_values("estimate", ascending=False, kind="stable")
        return rows.reset_index(drop=True)


def select(
    score: Callable[[Candidate, Example], float | Awaitable[float | None] | None],
    candidates: Sequence[Candidate],
    examples: Sequence[Example],
    *,
    selector: str = "champion",
    delta: float | None = DELTA,
    epsilon: float | Literal["auto"] | None = None,
    budget: int | None = None,
    batch_size: int | None = None,
    top_m: int | None = None,
    baseline: int | None = None,
    prefer: Literal["cost"] | None = None,
    costs: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    group_weights: ArrayLike | None = None,
    seed: int = 0,
    storage: str | None = None,
    name: str = "selection",
    max_workers: int | None = None,
    retries: int = 0,
    on_error: OnError = "raise",
    progress: bool = False,
    **params: object,
) -> Selection[Candidate]:
    """Find the candidate with the best mean score over the examples, with as few scores as possible.

    With `storage`, the scores are stored as a campaign, which the command line shows like any other. After an
    interruption or a crash, the same call continues the campaign and reuses all stored scores. If the
    campaign has ended, the call only returns the result.

    Args:
        score: Function of a candidate and an example, called once per pair unless it raises. Returns a number
            in [0, 1] (up to a rounding error of 1e-9), or None for a missing score. A missing score counts as
            0 or 1, whichever is worse for the claim. An awaitable result, as of a coroutine function, is
            awaited in a separate event loop.
        candidates: K candidates, at least two.
        examples: N examples.
        selector: Name of a best-mean selector of Winnow or of a plug-in; see `selector_names`.
        delta: Accepted error probability, at most 0.5; None to spend a `budget` instead.
        epsilon: Margin of the claim, at least 0: another candidate's mean may be higher by at most this much.
            "auto" is the resolution of a benchmark with N examples, like `stopping.epsilon: auto` in a
            campaign's file.
        budget: Maximum number of scores; None allows all pairs.
        batch_size: Number of scores per round; after each round the selector chooses the next pairs.
        top_m: Number of best candidates to find, below K.
        baseline: Position of the candidate with which a gate compares the others.
        prefer: "cost" to choose the cheapest candidate within `epsilon` of the best.
        costs: With prefer="cost", the cost of each candidate, shape (K,).
        groups: Group number of each example, shape (N,), with 2 to 100 different numbers.
        group_weights: Weight of each group, in ascending order of the group numbers.
        seed: Seed of the choice of examples; the same seed and scores give the same answer. Use another seed
            after you change a candidate, a baseline, `top_m` or groups in response to an earlier result: on
            the same examples, the claim would not hold for the changed ones. With `storage`, Winnow itself
            draws new examples if the candidates or the function's source differ from those of the earlier
            campaign. It does not compare code that the function calls or reads.
        storage: URL of a results database, such as "sqlite:///winnow.db"; None stores nothing. Candidates and
            examples are identified by their text, which must be the same in every run, and the function by
            its source if Python can find it. After a change of any of these, use another name.
        name: Name of the campaign.
        max_workers: Number of scores computed at once, in separate threads. None is 1, in the calling thread,
            or 16 for a coroutine function. If it is above 1, a plain function must be thread-safe. If the
            process is killed, at most the scores of one round are lost.
        retries: Maximum number of further attempts after a call raises, after pauses of 0.5 s, 1 s, 2 s and
            so on, at most 30 s.
        on_error: "raise" stores the scores so far, then raises the last attempt's exception. "unscored"
            counts and stores the call as a missing score, and lists it in `Selection.failed`.
        progress: Whether to write a line to standard error after a round, at most one per second.
        params: Further parameters of the selector. For example, ties="resolve" continues until the ties for
            first place are resolved; by default, a run stops once no candidate can be better. With `storage`,
            these parameters are stored, and `history` is refused.

    Raises:
        SpecError: If the selector does not exist or does not accept these parameters, if there are too few
            candidates or examples, or if a campaign of this name began with a different definition.
        WinnowError: If a score is not a number in [0, 1].
        StorageError: If the database cannot be used, or another process runs the campaign.
    """
    candidates, examples = _in_order("candidates", candidates), _in_order("examples", examples)
    _require_seed(seed)
    if not callable(score):
        raise SpecError(f"score is {reprlib.repr(score)}; give a function of a candidate and an example")
    if len(candidates) < 2 or len(examples) == 0:
        raise SpecError(
            f"select needs two candidates and an example, got {len(candidates)} and {len(examples)}"
        )
    if "constraints" in params:
        raise SpecError("select has only scores, and constraints need other values; remove constraints")
    if not isinstance(selector, str):
        raise SpecError(f"selector is {selector!r}; give the name of one, such as 'champion'")
    if counted := sorted(params.keys() & {"n_arms", "n_examples"}):
        raise SpecError(f"select counts candidates and examples itself; remove {counted[0]}")
    if selector == PREFERS_COST and costs is not None and prefer != "cost":
        raise SpecError("costs needs prefer='cost'; add prefer='cost', or remove costs")
    if epsilon == AUTO:
        if why := why_a_number(SELECTED, selector, prefer):
            raise SpecError(f"{why}; give a number, such as epsilon=0.02")
        epsilon = auto_epsilon(len(examples))
    named = {
        "epsilon": epsilon,
        "budget": budget,
        "batch_size": batch_size,
        "top_m": top_m,
        "baseline": baseline,
        "prefer": prefer,
        **_arrays({"costs": costs, "groups": groups, "group_weights": group_weights}),
    }
    given = {"delta": delta, **params, **{key: value for key, value in named.items() if value is not None}}
    if storage is None and selector in ENDS_WITH_TIES:  # the defaults of a stored campaign
        given = {"ties": "open", "excess": True, **given}
    try:
        if (objective := describe(selector).objective) != SELECTED:
            raise SpecError(f"selector {selector!r} answers {objective}; select needs one for {SELECTED}")
        chooser = campaign_selector(selector, n_arms=len(candidates), n_examples=len(examples), **given)
    except AlgorithmError as error:
        raise SpecError(str(error)) from error
    if (numbers := given.get("groups")) is not None:
        require_several(len(np.unique(np.asarray(numbers))), "group")
    if storage is not None:
        require_url(storage)
    else:
        refuse_confidence(given["delta"], "delta")
    lines = ProgressLines(candidates, len(examples)) if progress else None
    with ScoreCalls(
        score, candidates, examples, max_workers=max_workers, retries=retries, on_error=on_error
    ) as calls:
        if storage is None:
            outcome = _run(chooser, calls, len(candidates), len(examples), seed, lines)
        else:
            from winnow.flows.api.stored_selection import stored_selection

            stored = stored_selection(
                calls,
                candidates,
                examples,
                function=score,
                storage=storage,
                spec={"name": name, "seed": int(seed), "selector": selector},
                params=given,
                progress=lines,
            )
            outcome = Outcome(*stored)
    return _selection(outcome, candidates, given, calls.failed)


class Outcome(NamedTuple):
    """The outcome of a selection, indexed by arm."""

    arms: Sequence[int]
    """Position of each arm in the caller's candidates, shape (K,)."""
    scores: FloatArray
    """Scores, shape (K, N); NaN for a pair without a score."""
    comparisons: int
    decision: Decision
    results: "Campaign | None" = None
    names: Sequence[str] = ()


def _selection(
    outcome: Outcome,
    given: Sequence[Candidate],
    params: Mapping[str, object],
    failed: Sequence[FailedCall[Candidate, Any]],
) -> Selection[Candidate]:
    candidates, decision = tuple(given[arm] for arm in outcome.arms), outcome.decision
    known = np.nan_to_num(decision.estimates, nan=-np.inf)
    by_estimate = sorted(range(len(candidates)), key=lambda arm: (arm != decision.best, -known[arm]))
    top = tuple(candidates[arm] for arm in by_estimate if decision.status[arm] == "top")
    tied = tuple(each for each, status in zip(candidates, decision.status, strict=True) if status == "tied")
    chosen = (each for each, status in zip(candidates, decision.status, strict=True) if status == "chosen")
    epsilon = params.get("epsilon", 0.0)
    is_gate = "baseline" in decision.status
    return Selection(
        best=None if decision.best is None or is_gate else candidates[decision.best],
        chosen=next(chosen, None),
        top=top,
        tied=tied,
        claim=decision.claim if is_gate else _claim(decision),
        epsilon=float(epsilon) if isinstance(epsilon, (int, float, np.number)) else 0.0,
        decision=decision,
        candidates=candidates,
        scores=outcome.scores,
        comparisons=outcome.comparisons,
        results=outcome.results,
        names=tuple(outcome.names),
        failed=tuple(failed),
    )


def _claim(decision: Decision) -> Claim:
    """The decision's claim; weakened to a heuristic if all other candidates were dropped."""
    n_left = sum(status != "dropped" for status in decision.status)
    return (
        HEURISTIC if n_left == 1 < len(decision.status) and decision.claim.kind != "none" else decision.claim
    )


def _run(
    chooser: Selector,
    calls: ScoreCalls[Any, Any],
    n_candidates: int,
    n_examples: int,
    seed: int,
    progress: ProgressLines | None,
) -> Outcome:
    """Score the pairs that a selector proposes, round by round, until it proposes no pair."""
    scores = np.full((n_candidates, n_examples), np.nan)
    comparisons = round_ = 0
    ask, tell = on_one_thread(chooser.ask), on_one_thread(chooser.tell)
    while len(batch := ask(round_rng(seed, round_))) > 0:
        pairs = list(zip(batch.arms.tolist(), batch.examples.tolist(), strict=True))
        calls.begin(pairs)
        for pair in pairs:
            scores[pair] = calls(*pair)
        tell(batch, scores[batch.arms, batch.examples])
        comparisons += len(batch)
        round_ += 1
        if progress is not None:
            progress.show(round_, comparisons, chooser.decision())
    return Outcome(range(n_candidates), scores, comparisons, chooser.decision())


def _in_order(name: str, given: Sequence[Item]) -> tuple[Item, ...]:
    """Copy a collection to a tuple, so that items are found by position.

    Raises:
        SpecError: If items have no position: for generators, sets, mappings, arrays without a dimension, and
            tables, which iterate over their columns.
    """
    is_table = hasattr(given, "columns")
    if (
        isinstance(given, Mapping)
        or is_table
        or getattr(given, "shape", None) == ()
        or not (hasattr(given, "__len__") and hasattr(given, "__getitem__"))
    ):
        how = "the rows as a list" if is_table else "a list or another sequence"
        raise SpecError(
            f"{name} is a {type(given).__name__}; give {how}, because entries are read by position"
        )
    return tuple(given)


def _arrays(params: Mapping[str, object]) -> dict[str, object]:
    """Convert parameters that are lists, columns of tables or arrays to arrays; leave out all others.

    Raises:
        SpecError: If a value is not a list of numbers.
    """
    found: dict[str, object] = {}
    for name, what in OF_EACH.items():
        if not hasattr(value := params.get(name), "__len__"):
            continue
        array = None
        with suppress(ValueError):  # raised for nested lists of different lengths
            array = np.asarray(value)
        if array is None or array.dtype.kind not in "biuf":
            raise SpecError(
                f"{name} is {reprlib.repr(value)}; give a list of numbers, one per {what}, in order"
            )
        found[name] = array
    return found


def _require_seed(seed: object) -> None:
    """Refuse a seed that is not a whole number of at least 0."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise SpecError(f"seed is {seed!r}; give a whole number of at least 0")
