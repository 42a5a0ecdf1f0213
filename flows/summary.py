"""The answer of a campaign in a few sentences."""

from flows.certified import certified_lines, coverage_line
from flows.routed import routed_lines
from storage.urls import shown_url
from tasks.status import CampaignStatus

MOST_CONTENDERS = 5


def print_summary(status: CampaignStatus, storage: str) -> None:
    """Print the winner, how sure it is, what it cost, and where everything is."""
    print("\n".join(summary_lines(status, storage)))


def summary_lines(status: CampaignStatus, storage: str) -> list[str]:
    """The answer, one sentence a line."""
    totals, storage = status.totals, shown_url(storage)
    return [
        f"{status.name}: {status.state}",
        *_answer(status, storage),
        f"  cost      {totals['comparisons']} comparisons in {totals['rounds']} rounds, "
        f"{_share(status)}; "
        f"{totals['generations']} generations, {totals['output_tokens']} tokens, "
        f"{totals['engine_seconds']:.1f} s of engine time{_loading(status)}",
        *_budget(status),
        _coverage(status) if status.certificate is None else coverage_line(status),
        f"  database  {storage}",
        f"  see       winnow query {status.name} leaderboard --storage {storage}",
        *_to_go_on(status, storage),
    ]


def resume_command(status: CampaignStatus, storage: str) -> str | None:
    """The command that goes on with a campaign, None where somebody runs it or it has ended."""
    if status.state not in ("interrupted", "new", "waiting"):
        return None
    return f"winnow resume {status.name} --storage {shown_url(storage)}"


def _to_go_on(status: CampaignStatus, storage: str) -> list[str]:
    if status.state not in ("interrupted", "new"):
        return []
    left = [f"  stopped   {status.left}"] if status.left else []
    return [*left, f"  go on     {resume_command(status, storage)}"]


def _share(status: CampaignStatus) -> str:
    if status.certificate is not None:
        return f"{status.certificate.labels_used} human labels"
    return f"{status.share_of_grid:.1%} of the full grid of {status.totals['grid']}"


def _loading(status: CampaignStatus) -> str:
    loads, seconds = status.totals["loads"], status.totals["load_seconds"]
    if not loads:
        return ""
    times = f"{loads} load{'s' if loads > 1 else ''} of models"
    return f" and {seconds:.1f} s for {times} ({status.share_of_loading:.0%} of both)"


def _answer(status: CampaignStatus, storage: str) -> list[str]:
    if status.certificate is not None:
        return certified_lines(status, storage)
    return _best(status) if status.standing is None else routed_lines(status, storage)


def _best(status: CampaignStatus) -> list[str]:
    if status.best is None:
        nothing = "no candidate could be judged" if status.reason == "all-dropped" else "nothing known yet"
        return [f"  winner    none: {nothing}"]
    lines = [
        f"  winner    {status.best}" if status.state == "decided" else f"  leading   {status.best}",
        _estimate(status),
        f"  sure      {_certainty(status)}",
    ]
    if not status.is_guaranteed and len(status.contenders) > 1:
        shown = ", ".join(status.contenders[:MOST_CONTENDERS])
        more = len(status.contenders) - MOST_CONTENDERS
        lines.append(f"  open      between {shown}{f' and {more} more' if more > 0 else ''}")
    return lines


def _estimate(status: CampaignStatus) -> str:
    between = f"{status.estimate:.3f}, between {status.lower:.3f} and {status.upper:.3f}"
    if status.objective == "best-duel":
        return f"  wins      {between} of its duels with the candidate that does best against it"
    return (
        f"  mean      {between} "
        f"(all intervals hold at once, at every round, with probability {1 - (status.delta or 0.05):.0%})"
    )


def _certainty(status: CampaignStatus) -> str:
    within = f" to within {status.epsilon:g}" if status.epsilon else ""
    if status.reason == "confident" and not status.is_guaranteed:
        return (
            f"heuristic: the best of all candidates by the practical threshold for {status.delta:g}, which "
            "is not proven to keep to it; selector.params.threshold: proven is"
        )
    if status.reason.startswith("confident"):
        _, _, threshold = status.reason.partition("-")
        how = f" ({threshold} threshold)" if threshold else ""
        model = ", if the Bradley-Terry model holds" if status.trusts_a_model else ""
        return (
            f"the best of all candidates{within}; the chance that this is wrong is at most "
            f"{status.delta:g}{model}{how}"
        )
    if status.reason == "exhausted":
        return "exact: every example was scored for every candidate that could be judged"
    if status.reason == "budget" and status.delta is None:
        return f"heuristic: {_spent(status)}, and no error probability (stopping.delta) was asked for"
    if status.reason == "budget":
        return f"undecided at error probability {status.delta:g}: {_spent(status)}; {_going_on(status)}"
    return "not yet: the campaign has not ended"


def _spent(status: CampaignStatus) -> str:
    if status.stopped_by is not None:
        return status.stopped_by.sentence
    return "the budget is spent" if status.delta is None else f"the budget of {status.budget} is spent"


def _going_on(status: CampaignStatus) -> str:
    spent = status.stopped_by or next((each for each in status.budgets if each.is_spent), None)
    return f"go on with winnow run SPEC --set {spent.key if spent else 'stopping.budget'}=MORE"


def _budget(status: CampaignStatus) -> list[str]:
    """What was spent of every limit, and that the campaign ended for it where no other line says so."""
    lines = [f"  budget    {', '.join(str(each) for each in status.budgets)}"]
    is_told = status.certificate is None and status.standing is None and status.best is not None
    if status.state != "running" and status.stopped_by is not None and not is_told:
        lines.append(f"  ended     {status.stopped_by.sentence}; {_going_on(status)}")
    return lines


def _coverage(status: CampaignStatus) -> str:
    asked, scored = status.totals["comparisons"], status.totals["scored"]
    if scored == asked:
        return "  coverage  every comparison was scored"
    return (
        f"  coverage  {asked - scored} of {asked} comparisons have no score; "
        f"winnow query {status.name} coverage says why"
    )
