"""Find the best of many candidates with any Python function as scorer, optionally with a database."""

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
"""Possible statuses of a candidate that is compared with a baseline."""

OF_EACH = {"costs": "candidate", "groups": "example", "group_weights": "group"}
"""Parameters with one number for each candidate, example or group."""

Candidate = TypeVar("Candidate")
Example = TypeVar("Example")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Selection(Generic[Candidate]):
    """The result of a selection: the best candidate, and the claim about it."""

    best: Candidate | None
    """The candidate named by the selector, which is the current leader if nothing is claimed (`claim.kind` is
    "none"); None if no score is known, and for a gate, which has no best one. With `top_m` the claim is not
    stronger for it than for the others of `top` and `tied`."""
    chosen: Candidate | None
    """With `prefer="cost"`, the cheapest candidate shown to be within `epsilon` of `best`; None if that
    candidate is `best` itself."""
    top: tuple[Candidate, ...]
    """With `top_m`, those shown to be among the m best and not tied for the last place, best first."""
    tied: tuple[Candidate, ...]
    """Candidates tied for first place, or for the last places of the m best."""
    claim: Claim
    """The claim: what is proven, its error probability, and its assumptions. It is about `best`;
    with `top_m`, it is that `top` and `tied` are the best ones, in any order; with a selector that compares
    with a baseline, it is about `decision.status`. Nothing is claimed about candidates with the status
    "dropped", and nothing certain about a single remaining one."""
    epsilon: float
    """The margin of the claim: another candidate's mean may be higher by that much."""
    decision: Decision
    """The selector's full decision, by position of the candidates. While nothing is claimed about the best,
    its `excess` bounds from above how much better another candidate can be than one of them."""
    candidates: tuple[Candidate, ...]
    scores: FloatArray
    """Shape (K, N), every requested score; NaN elsewhere, and for missing scores."""
    comparisons: int
    """The number of requested scores; with a database, including those of earlier calls."""
    results: "Campaign | None" = None
    """With a database, the same as `winnow.open(storage)[name]`: the answer in words, frames, the report."""
    names: tuple[str, ...] = ()
    """With a database, the stored names of `candidates`, in order: letters, digits, `.`, `_` and `-`, with a
    suffix where names would be equal. Empty without a database."""
    failed: tuple[FailedCall[Candidate, Any], ...] = ()
    """With on_error="unscored", the calls of this process that raised, which count as no score."""

    def __repr__(self) -> str:
        left_out = self._named("dropped")
        dropped = f", dropped {reprlib.repr(left_out)}" if left_out else ""
        error = "" if self.claim.delta is None else f" (wrong with probability at most {self.claim.delta:g})"
        asked = f"{self.comparisons} of {self.scores.size} scores"
        asked += f", {len(self.failed)} failed" if self.failed else ""
        within = f" to within {self.epsilon:g}" if self.epsilon and self.claim.kind != "none" else ""
        return f"<Selection: {self._found()}{dropped}, claim {self.claim.kind}{within}{error}, {asked}>"

    def _found(self) -> str:
        """The candidates of the claim, and those still open, in words."""
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
        """The requested share of all candidates x examples."""
        return self.comparisons / self.scores.size

    def leaderboard(self) -> "pd.DataFrame":
        """One row per candidate, the best estimate first; see `Decision` for the columns."""
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

    With `storage`, the scores are stored as a campaign, which the command line shows like any other. The same
    call continues it after an interruption or a crash, and computes no stored score again; for a campaign
    that has ended, it only returns the result.

    Args:
        score: Function of a candidate and an example, called once per pair unless it raises. Returns a number
            in [0, 1] (up to a rounding error of 1e-9), or None for a missing score, which counts as 0 or 1,
            whichever is worse for the claim. An awaitable result, as of a
            coroutine function, is awaited in a separate event loop.
        candidates: K candidates, at least two.
        examples: N examples.
        selector: A best-mean selector, of Winnow or of a plug-in; see `selector_names`.
        delta: The accepted error probability, at most 0.5; None to spend a `budget`.
        epsilon: The margin of the claim, at least 0: another candidate's mean may be higher by that much.
            "auto" is the resolution of a benchmark with N examples, as `stopping.epsilon: auto` of a
            campaign's file.
        budget: Maximum number of scores; None for all pairs.
        batch_size: Number of scores per round; after each round the selector chooses the next pairs.
        top_m: Number of best candidates to find, below K.
        baseline: Position of the candidate with which a gate compares the others.
        prefer: "cost" to choose the cheapest candidate within `epsilon` of the best.
        costs: With prefer="cost", the cost of each candidate, shape (K,).
        groups: Group number of each example, shape (N,), with 2 to 100 different numbers.
        group_weights: Weight of each group, in the order of the numbers.
        seed: Seed of the choice of examples; the same seed and scores give the same answer. Use another seed
            after changing a candidate, a baseline, `top_m` or groups in response to an earlier result: on the
            same examples, the claim would not hold for them. With `storage`, Winnow itself draws new examples
            if the candidates or the function's source differ; code that the function calls or reads is not
            compared.
        storage: URL of a results database, such as "sqlite:///winnow.db"; None stores nothing. Candidates and
            examples are identified by their text, which must be the same in every run, and the function by
            its source, as far as Python provides it. After a change of any of these, use another name.
        name: Name of the campaign.
        max_workers: Number of scores computed at once, in separate threads. None is 1, in the calling thread,
            or 16 for a coroutine function. With several, the function must be thread-safe. A killed process
            loses the scores of at most one round.
        retries: Number of repetitions of a call that raises, after 0.5 s, 1 s, 2 s and so on, at most 30 s.
        on_error: "raise" raises the last attempt's exception after storing the known scores; "unscored"
            counts it as a missing score, stored like None, and lists it in `Selection.failed`.
        progress: Whether to write a line to standard error after a round, at most one per second.
        params: Further parameters of the selector, such as ties="resolve", which continues until the ties for
            first place are known; by default a run stops once no candidate can be better. With `storage`, all
            of them are stored; `history` is then refused.

    Raises:
        SpecError: If the selector does not exist, or does not accept these parameters, if candidates or
            examples are too few, or a campaign of this name began with a different definition.
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
        raise SpecError("select receives only scores, and constraints need other values; remove them")
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
    if storage is None and selector in ENDS_WITH_TIES:  # as a campaign has it that is stored
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
            played = _played(chooser, calls, len(candidates), len(examples), seed, lines)
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
            played = Played(*stored)
    return _selection(played, candidates, given, calls.failed)


