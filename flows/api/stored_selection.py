"""Run `winnow.select` with a database: as a campaign that is stored, resumed and shown like others."""

import ast
import hashlib
import inspect
import re
import reprlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from types import FunctionType
from typing import Any, cast

import numpy as np

from winnow.algorithms.decision import Decision
from winnow.algorithms.state.arrays import FloatArray
from winnow.flows.api.progress_lines import ProgressLines
from winnow.flows.api.results import Campaign
from winnow.flows.api.score_calls import ScoreCalls
from winnow.storage.admin.schema import ensure_schema
from winnow.storage.engine.database import Database, open_database
from winnow.storage.json_types import JsonObject
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import rounds as round_records
from winnow.storage.records.record_types import CampaignRecord, RoundRecord
from winnow.storage.text import storable
from winnow.tasks.campaign.look import Look
from winnow.tasks.campaign.planned_outputs import GenerationBatch
from winnow.tasks.campaign.replay import restored
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.campaign.reuse import reusable_texts
from winnow.tasks.campaign.session import CampaignSession, running
from winnow.tasks.data.datasets import Dataset, Selection, dataset_of
from winnow.tasks.engines.external.scoring_function import PROMPT, Scoring, scoring_by
from winnow.tasks.engines.known_providers import FUNCTION
from winnow.tasks.errors import SpecError
from winnow.tasks.objectives.best_mean.traits import NAME as SELECTED
from winnow.tasks.objectives.round_functions import generate_round
from winnow.tasks.objectives.runner import JudgedRound, P, Runner, T
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.rounds.generate import have_outputs, plan_generations
from winnow.tasks.setup.check import check_campaign
from winnow.tasks.setup.definition_changes import Change, IdentityChanged
from winnow.tasks.setup.open_campaign import open_campaign, reopen_campaign
from winnow.tasks.setup.yaml_file import SpecFile, parse_spec
from winnow.tasks.spec.selector_traits import GATE, refuse_confidence

IN_PROGRAM = Path("select")
"""Stands for the campaign's file in messages."""

HISTORY = "history"
"""Selector parameter that a campaign reads from a table; it cannot be passed as a value."""
GROUPS, WEIGHTS, COSTS = "groups", "group_weights", "costs"
"""Array parameters that a campaign's file has as mappings from names of groups or candidates."""
BY = "group"
"""Field of an example with the name of its group."""

STOPPING = ("delta", "epsilon", "ties")
KEYS = {"batch_size": "batch_size", "max_unscored": "fail_on_error"}
"""Selector parameters that are top-level keys of a campaign's file, with these keys."""

CALLS_AT_ONCE = 16
"""Number of scores stored in one transaction.

With sequential calls, a killed process loses at most the last 16 scores; with parallel calls, at most the
scores of one round."""

BATCH_SIZE = 32
"""Default number of scores per round, as in selectors; a smaller budget lowers it."""

MOST_SHOWN = 10_000
"""Maximum stored characters of a candidate or an example; a longer text is cut and ends in a digest."""

ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+>")
"""The memory address in an object's default text, which differs between runs."""
QUOTED = re.compile(r"'(?:\\.|[^'\\])*'" + r'|"(?:\\.|[^"\\])*"')
"""A quoted string inside an object's text; it is the same in every run."""

LONGEST = 40
"""Maximum characters of a candidate's name without its digest."""
LONGEST_ID = 100
"""Maximum characters of an example's text that is used as its id."""

FIELDS = {"id": "id", "input": "input"}
"""Field roles of the dataset made from the examples."""


