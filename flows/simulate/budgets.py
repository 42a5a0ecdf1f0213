"""Parse the budgets at which simulated runs are evaluated."""

from typing import TYPE_CHECKING

from winnow.tasks.errors import SpecError

if TYPE_CHECKING:
    from winnow.flows.simulate.report import Subject

BUDGETS = {
    "tables of scores": "0.05,0.1,0.2,0.4",
    "duels": "500,1000,2000,5000,10000",
    "routes": "0.1,0.2,0.4,0.6,0.8,1.0",
}
"""Default budgets, by kind of table (`Traits.simulated`)."""


def default_budgets(simulated: str, delta: float | None) -> str:
    """Default budgets as text; for scores with a delta up to all pairs, so that runs can stop early."""
    return BUDGETS[simulated] + (",1.0" if simulated == "tables of scores" and delta is not None else "")


def read_budgets(text: str, subject: "Subject") -> list[int]:
    """Parse budgets, and return them as increasing counts of comparisons.

    A number with a decimal point is a share of all pairs; other numbers are counts.

    Raises:
        SpecError: If a budget is not a number, or is not between 1 and the size of the table.
    """
    grid = subject.grid
    found = set()
    parts = [part.strip() for part in text.split(",")]
    if "1" in parts and grid and any("." in part for part in parts):
        raise SpecError(
            f"--budgets: 1 is one of {grid} {subject.unit}, but the others are shares; write 1.0 for all, or "
            "give only counts"
        )
    for part in parts:
        try:
            count = round(float(part) * grid) if "." in part and grid else int(part)
        except ValueError:
            example = "0.05,0.1 or 500,1000" if grid else "500,1000: duels have no shares"
            raise SpecError(f"--budgets: {part!r} is not a number; for example {example}") from None
        if not 1 <= count <= (grid or count):
            raise SpecError(f"--budgets: {part} is {count} {subject.unit}; give 1 to {grid}")
        found.add(count)
    return sorted(found)
