"""The table of all candidates: their parts, their estimates, and their status."""

from collections.abc import Sequence
from dataclasses import dataclass

from winnow.flows.reports.html.figures.labels import readable
from winnow.storage.json_types import JsonView
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.record_types import NewCandidate
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.factors import sampling_words
from winnow.tasks.queries.held_out import scored_words
from winnow.tasks.queries.views import ask
from winnow.tasks.text.phrases import rounded, span

UNKNOWN = "–"

LONGEST_BESIDE_DETAILS = 40
"""Maximum length of names, in characters, beside which columns that repeat parts of a name are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of the table."""

    text: str
    worth: float | None = None
    """The number by which the column is sorted; None for texts and unknown numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the table."""

    heading: str
    is_number: bool = False
    is_detail: bool = False
    """Whether a narrow page omits the column, because candidates' names contain its values."""


COLUMNS = (
    Column(heading="rank", is_number=True),
    Column(heading="candidate"),
    Column(heading="model", is_detail=True),
    Column(heading="prompt", is_detail=True),
    Column(heading="sampling", is_detail=True),
    Column(heading="estimate", is_number=True),
    Column(heading="interval", is_number=True),
    Column(heading="scored", is_number=True),
    Column(heading="status"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderboard:
    """The table, without empty columns."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    best: Sequence[bool]
    """For each row, whether it is the leader."""


def leaderboard(look: Look) -> Leaderboard | None:
    """The table of a campaign, sorted by best estimate or lowest risk; None before the first round."""
    found = list(ask(look, "leaderboard"))
    if not any(row["scored"] or row["unscored"] for row in found):
        return None
    made_of = {each.name: each for each in campaign_records.candidates(look.session, look.record.id)}
    rows = [_cells(rank, row, made_of[row["candidate"]]) for rank, row in enumerate(found, 1)]
    has_room = max(len(row["candidate"]) for row in found) <= LONGEST_BESIDE_DETAILS
    kept = [
        number
        for number, column in enumerate(COLUMNS)
        if any(row[number].text.strip(UNKNOWN) for row in rows) and (has_room or not column.is_detail)
    ]
    return Leaderboard(
        columns=[COLUMNS[number] for number in kept],
        rows=[[row[number] for number in kept] for row in rows],
        best=[row["best"] for row in found],
    )


def _cells(rank: int, row: JsonView, made_of: NewCandidate) -> list[Cell]:
    guardrail = made_of.prompt.get("guardrail")
    prompt = [made_of.prompt.get("name"), None if guardrail is None else guardrail.get("name")]
    known = row["estimate"] is not None
    has_interval = known and row["lower"] is not None and row["upper"] is not None
    asked = row["scored"] + row["unscored"]
    return [
        Cell(text=str(rank) if known else UNKNOWN, worth=float(rank)),
        Cell(text=readable(row["candidate"])),
        Cell(text=readable(str(made_of.model.get("name", "")))),
        Cell(text=readable(" in ".join(each for each in prompt if each))),
        Cell(text=sampling_words(made_of.sampling)),
        Cell(text=rounded(row["estimate"]) if known else UNKNOWN, worth=row["estimate"]),
        Cell(
            text=span(row["lower"], row["upper"]) if has_interval else UNKNOWN,
            worth=row["lower"] if has_interval else None,
        ),
        Cell(
            text=scored_words(row) + (f" of {asked:,}" if row["unscored"] else ""),
            worth=float(row["scored"]),
        ),
        Cell(text=row["status"]),
    ]
