"""A campaign's answer as text: a block of lines with costs and commands, or one line."""

import re
import sys
from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len

from winnow.flows.reports.default_database import reading
from winnow.flows.reports.output import BOLD, GREEN, YELLOW, coloured, terminal_width, wants_colours
from winnow.storage.engine.database import shown_url, storage_option
from winnow.storage.errors import StorageError
from winnow.storage.objectives import traits_of
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.sentences.answer_lines import badge, headline, outcome_words, subject
from winnow.tasks.answer.sentences.clauses import Line
from winnow.tasks.answer.sentences.margin import leaves_margin
from winnow.tasks.answer.status_lines import named_winner, status_lines
from winnow.tasks.campaign.budget import BudgetUsage
from winnow.tasks.campaign.campaign import Campaign
from winnow.tasks.campaign.changed_models import N_PROMPTS
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import CampaignStatus, campaign_status
from winnow.tasks.text.phrases import amount, count_of, ends, list_of, percentage, rounded
from winnow.tasks.text.printable import one_line, printable

KEY_WIDTH = 13

BETWEEN_WORDS = re.compile(r"(?<!\d) | (?!(?:s|min|h)\b)")
"""Matches every space at which a line may break: not between a number and its unit."""

TO_GO_ON = ("interrupted", "new", "waiting")
"""States of an unfinished campaign that no process runs."""

PARTS = re.compile(r"[^/]*/+|[^/]+")
"""Matches the parts of a long word that are separated by slashes, each with its trailing slash."""


MOST_BRIEF = 6
"""Maximum number of lines of a brief block."""

BRIEF_LABELS = ("runner-up", "risk", "pays", "confidence", "cost")
"""Labels of the lines in a brief block."""


def print_summary(status: CampaignStatus, storage: str, *, is_brief: bool = False) -> None:
    """Print a campaign's answer and costs, and where its results are.

    On a terminal, lines are broken at its width and the winner is coloured.

    Args:
        status: The campaign's status.
        storage: URL of the campaign's database.
        is_brief: Whether a terminal shows only the headline and a few lines; other outputs get all lines.
    """
    width, has_colours = terminal_width(sys.stdout), wants_colours(sys.stdout)
    is_brief = is_brief and width is not None
    lines = summary_lines(status, storage, width=width, has_colours=has_colours, is_brief=is_brief)
    print("\n".join(lines))


def summary_lines(
    status: CampaignStatus,
    storage: str,
    *,
    width: int | None = None,
    has_colours: bool = False,
    is_brief: bool = False,
) -> list[str]:
    """Lines with a campaign's answer, warnings and costs, and commands that show or continue it.

    Args:
        status: The campaign's status.
        storage: URL of the campaign's database.
        width: Columns of the terminal, at which lines are broken; None for no line breaks.
        has_colours: Whether the kind of claim and the winner are coloured.
        is_brief: Whether to return only the headline, at most `MOST_BRIEF` further lines, and the command
            that shows all.
    """
    sentences = " ".join(status.headline_sentences())
    lines = [_title(status, has_colours), *hanging("", printable(sentences), width)]
    answer_lines = status_lines(status.answer, status.totals)
    for line in _brief(answer_lines, status) if is_brief else (*answer_lines, *further_lines(status)):
        text = _with_storage(printable(line[1]), status.name, shown_url(storage))
        broken = hanging(_head(line[0]), text, width)
        winner = named_winner(status.answer, line)
        if has_colours and winner is not None:
            broken[0] = broken[0].replace(winner, coloured(winner, BOLD, GREEN), 1)
        lines += broken
    # Commands and addresses are not broken, so that users can copy them.
    where = _where(status, shown_url(storage))
    if is_brief:
        more = ("more", f"winnow status {status.name} {storage_option(shown_url(storage))}")
        where = [more, *(line for line in where if line[0] in ("label", "go on"))]
    return [*lines, *(f"{_head(word)}{printable(text)}" for word, text in where)]


