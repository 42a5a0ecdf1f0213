"""`winnow.plan`: forecast a campaign before anything is spent."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real

from winnow.flows.api.call_checks import require_count
from winnow.flows.api.run import GivenSpec, file_of
from winnow.flows.run.trust_prompt import Trust, approving
from winnow.flows.simulate.plan_lines import ceiling_lines, plan_lines
from winnow.storage.json_types import JsonObject
from winnow.tasks.campaign.earlier_scores import load_score_table
from winnow.tasks.data.score_tables import CAMPAIGN
from winnow.tasks.errors import SpecError
from winnow.tasks.objectives.best_mean.objective import BestMean
from winnow.tasks.setup.load import check_spec_file, with_stored_labels
from winnow.tasks.simulation.forecast.ceiling import Ceiling, plan_ceiling
from winnow.tasks.simulation.forecast.plan import Plan, plan_campaign
from winnow.tasks.simulation.forecast.requests import DEFAULT, read_assumption
from winnow.tasks.simulation.simulate import apart_from_the_program


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CampaignPlan(Plan):
    """The forecast of a campaign; its `str` is the output of `winnow plan`."""

    def __repr__(self) -> str:
        return "\n".join(plan_lines(self))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CampaignCeiling(Ceiling):
    """Upper bound on the cost of a campaign whose end cannot be predicted; `str` as for `CampaignPlan`."""

    def __repr__(self) -> str:
        return "\n".join(ceiling_lines(self))


def plan(
    spec: GivenSpec,
    *,
    assume: str | Mapping[str, float] | None = None,
    table: str | None = None,
    like: str | None = None,
    rate: float | None = None,
    seeds: int = 20,
    workers: int | None = None,
    storage: str | None = None,
    trust: bool = False,
) -> CampaignPlan | CampaignCeiling:
    """Forecast a campaign: requests, tokens, price, hours, and the difference in mean that it can detect.

    No request is sent. The campaign's selector runs on assumed scores, or on those of a table or an earlier
    campaign. The forecast is only as good as these scores.

    Args:
        spec: See `winnow.run`.
        assume: Means of scores that are 0 or 1, as {"best": 0.8, "worst": 0.4} or "best=0.8,rest=0.7". A key
            "alike" in [0, 1) is how much candidates fail on the same examples. None assumes best=0.8 and
            worst=0.4.
        table: A table of scores to use instead, in a format of `winnow.simulate`.
        like: Name of a stored campaign whose scores are used instead.
        rate: Requests per second; None uses the rate measured on stored outputs of the same models.
        seeds: Number of simulated runs; also for each difference that is tried.
        workers: Number of processes; None starts one per core.
        storage: URL of the results database; None uses the spec's.
        trust: See `winnow.run`.

    Returns:
        A `CampaignPlan`. For other objectives than best-mean, for a gate, and with constraints, a
        `CampaignCeiling`: the cost of the whole budget.

    Raises:
        SpecError: If the spec or an argument is invalid.
    """
    if sum(given is not None for given in (assume, table, like)) > 1:
        raise SpecError("assume, table and like exclude each other; give one")
    require_count("seeds", seeds, at_least=1)
    if workers is not None:
        require_count("workers", workers, at_least=1)
    if rate is not None and not (isinstance(rate, Real) and 0.0 < rate < float("inf")):
        shown = f"{rate:g}" if isinstance(rate, Real) else repr(rate)
        raise SpecError(f"rate {shown}: give a number of requests per second above 0")
    source = table if like is None else f"{CAMPAIGN}{like}"
    assumption = read_assumption(_in_words(assume) or DEFAULT)
    approve = approving(Trust(everything=True)) if trust else None
    checked = check_spec_file(file_of(spec, storage), approve)
    if not isinstance(checked, BestMean) or checked.baseline is not None or checked.constraints:
        if assume is not None or source is not None:
            raise SpecError(
                "assume, table and like apply to campaigns that look for the best mean; without them, "
                "plan prints an upper bound for this campaign"
            )
        most = plan_ceiling(with_stored_labels(checked, is_allowed=trust), rate=rate)
        return CampaignCeiling(**_values(most))
    assumed = assumption if source is None else load_score_table(source, checked.spec.storage)
    with apart_from_the_program():
        found = plan_campaign(checked, assumed, seeds=seeds, workers=workers, rate=rate)
    return CampaignPlan(**_values(found))


def _in_words(assume: str | Mapping[str, float] | None) -> str | None:
    if isinstance(assume, Mapping):
        return ",".join(f"{key}={value}" for key, value in assume.items())
    if assume is not None and not isinstance(assume, str):
        raise SpecError(f"assume is {assume!r}; give means, such as {{'best': 0.8, 'worst': 0.4}}")
    return assume


def _values(found: Plan | Ceiling) -> JsonObject:
    return {each.name: getattr(found, each.name) for each in fields(found)}
