"""Sections of campaigns' pages: those that several objectives share, and which sections a page has."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from winnow.flows.reports.html.figures.curve import allocation as allocation_figure
from winnow.flows.reports.html.figures.curve import curve as curve_figure
from winnow.flows.reports.html.figures.curve import excess as excess_figure
from winnow.flows.reports.html.figures.curve import leads, loads, seconds, tokens
from winnow.flows.reports.html.figures.estimates import intervals
from winnow.flows.reports.html.figures.labels import shortened
from winnow.flows.reports.html.model import Section, first_of
from winnow.flows.reports.html.sections import standard
from winnow.flows.reports.html.sections.samples import MOST_SAMPLES, sample_groups
from winnow.flows.reports.rows.text_table import decimals_of
from winnow.storage.json_types import Row
from winnow.storage.objectives import traits_of
from winnow.storage.queries import campaign_views
from winnow.storage.queries import samples as sample_views
from winnow.storage.queries.costs import cache_hit_rate
from winnow.storage.queries.curve_points import CurvePoints
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.campaigns import loads_by_model
from winnow.storage.records.record_types import THE_ANSWER, CampaignRecord
from winnow.tasks.answer.derive import standings_of
from winnow.tasks.answer.sentences.clauses import has_reached_level, out_since
from winnow.tasks.campaign.changed_models import server_changes
from winnow.tasks.campaign.look import Look
from winnow.tasks.data.tag_counts import TagCounts
from winnow.tasks.queries import breakdowns
from winnow.tasks.queries.views import ask
from winnow.tasks.spec.stored_spec import constraints_of
from winnow.tasks.text.phrases import amount, ends, span

Builder = Callable[[Look], Section | None]
"""A function that builds a section from a campaign; returns None if the section has no content yet."""

MOST_ROUNDS = 600
"""Maximum number of rounds on the curve; with more, a round would have less than two pixels."""
MOST_CHANGES = 100
"""Maximum number of additional points on the curve for changes of the leader."""
MOST_LEADS = 10
"""Maximum number of changes of the leader in the table below the curve."""

COUNTED = ("comparisons", "no_answer", "truncated")
"""Columns that the section on coverage sums over candidates."""


def estimates(
    title: str, axis: str, note: str = "Estimates after the last round, with intervals, best first."
) -> Builder:
    """Builder of the section "estimates": estimates with confidence intervals, best first."""

    def build(look: Look) -> Section | None:
        known = [row for row in ask(look, "leaderboard") if row["estimate"] is not None]
        if not known:
            return None
        rows, cut = first_of(known, look.record.name, "leaderboard")
        best = {row["candidate"] for row in known if row["best"]}
        return Section(
            name="estimates",
            title=title,
            note=note + cut,
            figure=intervals(rows, title=axis, marked=best, marked_as="leader"),
        )

    return build


def lead(axis: str) -> Builder:
    """Builder of the section "lead": the best candidate's lead over each other one, smallest first."""

    def build(look: Look) -> Section | None:
        return _lead(look, axis)

    return build


def _lead(look: Look, axis: str) -> Section | None:
    best = None if look.decision is None else look.decision.best
    standings = standings_of(look.names, look.decision, traits_of(look.record.objective))
    behind: list[Row] = [
        {
            "candidate": each.name,
            "lead": -each.difference.estimate,
            "lower": None if each.difference.upper is None else -each.difference.upper,
            "upper": None if each.difference.lower is None else -each.difference.lower,
        }
        for each in standings
        if each.difference is not None
        and each.difference.estimate is not None
        and each.difference.against == best
    ]
    if not behind:
        return None
    behind.sort(key=lambda row: row["lead"])
    rows, cut = first_of(behind, look.record.name, "leaderboard")
    open_ = {each.name for each in standings if each.status == "active" and each.out_in_round is None}
    diamond = " A diamond is a candidate that is not eliminated." if open_ else ""
    return Section(
        name="lead",
        title="Lead over each other candidate",
        note=f"The {axis} of {best} minus that of each other candidate, smallest lead first.{diamond} All "
        "intervals hold at once. The tests that eliminate candidates are more powerful: an eliminated "
        f"candidate can have an interval that reaches below 0.{cut}",
        figure=intervals(
            rows,
            title=f"lead of {shortened(best or '')}",
            value="lead",
            marked=open_,
            marked_as="still open",
            line=0.0,
            line_as="no lead",
        ),
    )


