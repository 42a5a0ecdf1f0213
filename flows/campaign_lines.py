"""A campaign's answer in one line, for logs and for lists of campaigns that were run one after the other."""

from flows.reading import reading
from storage import campaign_records, history_views
from tasks.status import CampaignStatus, campaign_status


def campaign_line(storage: str, name: str) -> str:
    """Where a campaign stands, what it made anew, and whether its family has another winner now."""
    with reading(storage) as session:
        record = campaign_records.get_campaign(session, name)
        status = campaign_status(session, record)
        generated, reused = history_views.texts(session, record.id)
        changed = _changed(history_views.family(session, record.family), name) if record.family else ""
    return (
        f"{name}: {status.state}, {_best(status)}; {status.totals['comparisons']} comparisons; "
        f"{generated} generations made anew, {reused} taken from other campaigns{changed}"
    )


def _best(status: CampaignStatus) -> str:
    if status.best is None:
        return "no winner"
    if status.estimate is None or status.lower is None or status.upper is None:
        return f"best {status.best}"
    return f"best {status.best} {status.estimate:.3f} [{status.lower:.3f}, {status.upper:.3f}]"


def _changed(rows: list[history_views.Row], name: str) -> str:
    changed = next(row["changed"] for row in rows if row["campaign"] == name)
    if changed is None:
        return ""
    return "; another winner than before" if changed else "; the same winner as before"