def _brief(answer_lines: Sequence[Line], status: CampaignStatus) -> list[Line]:
    """Lines of a brief block: warnings, the winner, its lead, the confidence and the cost.

    Warnings come first, because they can mean that the judge caused the scores, not the candidates.
    """
    found = [*answer_lines[:1], *(line for line in answer_lines[1:] if line[0] in BRIEF_LABELS)]
    warnings: list[Line] = [("check", warning.sentence) for warning in status.warnings]
    room = MOST_BRIEF - len(found)
    if len(warnings) > room:
        left = len(warnings) - (room - 1)
        warnings = [*warnings[: room - 1], ("check", f"{left} more; winnow status shows them")]
    return [*warnings, *found]


def lines_in_two(status: CampaignStatus) -> tuple[list[Line], list[Line]]:
    """The lines of the answer in two parts: those of a brief block, and all others."""
    answer_lines = status_lines(status.answer, status.totals)
    lines, brief = [*answer_lines, *further_lines(status)], _brief(answer_lines, status)
    return [line for line in brief if line in lines], [line for line in lines if line not in brief]


def hanging(head: str, text: str, width: int | None) -> list[str]:
    """Break a sentence into lines that are indented by the width of a head.

    Args:
        head: Beginning of the first line.
        text: The sentence. Lines break between words; a word longer than a line, such as a candidate's name,
            breaks after "/".
        width: Columns of the terminal; None for no limit.
    """
    if width is None:
        return [head + text]
    lines, indent = [head], " " * cell_len(head)
    for word in BETWEEN_WORDS.split(text):
        fits_a_line = cell_len(indent + word) <= width
        for number, part in enumerate([word] if fits_a_line else PARTS.findall(word)):
            is_empty = lines[-1] in (head, indent)
            gap = "" if is_empty or number else " "
            if not is_empty and cell_len(f"{lines[-1]}{gap}{part}") > width:
                lines.append(indent + part)
            else:
                lines[-1] += gap + part
    return lines


def check_lines(sentence: str, width: int | None) -> list[str]:
    """A warning on lines of at most `width` columns; None for no limit."""
    return hanging("check: ", one_line(sentence), width)


def _with_storage(sentence: str, name: str, storage: str) -> str:
    """Add the option --storage to the commands in a sentence of an answer."""
    of = re.escape(name)
    commands = rf"winnow (?:query {of} [a-z]+|resume {of}(?: --set \S+)+|route {of} --unanswered)"
    return re.sub(commands, lambda found: f"{found[0]} {storage_option(storage)}", sentence)


def further_lines(status: CampaignStatus) -> list[Line]:
    """Lines that follow the answer: warnings, costs, budgets and coverage."""
    return [
        *(("check", warning.sentence) for warning in status.warnings),
        ("spent", _spent(status)),
        ("budget", ", ".join(str(each) for each in _budgets(status))),
        ("coverage", _coverage(status)),
    ]


def _budgets(status: CampaignStatus) -> list[BudgetUsage]:
    """The budgets; a limit on comparisons is shown as all evaluations if there are fewer.

    The default budget is at least one round. Only duels can be repeated.
    """
    if traits_of(status.objective).compares_pairs:
        return [*status.budgets]
    most = max(status.totals["grid"], 1)
    return [
        replace(each, limit=min(each.limit, most)) if each.kind == "comparisons" else each
        for each in status.budgets
    ]


def resume_command(status: CampaignStatus, storage: str) -> str | None:
    """The command that resumes a campaign; None if the campaign is running, has ended, or needs a program."""
    return f"winnow resume {status.name} {storage_option(storage)}" if _can_be_resumed(status) else None


def nothing_yet(status: CampaignStatus) -> str:
    """The sentence on the page of a campaign without a finished round."""
    sentence = "No round is finished yet."
    if status.state == "waiting" or not _can_be_resumed(status):
        return sentence
    return f"{sentence} To continue, run winnow resume {status.name}."