def stored_selection(
    calls: ScoreCalls[Any, Any],
    candidates: Sequence[object],
    examples: Sequence[object],
    *,
    function: Callable[..., object],
    storage: str,
    spec: Mapping[str, object],
    params: Mapping[str, object],
    progress: ProgressLines | None = None,
) -> tuple[list[int], FloatArray, int, Decision, Campaign, list[str]]:
    """Run or continue a campaign whose scores a function computes.

    Args:
        calls: Returns the score of a candidate and an example, by position; NaN for a missing score.
        candidates: K candidates.
        examples: N examples.
        function: The scoring function, identified by its source.
        storage: URL of the results database.
        spec: The campaign's keys name, seed and selector.
        params: Parameters of the selector; see `winnow.select`.
        progress: Writes a line after a round; None writes nothing.

    Returns:
        The fields of `winnow.flows.api.select.Outcome`.

    Raises:
        SpecError: If the arguments define no valid campaign, or a campaign of this name began with another
            definition.
        StorageError: If the database cannot be used, or another process runs the campaign.
    """
    for what, given in (("candidates", candidates), ("examples", examples)):
        _require_stable_texts(what, given)
        _require_distinct_texts(what, given)
    names, groups = _names(candidates), _group_names(params)
    values = {**spec, "storage": storage, **_values(names, candidates, function, len(examples), params)}
    if groups:
        values["groups"] = {"by": BY, **_weighted(params, sorted(set(groups)))}
    default = {"baseline": 0} if spec["selector"] == GATE else {}  # a campaign's file must name a baseline
    values["selector"] = {"name": spec["selector"], "params": _own_params({**default, **params}, names)}
    scoring = Scoring(score=calls, is_made=calls.is_made, arms={each: arm for arm, each in enumerate(names)})
    with scoring_by(scoring), closing(open_database(storage)) as database:
        ensure_schema(database)
        with database.reading() as session:
            begun = campaign_records.find_campaign(session, str(spec["name"]))
        if begun is None:
            refuse_confidence(params["delta"], "delta")
        values.setdefault("batch_size", _batch_size(begun, values["stopping"]["budget"]))
        try:
            checked = check_campaign(parse_spec(SpecFile(IN_PROGRAM, values)), _dataset(examples, groups))
            record = open_campaign(database, checked)
        except IdentityChanged as error:
            remedy = "undo the change, or give the campaign another name"
            raise IdentityChanged(error.what, remedy, _in_call_terms(error.found)) from None
        record, checked = reopen_campaign(database, record.name, database.url)
        decision = _final_decision(database, record, checked)
        if decision is None:
            with running(database, record, checked) as campaign:
                decision = _run(campaign, scoring, calls, progress)
        with database.reading() as session:
            scores, comparisons = _scores(Look(session, record), len(names), len(examples))
        arms = [scoring.arms[each.name] for each in checked.candidates]
    names_by_arm = [names[arm] for arm in arms]
    return arms, scores, comparisons, decision, Campaign(storage, record.name), names_by_arm


def _in_call_terms(found: Sequence[Change]) -> list[Change]:
    """Reword changes of the stored definition: models are candidates, a revision is the function."""
    lines: dict[str, str] = {}
    for each in found:
        line = re.sub(r"^models(\[[^\]]*\])?(\.model\b)?(?=\W)", r"candidates\1", each.line)
        is_function = re.fullmatch(r"models\[.*\]\.revision", each.key)
        lines.setdefault("the function's text changed" if is_function else line, each.key)
    return [Change(key, line) for line, key in lines.items()]


def _batch_size(begun: CampaignRecord | None, budget: object) -> int:
    """The stored campaign's batch size; for a new campaign the default, or the budget if that is smaller."""
    if begun is not None:
        return int(begun.spec["batch_size"])
    return min(BATCH_SIZE, budget) if isinstance(budget, int) and budget > 0 else BATCH_SIZE


def _final_decision(database: Database, record: CampaignRecord, checked: ResolvedCampaign) -> Decision | None:
    """The decision of a campaign that needs no further round; None if it continues.

    The decision is computed without the lease, because another process may hold it.
    """
    with database.reading() as session:
        if not campaign_status(Look(session, record)).is_settled:
            return None
        selector, _, _ = restored(session, record, checked.prepared(database))
    return selector.decision()


