"""A campaign's answer in one line, for logs and for lists of campaigns that were run one after the other."""

from winnow.flows.reports.open_readonly import reading
from winnow.storage.json_types import Row
from winnow.storage.queries import history as history_views
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.words import headline, subject
from winnow.tasks.queries.status import campaign_status


def campaign_line(storage: str, name: str) -> str:
    """Where a campaign stands, what it made anew, and whether its series has another winner now."""
    with reading(storage) as session:
        record = campaign_records.get_campaign(session, name)
        status = campaign_status(session, record)
        generated, reused = history_views.texts(session, record.id)
        series = record.series if status.answer.baseline is None else None
        changed = _changed(history_views.series(session, series), name) if series else ""
    stands = f"{headline(status.answer, status.state)}, {_best(status.answer)}"
    return (
        f"{name}: {stands}; {status.totals['comparisons']} comparisons; "
        f"{generated} generations made anew, {reused} taken from other campaigns{changed}"
    )


def _best(answer: Answer) -> str:
    if answer.baseline is not None:
        return subject(answer)
    best = answer.of_best
    if best is None:
        return "no winner"
    if best.estimate is None or best.lower is None or best.upper is None:
        return f"best {best.name}"
    held_out = "" if answer.held_out_mean is None else f", held out {answer.held_out_mean:.3f}"
    return f"best {best.name} {best.estimate:.3f} [{best.lower:.3f}, {best.upper:.3f}]{held_out}"


def _changed(rows: list[Row], name: str) -> str:
    changed = next(row["changed"] for row in rows if row["campaign"] == name)
    if changed is None:
        return ""
    return "; another winner than before" if changed else "; the same winner as before"
