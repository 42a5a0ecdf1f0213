"""The process in which the functions of a task run: one message says which task, the others are its rows."""

from collections.abc import Iterator

from winnow.algorithms.state.strangers import in_words
from winnow.tasks.data.dataset_files import PlacedRow
from winnow.tasks.data.lm_eval.functions import importing
from winnow.tasks.data.lm_eval.reading import rows_with
from winnow.tasks.engines.subprocess.worker_side import ParentLink, run_worker
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.sections.dataset import LmEvalSpec

AT_ONCE = 256
"""Rows of a message."""


def main(parent: ParentLink) -> None:
    """Send all rows, then an empty list of them; or why there are none."""
    message = parent.receive()
    spec = LmEvalSpec.model_validate(message["task"])
    try:
        for rows in _groups(rows_with(spec, importing(spec.functions), asks_hub=message["asks_hub"])):
            parent.send({"rows": rows})
        parent.send({"rows": []})
    except SpecError as error:
        parent.send({"failed": error.message})
    except Exception as error:  # of the task's own code, whatever it is
        parent.send({"failed": f"the functions of the task {spec.task} raised {in_words(error)}"})


def _groups(rows: Iterator[PlacedRow]) -> Iterator[list[PlacedRow]]:
    group = []
    for row in rows:
        group.append(row)
        if len(group) == AT_ONCE:
            yield group
            group = []
    if group:
        yield group


if __name__ == "__main__":
    run_worker(main)