def eliminations(look: Look) -> Section | None:
    """The section "eliminations": when each candidate was eliminated, and the evidence against it."""
    found = campaign_views.eliminations(look.session, look.record.id)
    if not found:
        return None
    rows, cut = first_of(found, look.record.name, "eliminations")
    answer = [row for row in found if row["status"] in THE_ANSWER]
    kept = ""
    if any(has_reached_level(row) for row in answer):
        kept = (
            " Candidates that are part of the answer are not eliminated, whatever the evidence. It only "
            "shows that a candidate is not better than all others by more than epsilon; so is one within "
            "epsilon of the best."
        )
    elif any(row["status"] in ("tied", "chosen") for row in answer):
        kept = " Tied or chosen candidates are part of the answer, not eliminated."
    if any(row["status"] == "active" and row["out_at"] is not None for row in found):
        kept += (
            " A candidate that is eliminated only up to epsilon can still be the best by less than epsilon; "
            "it stays active until a best candidate is known."
        )
    missed = ", or if it cannot meet a constraint (infeasible)" if "constraints" in look.record.spec else ""
    levels = {row["level"] for row in found}
    (level,) = levels if len(levels) == 1 else (None,)
    return Section(
        name="eliminations",
        title="Eliminations",
        note="Evidence against each candidate, starting at 1. A candidate is eliminated when the evidence "
        f"reaches {'its level' if level is None else f'{level:g}'}, or when no remaining score could make it "
        f"the best{missed}.{kept}{cut}",
        table=[
            {
                "candidate": row["candidate"],
                "status": row["status"],
                "since": out_since(row),
                "evidence": row["wealth"],
                **({"level": row["level"]} if level is None else {}),
            }
            for row in rows
        ],
    )


def empty_curve_cache() -> CurvePoints:
    """An empty cache for the points of the section "curve"."""
    return CurvePoints(most=MOST_ROUNDS, changes=MOST_CHANGES)


@dataclass(frozen=True, slots=True)
class PageCache:
    """Cache of a page's data that grow with the campaign, so that a later call reads only new data."""

    points: CurvePoints = field(default_factory=empty_curve_cache)
    counts: TagCounts = field(default_factory=TagCounts)


def curve(axis: str, unit: str, points: CurvePoints) -> Builder:
    """Builder of the section "curve": the leader and its interval against the budget spent."""

    def build(look: Look) -> Section | None:
        rows = points.look(look.session, look.record.id)
        if not any(row["estimate"] is not None for row in rows):
            return None
        race = campaign_views.eliminations(look.session, look.record.id)
        out = " The dotted line is the number of candidates not yet eliminated." if race else ""
        return Section(
            name="curve",
            title="The answer over time",
            note="The leader after each round, and its interval. A dot marks a change of the leader; the "
            f"table lists the last {MOST_LEADS}. Early intervals may extend beyond the axis.{out}",
            figure=curve_figure(
                rows,
                title=f"{axis} of the leader",
                unit=f"{unit} so far",
                candidates=len(race),
                out_at=[row["out_at"] for row in race if row["out_at"] is not None],
            ),
            table=[
                {"leader": row["best"], f"from_{unit}": row["comparisons"], "estimate": row["estimate"]}
                for row in leads(rows)[-MOST_LEADS:]
            ],
        )

    return build


def excess(look: Look) -> Section | None:
    """The section "excess": how much better another candidate can be than the named one."""
    points = campaign_views.excesses(look.session, look.record.id)
    if not points or any(each.mixes for each in server_changes(look.session, look.record)):
        return None
    found = look.record.spec["selector"]["params"].get("top_m", 1)
    spent, most = points[-1]
    others = "No candidate" if found == 1 else f"At most {found - 1} candidates"
    return Section(
        name="excess",
        title="How much better another candidate can be",
        note=f"{others} can be better than the named one by more than this bound, "
        f"{ends(0.0, most)[1]} after {amount(spent)} comparisons; the details of the answer give its error "
        "probability. The line starts again when candidates are dropped or added.",
        figure=excess_figure(points, unit="comparisons so far"),
    )


def pareto(look: Look) -> Section | None:
    """The section "pareto": quality, cost and time of each candidate."""
    found = list(ask(look, "pareto"))
    if len(found) < 2:
        return None
    rows, cut = first_of(found, look.record.name, "pareto")
    has_cost = any(row["cost"] is not None for row in rows)
    has_latency = any(row["latency"] is not None for row in rows)
    measured = [
        "input and output tokens",
        "engine seconds (outputs of one batch share them)",
        *(["latency in seconds from request to answer, under the campaign's load"] if has_latency else []),
        *(["price of 1,000 outputs"] if has_cost else []),
    ]
    decimals = {
        name: decimals_of([row[name] for row in rows if row[name] is not None])
        for name in ("seconds", "latency", "cost")
    }

    def spread(name: str, row: Row) -> str:
        return _spread(row[name], row[f"{name}_sd"], decimals[name])

    return Section(
        name="pareto",
        title="Quality, cost and time",
        note=f"Means per output with standard deviations: {', '.join(measured)}. Cost and time are not "
        "certified. Unbeaten: not eliminated, and no other such candidate has at least this estimate, is "
        f"neither clearly dearer nor clearly slower, and is better in one of the three.{cut}",
        table=[
            {
                "candidate": row["candidate"],
                "estimate": row["estimate"],
                "unbeaten": "yes" if row["pareto"] else "",
                "tokens": f"{row['tokens']:.1f} ± {row['tokens_sd']:.1f}",
                "seconds": spread("seconds", row),
                **({"latency": spread("latency", row)} if has_latency else {}),
                **({"cost": spread("cost", row)} if has_cost else {}),
            }
            for row in rows
        ],
    )


