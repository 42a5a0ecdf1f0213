"""The sentences that may be said of an answer that people judged."""

from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.phrases import Line
from winnow.tasks.campaign.budget import amount


def people_lines(answer: Answer) -> list[Line]:
    """Whose judgments everything is claimed of, and how many are wanted; nothing where no person judges."""
    people = answer.people
    if people is None:
        return []
    lines = []
    if people.annotators:
        whose = "one person" if people.annotators == 1 else f"{people.annotators} people"
        what = "every preference is" if answer.objective == "best-duel" else "every score is"
        alike = "the same from the first to the last, whoever of them was asked"
        lines.append(
            (
                "judge",
                f"{what} that of the people who labelled ({whose}); what is claimed is claimed of their "
                f"judgments, and takes these to be {alike}",
            )
        )
    if people.wanted:
        wanted = f"{amount(people.wanted)} judgment{'s' * (people.wanted != 1)}"
        lines.append(("waiting", f"for {wanted} of people"))
    return lines