def _can_be_resumed(status: CampaignStatus) -> bool:
    is_of_program = status.answer.is_of_program or status.answer.named_by_program is not None
    return status.state in TO_GO_ON and not is_of_program


def _going_on(status: CampaignStatus, storage: str) -> str | None:
    """The command or Python call that resumes a campaign; None if the campaign is running or has ended."""
    if status.state not in TO_GO_ON:
        return None
    if status.answer.is_of_program:
        return "by winnow.select, where its function is"
    if status.answer.named_by_program is not None:
        return f"by winnow.run, where {status.answer.named_by_program}"
    return resume_command(status, storage)


def _title(status: CampaignStatus, has_colours: bool) -> str:
    claim, outcome = badge(status.answer), outcome_words(status.answer, status.state)
    if claim is None:
        return f"{status.name}: {outcome}"
    if has_colours:
        claim = coloured(claim, BOLD, GREEN if status.answer.is_guaranteed else YELLOW)
    return f"{status.name}: {outcome}, {claim}"


def _head(word: str) -> str:
    return f"  {word:<{KEY_WIDTH}}"


def _where(status: CampaignStatus, storage: str) -> list[Line]:
    """Lines with the database, and with commands that show, label, serve or resume the campaign."""
    lines = [
        ("database", storage),
        ("page", f"winnow report {status.name} --html {status.name}.html {storage_option(storage)}"),
        ("browse", f"winnow view {storage_option(storage)}"),
    ]
    if status.answer.standing is not None and status.answer.standing.mean is not None:
        lines.append(("serve", f"winnow route {status.name} --export DIR {storage_option(storage)}"))
    if status.left:
        lines.append(("stopped", status.left))
    if status.state == "waiting":
        lines.append(("label", f"winnow label {status.name} [FILE] {storage_option(storage)}"))
    if (going_on := _going_on(status, storage)) is not None:
        lines.append(("go on", going_on))
    return lines


def _spent(status: CampaignStatus) -> str:
    totals = status.totals
    if status.answer.is_of_program:
        calls = count_of(totals["generations"], "call")
        return f"{calls} of its function, {totals['engine_seconds']:.1f} s{_reused(status)}"
    beside = f"{_loading(status)}{_reused(status)}{_canaries(status)}"
    return (
        f"{count_of(totals['generations'], 'generation')}, "
        f"{count_of(totals['input_tokens'] + totals['output_tokens'], 'token')}, {_price(status)}"
        f"{totals['engine_seconds']:.1f} s of engine time{beside}"
    )


def _price(status: CampaignStatus) -> str:
    """The price with a trailing comma; empty if the price is unknown, or if a budget of cost shows it."""
    if status.price is None or any(each.kind == "cost" for each in status.budgets):
        return ""
    return f"price {amount(status.price)}{f' {status.currency}' if status.currency else ''}, "


def _loading(status: CampaignStatus) -> str:
    loads, seconds = status.totals["loads"], status.totals["load_seconds"]
    if not loads:
        return ""
    times = f"{loads} load{'s' if loads > 1 else ''} of models"
    return f" and {seconds:.1f} s for {times} ({percentage(status.share_of_loading, 0)} of both)"


def _reused(status: CampaignStatus) -> str:
    reused = status.totals["reused"]
    return f"; reused {count_of(reused, 'output')} of other campaigns or trials" if reused else ""


def _canaries(status: CampaignStatus) -> str:
    canaries = status.canaries
    if not canaries or not canaries["prompts"]:
        return ""
    prompts, tokens = count_of(canaries["prompts"], "canary prompt"), count_of(canaries["tokens"], "token")
    return f"; and {prompts} ({canaries['different']} of {N_PROMPTS} each time), {tokens}"