def _spread(mean: float | None, deviation: float, decimals: int | None) -> str:
    """Format a mean and its standard deviation as "mean ± deviation"; empty for None.

    If `decimals` is None, both have three significant digits.
    """
    if mean is None:
        return ""
    shape = ".3g" if decimals is None else f".{decimals}f"
    return f"{mean:{shape}} ± {deviation:{shape}}"


def page_of(objective: str) -> Any:  # noqa: ANN401
    """The module with the sections of an objective's page; its name is `Traits.page`."""
    return import_module(traits_of(objective).page)


def metrics(look: Look) -> Section | None:
    """The section "metrics": mean scores of each candidate by additional judges."""
    found = list(ask(look, "metrics"))
    if not found:
        return None
    rows, cut = first_of(found, look.record.name, "metrics")
    measured = page_of(look.record.objective).MEASURED
    names = {row["metric"] for row in found}
    has_unscored = any(row["unscored"] for row in found)
    return Section(
        name="metrics",
        title="Metrics" if len(names) > 1 else f"Metric: {found[0]['metric']}",
        note=f"Mean scores of further judges on {measured}, with 95% Wilson intervals. Each interval holds "
        f"on its own and is not certified; {_role_of_metrics(look.record)}.{cut}",
        table=[
            {
                "candidate": row["candidate"],
                **({"metric": row["metric"]} if len(names) > 1 else {}),
                "mean": row["mean"],
                "interval": "" if row["lower"] is None else span(row["lower"], row["upper"]),
                "scored": row["scored"],
                **({"unscored": row["unscored"]} if has_unscored else {}),
            }
            for row in rows
        ],
    )


def _role_of_metrics(campaign: CampaignRecord) -> str:
    """Clause on the role of metrics in the campaign's answer."""
    constraints = constraints_of(campaign.spec)
    if not constraints:
        return "no decision used them"
    names = ", ".join(dict.fromkeys(each.metric for each in constraints))
    return (
        f"{names} also decided the answer: separate bounds decided whether candidates meet the constraints, "
        "and the answer says what is proven about them"
    )


def tags(counts: TagCounts) -> Builder:
    """Builder of the section "tags": the leader's mean by tag of the examples."""

    def build(look: Look) -> Section | None:
        decision = outcome_records.latest_decision(look.session, look.record.id)
        if decision is None or decision.best is None:
            return None
        rows = breakdowns.tags(look, candidate=decision.best, counts=counts)
        found = [row for row in rows if row["scored"]]
        if not found:
            return None
        shown, cut = first_of(found, look.record.name, "tags")
        names = {row["tag"] for row in found}
        return Section(
            name="tags",
            title=f"The leader by {'tag' if len(names) > 1 else found[0]['tag']}",
            note="Mean score of the leader on its scored examples of each tag, with 95% Wilson intervals. "
            "Each interval holds on its own and is not certified: among many groups, some look bad by "
            f"chance.{cut}",
            table=[_tag_row(row, has_tags=len(names) > 1) for row in shown],
        )

    return build


def _tag_row(row: Row, *, has_tags: bool) -> Row:
    return {
        "value": f"{row['tag']}: {row['value']}" if has_tags else row["value"],
        "mean": row["mean"],
        "interval": span(row["lower"], row["upper"]),
        "worst": "worst" if row["worst"] else "",
        "scored": f"{row['scored']} of {row['examples']}",
    }


def allocation(unit: str) -> Builder:
    """Builder of the section "allocation": number of evaluations per candidate."""

    def build(look: Look) -> Section | None:
        found = [row for row in ask(look, "leaderboard") if row["scored"] or row["unscored"]]
        if not found:
            return None
        rows, cut = first_of(found, look.record.name, "leaderboard")
        return Section(
            name="allocation",
            title="Evaluations by candidate",
            note=f"Number of evaluations of each candidate, best estimate first.{cut}",
            figure=allocation_figure(rows, unit=unit),
        )

    return build


