"""The budgets at which simulated runs are evaluated."""

from typing import TYPE_CHECKING

from winnow.tasks.errors import SpecError

if TYPE_CHECKING:
    from winnow.flows.simulate.report import Subject

BUDGETS = {
    "tables of scores": "0.05,0.1,0.2,0.4",
    "duels": "500,1000,2000,5000,10000",
    "routes": "0.1,0.2,0.4,0.6,0.8,1.0",
}
"""Default budgets, by `Traits.simulated`."""


def default_budgets(simulated: str, delta: float | None) -> str:
    """The budgets to evaluate; with a delta up to all pairs, so that runs stop before they are cut off."""
    return BUDGETS[simulated] + (",1.0" if simulated == "tables of scores" and delta is not None else "")


def read_budgets(text: str, subject: "Subject") -> list[int]:
    """Increasing counts of comparisons; a number with a point is a share of all pairs, otherwise a count."""
    grid = subject.grid
    found = set()
    parts = [part.strip() for part in text.split(",")]
    if "1" in parts and grid and any("." in part for part in parts):
        raise SpecError(
            f"--budgets: 1 means a single one of {grid} {subject.unit}, among shares; write 1.0 for all of "
            "them, or give counts only"
        )
    for part in parts:
        try:
            count = round(float(part) * grid) if "." in part and grid else int(part)
        except ValueError:
            example = "0.05,0.1 or 500,1000" if grid else "500,1000: duels have no shares"
            raise SpecError(f"--budgets: {part!r} is not a number; for example {example}") from None
        if not 1 <= count <= (grid or count):
            raise SpecError(f"--budgets: {part} is {count} {subject.unit}, the table has 1 to {grid}")
        found.add(count)
    return sorted(found)