class Played(NamedTuple):
    """The outcome of a selection, by the selector's positions."""

    arms: Sequence[int]
    """The position of each arm among the given candidates, shape (K,)."""
    scores: FloatArray
    """Shape (K, N); NaN for a pair without a score."""
    comparisons: int
    decision: Decision
    results: "Campaign | None" = None
    names: Sequence[str] = ()


def _selection(
    played: Played,
    given: Sequence[Candidate],
    params: Mapping[str, object],
    failed: Sequence[FailedCall[Candidate, Any]],
) -> Selection[Candidate]:
    candidates, decision = tuple(given[arm] for arm in played.arms), played.decision
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
        scores=played.scores,
        comparisons=played.comparisons,
        results=played.results,
        names=tuple(played.names),
        failed=tuple(failed),
    )


def _claim(decision: Decision) -> Claim:
    """The claim about the best candidate: nothing certain if all others were dropped."""
    n_left = sum(status != "dropped" for status in decision.status)
    return (
        HEURISTIC if n_left == 1 < len(decision.status) and decision.claim.kind != "none" else decision.claim
    )


def _played(
    chooser: Selector,
    calls: ScoreCalls[Any, Any],
    n_candidates: int,
    n_examples: int,
    seed: int,
    progress: ProgressLines | None,
) -> Played:
    """Score the pairs proposed by a selector until it proposes none."""
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
    return Played(range(n_candidates), scores, comparisons, chooser.decision())


def _in_order(name: str, given: Sequence[Item]) -> tuple[Item, ...]:
    """The given items by position, independent of their own index and of later changes to the original.

    Refuses collections without a first and second item: generators, sets, mappings (keys are not positions),
    arrays without a dimension, and tables, which iterate over columns.
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
            f"{name} is a {type(given).__name__}; give {how}, because entries are read by position, "
            "in any order"
        )
    return tuple(given)


def _arrays(params: Mapping[str, object]) -> dict[str, object]:
    """The parameters that selectors take as arrays; lists and table columns are accepted, too."""
    found: dict[str, object] = {}
    for name, what in OF_EACH.items():
        if not hasattr(value := params.get(name), "__len__"):
            continue
        array = None
        with suppress(ValueError):  # of lists of several lengths
            array = np.asarray(value)
        if array is None or array.dtype.kind not in "biuf":
            raise SpecError(
                f"{name} is {reprlib.repr(value)}; give a list of numbers, one for each {what} in their order"
            )
        found[name] = array
    return found


def _require_seed(seed: object) -> None:
    """Refuse a seed that is not a whole number of at least 0."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise SpecError(f"seed is {seed!r}; give a whole number of at least 0")