def samples(titles: Mapping[str, str]) -> Builder:
    """Builder of the section "comparisons": samples of each kind in `titles`, and unscored ones."""

    def build(look: Look) -> Section | None:
        decision = outcome_records.latest_decision(look.session, look.record.id)
        best = decision.best if decision else None
        groups = sample_groups(look, {**titles, sample_views.UNSCORED: "Without an outcome"}, best=best)
        if not groups:
            return None
        return Section(
            name="comparisons",
            title="Sample outputs",
            note=f"Up to {MOST_SAMPLES} of each kind. See all: winnow query {look.record.name} comparisons.",
            groups=groups,
        )

    return build


def cost_in_tokens(look: Look) -> Section | None:
    """The section "tokens": tokens by candidate, and those of judges."""
    rows, cut = _costs(look)
    if not rows:
        return None
    return Section(
        name="tokens",
        title="Tokens",
        note="New outputs of this campaign only; reused outputs are free. Models in brackets are judges or "
        f"autoevaluators.{_caching(look)}{cut}",
        figure=tokens(rows),
    )


def cost_in_seconds(look: Look) -> Section | None:
    """The section "seconds": engine seconds by candidate, and those of judges."""
    rows, cut = _costs(look)
    if not any(row["seconds"] or row["load_seconds"] for row in rows):
        return None
    return Section(
        name="seconds",
        title="Engine time",
        note=f"For the same outputs. Outputs of one batch share its time.{_loading(look)}{cut}",
        figure=seconds(rows),
    )


def loading(look: Look) -> Section | None:
    """The section "loads": number and duration of each model's loads."""
    by_model = loads_by_model(look.session, look.record.id)
    if not by_model:
        return None
    found = [{"candidate": model, **row} for model, row in by_model.items()]
    rows, cut = first_of(sorted(found, key=lambda row: -row["load_seconds"]), look.record.name, "costs")
    return Section(
        name="loads",
        title="Loads",
        note="How often each model was loaded or woken from sleep, and the total seconds. A higher "
        f"execution.max_loaded keeps more models loaded.{cut}",
        figure=loads(rows),
    )


def coverage(look: Look) -> Section | None:
    """The section "coverage": numbers of scored comparisons, and of unscored ones by reason."""
    reasons: dict[str | None, Row] = {}
    for row in ask(look, "coverage"):
        start = {"reason": row["reason"] or "scored", **dict.fromkeys(COUNTED, 0), "candidates": 0}
        found = reasons.setdefault(row["reason"], start | {"detail": None})
        for name in COUNTED:
            found[name] += row[name]
        found["candidates"] += 1
        found["detail"] = found["detail"] or row["detail"]
    if not reasons:
        return None
    return Section(
        name="coverage",
        title="Coverage",
        note="Numbers of comparisons by reason, counted once per candidate, of outputs without an answer, "
        "and of outputs that were cut off. The detail is from one of the comparisons.",
        table=sorted(reasons.values(), key=lambda row: (row["reason"] != "scored", -row["comparisons"])),
    )


def _loading(look: Look) -> str:
    """A sentence on the total load time of models; empty if no model was loaded."""
    totals = campaign_views.totals(look.session, look.record.id)
    loads, seconds = totals["loads"], totals["load_seconds"]
    if not loads:
        return ""
    share = seconds / (seconds + totals["engine_seconds"])
    return (
        f" Loading models took {seconds:.1f} s ({loads} load{'s' * (loads > 1)}), {share:.0%} of all engine "
        "time; a load for several candidates is shown with the first of them."
    )


def _caching(look: Look) -> str:
    """A sentence on the share of tokens found in prefix caches; empty if no engine reports it."""
    rate = cache_hit_rate(look.session, look.record.id)
    if rate is None:
        return ""
    return f" {rate:.0%} of the prompts' tokens were read from prefix caches, as far as engines report it."


def _costs(look: Look) -> tuple[list[Row], str]:
    """Rows of costs, most tokens first, and a sentence on omitted rows; other models are in brackets."""
    costs = ask(look, "costs")
    found = [{**row, "candidate": row["candidate"] or f"[{row['model']}]"} for row in costs]
    found.sort(key=lambda row: row["input_tokens"] + row["output_tokens"], reverse=True)
    rows, cut = first_of(found, look.record.name, "costs")
    return list(rows), cut


CLOSING: tuple[Builder, ...] = (coverage, cost_in_tokens, cost_in_seconds, loading)
"""Sections at the end of every page."""


def sections_of(
    look: Look,
    *,
    with_samples: bool = True,
    read: PageCache | None = None,
) -> list[Section]:
    """All sections of a campaign's page that have content, in order.

    Args:
        look: The campaign's current state.
        with_samples: Whether sample comparisons are included.
        read: Cache from an earlier call for this campaign; None for a new one.
    """
    page = page_of(look.record.objective)
    own = page.builders_of(look.record, read or PageCache())
    samples = [standard.samples(page.SAMPLES)] if with_samples else []
    builders = (*own, *samples, *standard.CLOSING)
    return [section for build in builders if (section := build(look)) is not None]