def _coverage(status: CampaignStatus) -> str:
    total, certificate = status.totals["comparisons"], status.answer.certificate
    if not total:
        return "no comparison is finished yet"
    unscored = total - status.totals["scored"]
    if certificate is not None:
        if certificate.incomplete:
            lack = "lacks" if certificate.incomplete == 1 else "lack"
            counts = "counts at its worst" if certificate.is_reliable else "is left out of every mean"
            return (
                f"{certificate.incomplete:,} of {total:,} comparisons {lack} a loss, which {counts}; "
                f"winnow query {status.name} comparisons shows the reasons"
            )
        if not unscored:
            return "every loss is known"
        # An output that could not be read or judged has a loss, too; against a baseline, not always 1.
        return (
            f"every loss is known, also of the {unscored:,} of {total:,} comparisons that have no outcome; "
            f"winnow query {status.name} coverage shows the reasons"
        )
    if not unscored:
        return "every comparison was scored"
    lack = f"{unscored:,} of {total:,} comparisons {'has' if unscored == 1 else 'have'} no score"
    spared = "" if status.answer.judged is None else ", including those of equal outputs"
    return f"{lack}{spared}; winnow query {status.name} coverage shows the reasons"


def status_of(storage: str, name: str, *, in_full: bool = False) -> CampaignStatus:
    """Read the status of a campaign from a database; see `campaign_status`."""
    with reading(storage) as session:
        return campaign_status(Look(session, campaign_records.get_campaign(session, name)), in_full=in_full)


def status_now(campaign: Campaign) -> CampaignStatus:
    """Read the current status of an open campaign."""
    with campaign.look() as look:
        return campaign_status(look)


def is_known_settled(campaign: Campaign) -> bool:
    """Whether a campaign is settled, read from its database; False if the database cannot be read."""
    try:
        return status_of(campaign.storage, campaign.name).is_settled
    except StorageError:  # the next reader of the database reports the error
        return False


def campaign_line(campaign: Campaign) -> str:
    """A line with a campaign's state, best candidate, costs, and whether its series has a new winner."""
    from winnow.tasks.queries.schedule_history import edited_since, is_another, previous_winner

    with campaign.look() as look:
        status = campaign_status(look)
        before = previous_winner(look)
        edited = edited_since(look.session, before, look.record)
    is_new = before is not None and is_another(before.answer, status.answer)
    changed = _changed(status, before, edited, is_new=is_new)
    result = f"{headline(status.answer, status.state)}, {_best(status.answer)}"
    return (
        f"{campaign.name}: {result}; {count_of(status.totals['answered'], 'comparison')}; "
        f"{count_of(status.totals['generations'], 'new generation')}, {status.totals['reused']:,} reused "
        f"from other campaigns{changed}"
    )


def _best(answer: Answer) -> str:
    if answer.baseline is not None:
        return subject(answer)
    best, alone = answer.of_best, len(answer.listed) == 1 and not answer.is_own_baseline
    if best is None:
        return "no winner"
    word = "named" if leaves_margin(answer) else "best"
    if answer.chosen is not None:
        return f"chosen {answer.chosen}, {word} {best.name}"
    if best.estimate is None or best.lower is None or best.upper is None or not alone:
        return f"{word} {list_of(answer.listed)}"
    held_out = "" if answer.held_out_mean is None else f", held out {rounded(answer.held_out_mean)}"
    interval = "[{}, {}]".format(*ends(best.lower, best.upper))
    return f"{word} {best.name} {rounded(best.estimate)} {interval}{held_out}"


def _changed(
    status: CampaignStatus, before: CampaignStatus | None, differing: Sequence[str], *, is_new: bool
) -> str:
    """Clause on whether a schedule's winner has changed; empty without an earlier campaign or a winner."""
    if before is None or not status.answer.winners:
        return ""
    edited = f" (not the same since {before.name}: {', '.join(differing)})" if differing else ""
    if not is_new:
        return f"; the same winner as before{edited}"
    sure = "" if status.answer.is_guaranteed and before.answer.is_guaranteed else ", not proven of both"
    return f"; another winner than before{sure}{edited}"
