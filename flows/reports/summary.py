"""The answer of a campaign: a block with its costs and the places of its results, or one line."""

import re
import sys
from collections.abc import Sequence

from rich.cells import cell_len

from winnow.flows.reports.open_readonly import reading
from winnow.flows.reports.output import BOLD, GREEN, YELLOW, coloured, terminal_width, wants_colours
from winnow.storage.engine.database import shown_url, storage_option
from winnow.storage.errors import StorageError
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.sentences.answer_lines import badge, headline, outcome_words, subject
from winnow.tasks.answer.sentences.clauses import Line
from winnow.tasks.answer.sentences.margin import leaves_margin
from winnow.tasks.answer.status_lines import named_winner, status_lines
from winnow.tasks.campaign.campaign import Campaign
from winnow.tasks.campaign.changed_models import N_PROMPTS
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import CampaignStatus, campaign_status
from winnow.tasks.text.phrases import amount, count_of, ends, list_of, percentage, rounded
from winnow.tasks.text.printable import printable

KEY_WIDTH = 13

BETWEEN_WORDS = re.compile(r"(?<!\d) | (?!(?:s|min|h)\b)")
"""Matches spaces except those between a number and its unit."""

TO_GO_ON = ("interrupted", "new", "waiting")
"""The states of an unfinished campaign that no process runs."""

PARTS = re.compile(r"[^/]*/+|[^/]+")
"""Matches the parts of a long word, each with its trailing slash."""


MOST_BRIEF = 6
"""Maximum number of lines of a brief block."""

FIRST_TOLD = ("runner-up", "risk", "pays", "confidence", "cost")
"""Labels of a brief block's lines, in their order after the headline."""


def print_summary(status: CampaignStatus, storage: str, *, is_brief: bool = False) -> None:
    """Print the answer, its costs and the places of the results; on a terminal with its width and colours.

    Args:
        status: The campaign's status.
        storage: URL of the campaign's database.
        is_brief: Whether a terminal shows only the headline and a few lines; `winnow status` shows all.
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
    """The lines of the answer's block, of related facts, and of the places of the results.

    Args:
        status: The campaign's status.
        storage: Its database.
        width: Columns of the terminal, for line breaks; None for whole lines.
        has_colours: Whether the kind of claim and the winner are coloured.
        is_brief: Whether to return only the headline, `MOST_BRIEF` further lines and a pointer to the rest.
    """
    said = " ".join(status.headline_sentences())
    lines = [_title(status, has_colours), *hanging("", printable(said), width)]
    told = status_lines(status.answer, status.totals)
    for line in _brief(told, status) if is_brief else (*told, *further_lines(status)):
        text = _with_storage(printable(line[1]), status.name, shown_url(storage))
        broken = hanging(_head(line[0]), text, width)
        winner = named_winner(status.answer, line)
        if has_colours and winner is not None:
            broken[0] = broken[0].replace(winner, coloured(winner, BOLD, GREEN), 1)
        lines += broken
    # Commands and addresses stay whole, to be copied.
    where = _where(status, shown_url(storage))
    if is_brief:
        more = ("more", f"winnow status {status.name} {storage_option(shown_url(storage))}")
        where = [more, *(line for line in where if line[0] in ("label", "go on"))]
    return [*lines, *(f"{_head(word)}{printable(said)}" for word, said in where)]


def _brief(told: Sequence[Line], status: CampaignStatus) -> list[Line]:
    """The lines of a brief block: warnings, the winner, its lead, the certainty and the cost.

    Warnings come first, because one may say that the judge caused the scores, not the candidates.
    """
    found = [*told[:1], *(line for line in told[1:] if line[0] in FIRST_TOLD)]
    warnings: list[Line] = [("check", warning.sentence) for warning in status.warnings]
    room = MOST_BRIEF - len(found)
    if len(warnings) > room:
        left = len(warnings) - (room - 1)
        warnings = [*warnings[: room - 1], ("check", f"{left} more; winnow status shows them")]
    return [*warnings, *found]


def lines_in_two(status: CampaignStatus) -> tuple[list[Line], list[Line]]:
    """The lines of the answer that are read first, as those of a brief block, and all others."""
    told = status_lines(status.answer, status.totals)
    lines, brief = [*told, *further_lines(status)], _brief(told, status)
    return [line for line in brief if line in lines], [line for line in lines if line not in brief]


def hanging(head: str, text: str, width: int | None) -> list[str]:
    """A sentence after its head, with hanging indentation.

    Args:
        head: Beginning of the first line.
        text: The sentence, broken between words only; a word longer than a line, such as a candidate's name,
            is broken after "/".
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


def _with_storage(sentence: str, name: str, storage: str) -> str:
    """The sentence with the database added to its commands, because answers do not contain it."""
    of = re.escape(name)
    commands = rf"winnow (?:query {of} [a-z]+|resume {of}(?: --set \S+)+|route {of} --unanswered)"
    return re.sub(commands, lambda found: f"{found[0]} {storage_option(storage)}", sentence)


def further_lines(status: CampaignStatus) -> list[Line]:
    """Lines after the answer: warnings, costs, budgets and coverage."""
    return [
        *(("check", warning.sentence) for warning in status.warnings),
        ("spent", _spent(status)),
        ("budget", ", ".join(str(each) for each in status.budgets)),
        ("coverage", _coverage(status)),
    ]


