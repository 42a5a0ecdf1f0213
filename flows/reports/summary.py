"""The answer of a campaign in a few sentences, with what it cost and where everything is."""

from winnow.storage.engine.urls import shown_url
from winnow.tasks.answer.words import answer_lines, headline
from winnow.tasks.queries.status import CampaignStatus

KEY_WIDTH = 10


def print_summary(status: CampaignStatus, storage: str) -> None:
    """Print the winner, how sure it is, what it cost, and where everything is."""
    print("\n".join(summary_lines(status, storage)))


def summary_lines(status: CampaignStatus, storage: str) -> list[str]:
    """How a campaign stands, then a line for each thing that there is to say."""
    lines = [*told_lines(status), *_where(status, shown_url(storage))]
    return [
        f"{status.name}: {headline(status.answer, status.state)}",
        *(f"  {key:<{KEY_WIDTH}}{sentence}" for key, sentence in lines),
    ]


def told_lines(status: CampaignStatus) -> list[tuple[str, str]]:
    """What is known and what it cost, a word and a sentence each: true wherever it is read."""
    return [
        *answer_lines(status.answer),
        *(("server", change.sentence) for change in status.answer.servers),
        *(("check", warning.sentence) for warning in status.warnings),
        ("cost", _cost(status)),
        ("budget", ", ".join(str(each) for each in status.budgets)),
        ("coverage", _coverage(status)),
    ]


def resume_command(status: CampaignStatus, storage: str) -> str | None:
    """The command that goes on with a campaign, None where somebody runs it or it has ended."""
    if status.state not in ("interrupted", "new", "waiting"):
        return None
    return f"winnow resume {status.name} --storage {shown_url(storage)}"


def _where(status: CampaignStatus, storage: str) -> list[tuple[str, str]]:
    """Where everything is, and the commands that show more and go on."""
    lines = [
        ("database", storage),
        ("page", f"winnow report {status.name} --html {status.name}.html --storage {storage}"),
        ("browse", f"winnow view --storage {storage}"),
    ]
    if status.answer.standing is not None and status.answer.standing.mean is not None:
        lines.append(("serve", f"winnow route {status.name} --export DIR --storage {storage}"))
    if status.left:
        lines.append(("stopped", status.left))
    if status.state == "waiting":
        lines.append(("label", f"winnow label {status.name} [FILE] --storage {storage}"))
    if (resume := resume_command(status, storage)) is not None:
        lines.append(("go on", resume))
    return lines


def _cost(status: CampaignStatus) -> str:
    totals = status.totals
    return (
        f"{totals['answered']} comparisons in {totals['rounds']} rounds, {_share(status)}; "
        f"{totals['generations']} generations, {totals['output_tokens']} tokens, "
        f"{totals['engine_seconds']:.1f} s of engine time{_loading(status)}"
    )


def _share(status: CampaignStatus) -> str:
    if status.answer.certificate is not None:
        return f"{status.answer.certificate.labels_used} human labels"
    return f"{status.share_of_grid:.1%} of the full grid of {status.totals['grid']}"


def _loading(status: CampaignStatus) -> str:
    loads, seconds = status.totals["loads"], status.totals["load_seconds"]
    if not loads:
        return ""
    times = f"{loads} load{'s' if loads > 1 else ''} of models"
    return f" and {seconds:.1f} s for {times} ({status.share_of_loading:.0%} of both)"


def _coverage(status: CampaignStatus) -> str:
    asked, certificate = status.totals["comparisons"], status.answer.certificate
    if certificate is not None:
        if not certificate.incomplete:
            return "every loss is known"
        return (
            f"{certificate.incomplete} of {asked} comparisons lack a loss, which counts at its worst; "
            f"winnow query {status.name} comparisons says why"
        )
    unscored = asked - status.totals["scored"]
    if not unscored:
        return "every comparison was scored"
    return f"{unscored} of {asked} comparisons have no score; winnow query {status.name} coverage says why"
