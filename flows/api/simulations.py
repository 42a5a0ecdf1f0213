"""`winnow.simulate`: compare selectors on a table of scores."""

import json
import reprlib
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from numbers import Integral, Real
from pathlib import Path

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.registry import SELECTORS
from winnow.algorithms.state.arrays import FloatArray
from winnow.flows.api.call_checks import require_count, require_text
from winnow.flows.simulate.budgets import default_budgets, read_budgets
from winnow.flows.simulate.report import FILLING, SimulationReport, Subject
from winnow.flows.simulate.tables import Given, make_environment
from winnow.storage.json_types import JsonObject
from winnow.storage.objectives import traits_of
from winnow.storage.plain_files import make_folder
from winnow.tasks.errors import SpecError
from winnow.tasks.simulation.environments import Environment
from winnow.tasks.simulation.results import Metric, claims_truly, measure_by, metric_for
from winnow.tasks.simulation.routes import RouteEnvironment, one_arm_oracle, picks_by
from winnow.tasks.simulation.simulate import (
    ComparedSelector,
    Run,
    apart_from_the_program,
    compared_selector,
    require_arms,
)
from winnow.tasks.simulation.simulate import simulate as runs_of
from winnow.tasks.spec.campaign import SelectorSpec
from winnow.tasks.spec.selector_traits import refuse_confidence
from winnow.tasks.spec.stored_spec import DEFAULT_STORAGE


def simulate(
    table: str,
    selectors: Sequence[str | SelectorSpec] | str,
    *,
    budgets: Sequence[float] | str | None = None,
    delta: float | None = None,
    seeds: int = 20,
    seed: int = 0,
    metric: Metric | None = None,
    gap: float = 0.001,
    level: float = 0.01,
    history: str | None = None,
    history_share: float | None = None,
    contexts: str | None = None,
    embed: str | None = None,
    types: str | None = None,
    workers: int | None = None,
    storage: str = DEFAULT_STORAGE,
    out: str | Path | None = None,
    progress: bool = False,
) -> SimulationReport:
    """Compare how soon selectors find the best candidate, on a table of scores or of preferences.

    A campaign that stopped before it scored all pairs gives only a biased trace, not an estimate. To get a
    full table, run `winnow run SPEC --exhaustive`.

    Args:
        table: FILE.npz[:KEY], FILE.csv, FILE.parquet or campaign:NAME. Rows are candidates; columns are
            examples, or for duels also candidates.
        selectors: Selectors to compare: names, names with parameters such as "ucb-e:a=0.5", or
            `winnow.Selector`s. The name of an objective stands for all of Winnow's selectors for it.
        budgets: Budgets to report: a float up to 1.0 is a share of all pairs, a whole number a count. None
            uses defaults that depend on the objective.
        delta: Error probability at which every selector may stop; None lets none stop early.
        seeds: Number of runs per selector.
        seed: The first seed.
        metric: The metric; None is accuracy, or outscore-the-best for routes.
        gap: For top1-eps: tolerance below the best mean.
        level: For top1-mcnemar: the significance level.
        history: A table with earlier scores on the same examples, used as history.
        history_share: Share of the candidates, drawn at random, that is used as history instead.
        contexts: For routes: a file with a vector for each example, or campaign:NAME.
        embed: For routes, if the table is a campaign: the template of the text to embed.
        types: For routes: a file with the type of each example, or a field of the examples.
        workers: Number of processes; None starts one per core.
        storage: URL of the results database with the campaigns.
        out: Folder for runs and figures; None writes nothing.
        progress: Whether to show a progress bar on standard error, if that is a terminal.

    Returns:
        The runs and their averages; the `str` is the output of `winnow simulate`.

    Raises:
        SpecError: If an argument is invalid.
        WinnowError: If a selector fails, or the folder cannot be written.
    """
    require_text("table", table, "FILE.npz, FILE.csv, FILE.parquet or campaign:NAME")
    require_count("seeds", seeds, at_least=1)
    require_count("seed", seed, at_least=0)
    if workers is not None:
        require_count("workers", workers, at_least=1)
    table = str(table)
    compared = _compared([selectors] if isinstance(selectors, str) else selectors, delta)
    simulated = traits_of(compared[0].objective).simulated
    if simulated is None:
        raise SpecError(
            f"--selector {compared[0].selector} is for certify campaigns, which cannot be simulated on a "
            "table of scores; compare selectors for best-mean or best-duel"
        )
    measured = metric_for(simulated, metric)
    given = Given(
        table=table,
        storage=storage,
        history=history,
        history_share=history_share,
        seed=seed,
        contexts=contexts,
        embed=embed,
        types=types,
    )
    environment, subject = make_environment(simulated, compared, given)
    require_arms(compared, len(subject.candidates))
    if subject.is_partial:
        _require_no_metric(metric, subject)
        measured = "coverage"
    looks = read_budgets(_in_words(budgets) or default_budgets(simulated, delta), subject)
    try:
        measure = measure_by(measured, environment, gap=gap, level=level)
    except InvalidParameter as error:
        raise SpecError(f"--{error.parameter}: {error}") from error
    folder = None if out is None else _make_folder(Path(out))
    picks = _picks_by(environment, looks[-1])
    right = _right_by(environment, compared, measured)
    all_seeds = range(seed, seed + seeds)
    runs = runs_of(environment, compared, budgets=looks, seeds=all_seeds, workers=workers)
    report = SimulationReport(
        subject=subject, metric=measured, budgets=looks, delta=delta, may_stop=_may_stop(compared)
    )
    shown = _with_progress(runs, seeds * len(compared)) if progress else runs
    with apart_from_the_program():
        for run in chain(shown, _oracles(environment, looks, all_seeds)):
            values = measure(run)
            report.add(run, values, picks(run), right(run, values))
    if folder is not None:
        report.write(folder)
    return report