def resume_command(status: CampaignStatus, storage: str) -> str | None:
    """The command that resumes a campaign; None if a process runs it, it has ended, or no command can."""
    return f"winnow resume {status.name} {storage_option(storage)}" if _can_be_resumed(status) else None


def nothing_yet(status: CampaignStatus) -> str:
    """The sentence on the page of a campaign without a finished round."""
    sentence = "No round is finished yet."
    if status.state == "waiting" or not _can_be_resumed(status):
        return sentence
    return f"{sentence} winnow resume {status.name} continues with it."


def _can_be_resumed(status: CampaignStatus) -> bool:
    is_of_program = status.answer.is_of_program or status.answer.named_by_program is not None
    return status.state in TO_GO_ON and not is_of_program


def _going_on(status: CampaignStatus, storage: str) -> str | None:
    """The command or Python call that resumes a campaign; None if the campaign need not be resumed."""
    if status.state not in TO_GO_ON:
        return None
    if status.answer.is_of_program:
        return "by winnow.select, where its function is"
    if status.answer.named_by_program is not None:
        return f"by winnow.run, where {status.answer.named_by_program}"
    return resume_command(status, storage)


def _title(status: CampaignStatus, has_colours: bool) -> str:
    found, said = badge(status.answer), outcome_words(status.answer, status.state)
    if found is None:
        return f"{status.name}: {said}"
    if has_colours:
        found = coloured(found, BOLD, GREEN if status.answer.is_guaranteed else YELLOW)
    return f"{status.name}: {said}, {found}"


def _head(word: str) -> str:
    return f"  {word:<{KEY_WIDTH}}"


def _where(status: CampaignStatus, storage: str) -> list[Line]:
    """Lines with the database, and with commands that show more or resume the campaign."""
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
    """The price with a trailing comma; empty if it is unknown, or shown in the line on its limit."""
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
    return f"; comparisons reuse {count_of(reused, 'text')} of other campaigns" if reused else ""


def _canaries(status: CampaignStatus) -> str:
    asked = status.canaries
    if not asked or not asked["prompts"]:
        return ""
    prompts, tokens = count_of(asked["prompts"], "canary prompt"), count_of(asked["tokens"], "token")
    return f"; and {prompts} ({asked['different']} of {N_PROMPTS} each time), {tokens}"


def _coverage(status: CampaignStatus) -> str:
    asked, certificate = status.totals["comparisons"], status.answer.certificate
    if not asked:
        return "no comparison is finished yet"
    unscored = asked - status.totals["scored"]
    if certificate is not None:
        if certificate.incomplete:
            lack = "lacks" if certificate.incomplete == 1 else "lack"
            counts = "counts at its worst" if certificate.is_reliable else "is left out of every mean"
            return (
                f"{certificate.incomplete:,} of {asked:,} comparisons {lack} a loss, which {counts}; "
                f"winnow query {status.name} comparisons says why"
            )
        if not unscored:
            return "every loss is known"
        # What could not be read or judged has a loss all the same; against a baseline it need not be 1.
        return (
            f"every loss is known, also of the {unscored:,} of {asked:,} comparisons that have no outcome; "
            f"winnow query {status.name} coverage says why"
        )
    if not unscored:
        return "every comparison was scored"
    lack = f"{unscored:,} of {asked:,} comparisons {'has' if unscored == 1 else 'have'} no score"
    spared = "" if status.answer.judged is None else ", those of equal outputs among them"
    return f"{lack}{spared}; winnow query {status.name} coverage says why"


def status_of(storage: str, name: str, *, in_full: bool = False) -> CampaignStatus:
    """The status of a campaign, as `campaign_status` returns it."""
    with reading(storage) as session:
        return campaign_status(Look(session, campaign_records.get_campaign(session, name)), in_full=in_full)


def status_now(campaign: Campaign) -> CampaignStatus:
    """The current status of a campaign."""
    with campaign.look() as look:
        return campaign_status(look)


def is_known_settled(campaign: Campaign) -> bool:
    """Whether the database records a campaign as settled; opens the database for this."""
    try:
        return status_of(campaign.storage, campaign.name).is_settled
    except StorageError:  # it is gone, or whoever reads it next says what is wrong
        return False


def campaign_line(campaign: Campaign) -> str:
    """A line with a campaign's state, recovered work, and whether the winner of its series has changed."""
    from winnow.tasks.queries.schedule_history import edited_since, is_another, previous_winner

    with campaign.look() as look:
        status = campaign_status(look)
        before = previous_winner(look)
        edited = edited_since(look.session, before, look.record)
    is_new = before is not None and is_another(before.answer, status.answer)
    changed = _changed(status, before, edited, is_new=is_new)
    stands = f"{headline(status.answer, status.state)}, {_best(status.answer)}"
    return (
        f"{campaign.name}: {stands}; {count_of(status.totals['answered'], 'comparison')}; "
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
    """Whether a schedule's winner has changed, as the end of a sentence; gates have no winner."""
    if before is None or not status.answer.winners:
        return ""
    edited = f" (not the same since {before.name}: {', '.join(differing)})" if differing else ""
    if not is_new:
        return f"; the same winner as before{edited}"
    sure = "" if status.answer.is_guaranteed and before.answer.is_guaranteed else ", not proven of both"
    return f"; another winner than before{sure}{edited}"
