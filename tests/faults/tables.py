"""The table of faults and outcomes, for people and for programs."""

import json
from collections.abc import Sequence
from pathlib import Path

from tests.faults.outcomes import Outcome

HEADINGS = (
    "fault",
    "campaign",
    "database",
    "exit",
    "last line",
    "winnow status",
    "processes",
    "same decision",
    "lost",
    "doubled",
    "s",
)
LONGEST = 110
"""Characters of a cell."""


def cells(row: Outcome) -> list[str]:
    """One row as text, in the order of `HEADINGS`."""
    values = [
        row.fault,
        row.campaign,
        row.database,
        row.ended,
        row.sentence,
        row.status,
        row.processes,
        "yes" if row.same_decision else "NO",
        row.lost,
        row.doubled,
        row.seconds,
    ]
    return [_cell(value) for value in values]


def write_table(outcomes: Sequence[Outcome], folder: Path) -> Path:
    """Write faults.md and faults.json; return the first."""
    good = sum(row.is_good for row in outcomes)
    different = len({row.fault for row in outcomes})
    lines = [
        f"{good} of {len(outcomes)} rows end as they should: the reference decision, no row lost or doubled. "
        f"{different} different faults.",
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|" + "---|" * len(HEADINGS),
        *("| " + " | ".join(cells(row)) + " |" for row in outcomes),
    ]
    bad = [row for row in outcomes if not row.is_good]
    lines += [f"\n{row.fault} / {row.campaign} / {row.database}: {' '.join(row.wrong)}" for row in bad]
    path = folder / "faults.md"
    path.write_text("\n".join(lines) + "\n")
    (folder / "faults.json").write_text(json.dumps([row.as_dict() for row in outcomes], indent=2))
    return path


def _cell(value: object) -> str:
    text = " ".join(str(value).split()).replace("|", "\\|")
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