def _require_no_metric(chosen: str | None, subject: Subject) -> None:
    """Refuse a metric on a partial table, because its values would be biased."""
    if chosen is not None:
        raise SpecError(
            f"--metric {chosen}: only {subject.facts['filled']:.0%} of the scores of {subject.source} "
            f"exist, and its selector chose which, so {chosen} would be biased; remove --metric, or {FILLING}"
        )


def _oracles(environment: Environment, budgets: Sequence[int], seeds: Sequence[int]) -> Iterator[Run]:
    """Yield a run of the one-arm oracle per seed, for routes; yield nothing for other tables."""
    if isinstance(environment, RouteEnvironment):
        yield from (one_arm_oracle(environment, budgets=budgets, seed=seed) for seed in seeds)


def _picks_by(environment: Environment, budget: int) -> Callable[[Run], FloatArray | None]:
    """A function from a run to its shares of prompts by type and arm; it returns None without types."""
    found = picks_by(environment, budget) if isinstance(environment, RouteEnvironment) else None
    return found or (lambda _: None)


def _right_by(
    environment: Environment, compared: Sequence[ComparedSelector], measured: Metric
) -> Callable[[Run, FloatArray], bool | None]:
    """A function that checks whether a stopped run was right: by its claim for accuracy, else by metric.

    The function returns None for a selector whose claim cannot be checked on this table.
    """
    claims = {each.label: claims_truly(each, environment) for each in compared}

    def right(run: Run, values: FloatArray) -> bool | None:
        claim = claims.get(run.label)
        if claim is None or measured == "accuracy":
            return None if claim is None else claim(run)
        return bool(values[-1] == 1.0)

    return right


def _may_stop(compared: Sequence[ComparedSelector]) -> set[str]:
    """Labels of selectors that have a `delta`; route selectors are left out because they never stop."""
    with_delta = (each for each in compared if each.params.get("delta") is not None)
    return {each.label for each in with_delta if not traits_of(each.objective).is_stream}


def _compared(selectors: Sequence[str | SelectorSpec], delta: float | None) -> list[ComparedSelector]:
    """The selectors with their parameters; an objective's name stands for all of Winnow's selectors for it.

    Only the names of objectives with scores are accepted, because some selectors for duels need features,
    which few tables have.
    """
    if not isinstance(selectors, list | tuple) or not all(
        isinstance(each, str | SelectorSpec) for each in selectors
    ):
        raise SpecError(f"selectors is {reprlib.repr(selectors)}; give a list of names or winnow.Selectors")
    refuse_confidence(delta, "--delta")
    common = {} if delta is None else {"delta": delta}
    groups = {each: SELECTORS[each] for each in SELECTORS if traits_of(each).scores_a_benchmark}
    named = [name for each in selectors for name in groups.get(_label(each), [each])]
    found = []
    for label, given in {_label(each): each for each in named}.items():
        name, params = _read(given)
        if clash := common.keys() & params.keys():
            raise SpecError(f"--selector {label}: {min(clash)} is set by --delta for all; remove one")
        refuse_confidence(params.get("delta"), f"--selector {label}")
        found.append(compared_selector(label, name, common | params))
    if not found:
        raise SpecError("--selector: name a selector to compare, such as champion")
    for other in found:
        if other.objective != found[0].objective:
            raise SpecError(
                f"selector {other.selector} is for {other.objective}, and {found[0].selector} is for "
                f"{found[0].objective}: compare selectors of one objective"
            )
    return found


def _label(given: str | SelectorSpec) -> str:
    """A selector's label in results: its name and parameters as on the command line."""
    if isinstance(given, str):
        return given
    params = ",".join(f"{key}={json.dumps(value, default=str)}" for key, value in given.params.items())
    return f"{given.name}:{params}" if params else given.name


def _read(given: str | SelectorSpec) -> tuple[str, JsonObject]:
    """The name and the parameters of a selector."""
    if not isinstance(given, str):
        return given.name, given.params
    name, _, settings = given.partition(":")
    return name, dict(_parameter(given, setting) for setting in settings.split(",") if setting)


def _parameter(selector: str, setting: str) -> tuple[str, object]:
    name, equals, text = setting.partition("=")
    if not equals or not name:
        raise SpecError(f"--selector {selector}: {setting!r} is not key=value; for example ucb-e:a=0.5")
    value = "null" if text.lower() == "none" else text
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, text


def _in_words(budgets: Sequence[float] | str | None) -> str | None:
    """Budgets in the form of the command line, such as "0.1,500"; None for None."""
    if budgets is None or isinstance(budgets, str):
        return budgets
    if not isinstance(budgets, Sequence) or not all(isinstance(each, Real) for each in budgets):
        raise SpecError(f"budgets is {reprlib.repr(budgets)}; give shares or counts, such as [0.1, 0.2]")
    return ",".join(str(int(each) if isinstance(each, Integral) else float(each)) for each in budgets)


def _make_folder(folder: Path) -> Path:
    try:
        make_folder(folder)
    except OSError as error:
        raise SpecError(f"--out {folder} cannot be created: {error.strerror}; name another folder") from error
    return folder


def _with_progress(runs: Iterator[Run], total: int) -> Iterator[Run]:
    """Yield the runs, with a progress bar on standard error if it is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("simulating"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        yield from progress.track(runs, total=total)