def _run(
    campaign: CampaignSession, scoring: Scoring, calls: ScoreCalls[Any, Any], progress: ProgressLines | None
) -> Decision:
    """Run rounds until the campaign is decided, its budget is spent, or no pair is left.

    An error of the function is raised after the earlier scores are stored.
    """

    def unless_raised(step: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        scoring.pass_on()
        if step is generate_round and calls.are_parallel:
            _, round_ = args
            assert isinstance(round_, RoundRecord), "a round is generated"
            return cast(T, _generate_in_parallel(campaign, scoring, calls, round_))
        return step(*args, **kwargs)

    observers = () if progress is None else (_ProgressObserver(progress),)
    with Runner(campaign, *observers) as runner:
        runner.run(unless_raised)
    return campaign.selector.decision()


def _generate_in_parallel(
    campaign: CampaignSession, scoring: Scoring, calls: ScoreCalls[Any, Any], round_: RoundRecord
) -> GenerationBatch:
    """Submit the calls for all missing scores of a round, then do what `generate_round` does."""
    wanted = plan_generations(campaign, round_)
    with campaign.database.reading() as session:
        planned, stored = reusable_texts(session, campaign, round_, wanted)
    pairs = zip(planned, round_.examples, strict=True)
    calls.begin((scoring.arms[each.model.name], example) for each, example in pairs if each.key not in stored)
    return have_outputs(campaign, round_, wanted)


class _ProgressObserver:
    """Observer of a `Runner` that reports each recorded round to a `ProgressLines`."""

    wants_to_stop = False

    def __init__(self, progress: ProgressLines) -> None:
        self._progress = progress

    def round_judged(self, campaign: CampaignSession, judged: JudgedRound) -> Collection[int]:
        """Exclude no candidate."""
        return ()

    def round_done(self, campaign: CampaignSession, round_: RoundRecord, decision: Decision) -> None:
        """Report a recorded round."""
        self._progress.show(round_.number + 1, campaign.allowance.answered, decision)


def _scores(look: Look, n_candidates: int, n_examples: int) -> tuple[FloatArray, int]:
    """The stored scores, shape (K, N) with NaN if missing, and the number of requested scores."""
    scores, comparisons = np.full((n_candidates, n_examples), np.nan), 0
    for observed in round_records.told_rounds(look.session, look.record.id):
        for arm, example, score in zip(observed.arms, observed.examples, observed.outcomes, strict=True):
            scores[arm, example] = np.nan if score is None else score
        comparisons += len(observed.arms)
    return scores, comparisons


def _values(
    names: Sequence[str],
    candidates: Sequence[object],
    function: Callable[..., object],
    n_examples: int,
    params: Mapping[str, object],
) -> JsonObject:
    """The keys of an equivalent campaign's file, without the selector."""
    source, given = _source(function), {key: _plain(value) for key, value in params.items()}
    stopping = {key: given[key] for key in STOPPING if key in given}
    return {
        "objective": SELECTED,
        "models": [
            {"name": each, "provider": FUNCTION, "model": _text(candidate), "revision": source}
            for each, candidate in zip(names, candidates, strict=True)
        ],
        "prompts": [{"name": "score", "template": PROMPT}],
        "dataset": {"path": "examples", "fields": FIELDS},
        "judge": {"type": "score"},
        "stopping": {**stopping, "budget": _budget(given, grid=len(names) * n_examples)},
        **{key: given[name] for name, key in KEYS.items() if name in given},
        "streaming": False,
        "reuse": "campaign",
        "execution": {"max_loaded": len(names), "group_size": CALLS_AT_ONCE},
    }


def _budget(given: Mapping[str, object], grid: int) -> object:
    """The given budget; without one, all pairs, or one round if that is more (a campaign's minimum)."""
    budget, batch_size = given.get("budget"), given.get("batch_size")
    if budget is not None:
        return budget
    return max(grid, batch_size) if isinstance(batch_size, int) else grid


def _own_params(params: Mapping[str, object], names: Sequence[str]) -> JsonObject:
    """The selector's own parameters as a campaign's file has them.

    Raises:
        SpecError: If `history` is among the parameters, because it cannot be stored.
    """
    if params.get(HISTORY) is not None:
        raise SpecError(f"{HISTORY} cannot be stored; remove it, or remove storage")
    others = (*STOPPING, *KEYS, "budget", GROUPS, WEIGHTS)
    own = {key: _plain(value) for key, value in params.items() if key not in others}
    if (costs := own.get(COSTS)) is not None:
        own[COSTS] = dict(zip(names, np.asarray(costs, dtype=np.float64).tolist(), strict=True))
    baseline = own.get("baseline")
    if isinstance(baseline, int) and 0 <= baseline < len(names):
        own["baseline"] = names[baseline]
    return own


def _group_names(params: Mapping[str, object]) -> list[str]:
    """Group number of each example as text, padded so that texts sort like numbers; empty without groups."""
    if (given := params.get(GROUPS)) is None:
        return []
    numbers = [str(number) for number in np.asarray(given).tolist()]
    width = max(map(len, numbers))
    return [number.zfill(width) for number in numbers]


def _weighted(params: Mapping[str, object], names: Sequence[str]) -> JsonObject:
    """How group means are combined, as keys of a campaign's file."""
    if (weights := params.get(WEIGHTS)) is None:
        return {"objective": "worst"}
    shares = np.asarray(weights, dtype=np.float64).tolist()
    return {"objective": "mean", "weights": dict(zip(names, shares, strict=True))}


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _names(candidates: Sequence[object]) -> list[str]:
    """A unique name per candidate, made of its text, and of a digest if that is empty or not unique.

    Names do not depend on the number of candidates, so they stay the same if candidates are appended.
    """
    names: dict[str, None] = {}
    for number, text in enumerate(map(_text, candidates)):
        plain = re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-._")[:LONGEST].rstrip("-._")
        digest = hashlib.sha256(text.encode()).hexdigest()[:6]
        name = plain or f"candidate-{digest}"
        if name in names:
            name = f"{name}-{digest}"
        while name in names:
            name = f"{name}-{number}"
        names[name] = None
    return list(names)


def _dataset(examples: Sequence[object], groups: Sequence[str]) -> Dataset:
    texts = list(map(_text, examples))
    rows = (
        (
            f"examples[{at}]",
            {"id": each, "place": at, "input": text} | ({BY: groups[at]} if groups else {}),
        )
        for at, (each, text) in enumerate(zip(_ids(texts), texts, strict=True))
    )
    return dataset_of(rows, FIELDS, Selection(), name="examples", path="examples")


def _ids(texts: Sequence[str]) -> list[str]:
    """A unique id per example: its text if unique, short and printable, else a mark and its position.

    No example's text begins with the mark.
    """
    counts = Counter(texts)
    mark = "#"
    while any(text.startswith(mark) for text in counts):
        mark += "#"
    return [
        text if counts[text] == 1 and len(text) <= LONGEST_ID and text.isprintable() else f"{mark}{at}"
        for at, text in enumerate(texts)
    ]


def _text(given: object) -> str:
    """The text of an object as it can be stored; a long text is cut and ends in a digest."""
    text = storable(str(given) or repr(given))
    if len(text) <= MOST_SHOWN:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{text[:MOST_SHOWN]}... ({len(text):,} characters, SHA-256 {digest})"


def _require_stable_texts(what: str, given: Sequence[object]) -> None:
    """Refuse an object whose text has a memory address, because a later call could not identify it."""
    for number, each in enumerate(given):
        if not isinstance(each, str) and ADDRESS.search(QUOTED.sub("", text := _text(each))):
            raise SpecError(
                f"the text of {what}[{number}] is {reprlib.repr(text)}, which changes with every run; with "
                "storage, entries are identified by their text, so add a __repr__ with the content, or pass "
                "names and let the function look the objects up"
            )


def _require_distinct_texts(what: str, given: Sequence[object]) -> None:
    """Refuse two different objects with the same text, because the next call would confuse them."""
    positions: dict[str, int] = {}
    for number, each in enumerate(given):
        first = positions.setdefault(_text(each), number)
        if first != number and not _are_equal(given[first], each):
            text = reprlib.repr(_text(each))
            raise SpecError(
                f"{what}[{first}] and {what}[{number}] differ but have the same text {text}; with storage, "
                "entries are identified by their text, so give different texts"
            )


def _are_equal(one: object, other: object) -> bool:
    """Whether two objects certainly are equal; False if `==` raises or does not return True (arrays)."""
    with suppress(Exception):
        return one is other or (type(one) is type(other) and (one == other) is True)
    return False


def _source(function: Callable[..., object]) -> str | None:
    """A digest of a function's source code; None if the source cannot be found."""
    with suppress(OSError, TypeError):
        return hashlib.sha256(_own_text(function).encode()).hexdigest()[:16]
    return None


def _own_text(function: Callable[..., object]) -> str:
    """The source of a function; for a lambda only its expression, so that the code around it may change."""
    if inspect.isfunction(function) and function.__name__ == "<lambda>":
        with suppress(SyntaxError):  # a notebook cell may contain more than Python
            text = "".join(inspect.findsource(function)[0])
            node = _own_node(function, [e for e in ast.walk(ast.parse(text)) if isinstance(e, ast.Lambda)])
            if node is not None and (own := ast.get_source_segment(text, node)):
                return own
    return inspect.getsource(function)


def _own_node(function: FunctionType, lambdas: Sequence[ast.Lambda]) -> ast.Lambda | None:
    """The syntax node of a lambda function among those of its file; None if it is ambiguous."""
    on_line = [each for each in lambdas if each.lineno == function.__code__.co_firstlineno]
    if len(on_line) < 2:
        return next(iter(on_line), None)
    places = [((a, b), (c, d)) for a, c, b, d in function.__code__.co_positions() if None not in (a, b, c, d)]
    places = [(first, last) for first, last in places if first != last]  # the function's entry has no extent
    around = [
        each
        for each in on_line
        if places
        and all(
            (each.body.lineno, each.body.col_offset) <= first
            and last <= (each.body.end_lineno, each.body.end_col_offset)
            for first, last in places
        )
    ]
    return max(around, key=lambda each: each.col_offset, default=None)
