"""Process in which a task's functions run; it receives the task and sends its rows."""

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from winnow.algorithms.state.plugin_registry import in_words
from winnow.tasks.data.dataset_files import PlacedRow
from winnow.tasks.errors import DatasetError, SpecError
from winnow.tasks.harness.lm_eval.files import Function
from winnow.tasks.harness.lm_eval.reading import rows_with
from winnow.tasks.harness.lm_eval.rows import Resolve
from winnow.tasks.harness.lm_eval.seeds import set_seeds
from winnow.tasks.plugins.source_code import FromSource
from winnow.tasks.processes.worker_side import ParentLink, run_worker
from winnow.tasks.spec.sections.dataset import LmEvalSpec
from winnow.tasks.text.canonical_json import sha256


def importing(allowed: Iterable[str]) -> Resolve:
    """Create a function that imports allowed functions and refuses all others."""
    known = frozenset(allowed)

    def resolve(function: Function) -> Callable[..., object]:
        if str(function) not in known:
            raise DatasetError(
                f"the task runs {function}, which dataset.lm_eval.functions does not name; write task: "
                "instead of dataset.lm_eval",
                "dataset.lm_eval.functions",
            )
        found: object = getattr(_module(function.file), function.name)
        if not callable(found):
            raise TypeError(f"{function} is not a function")
        return found

    return resolve


def _module(file: str) -> ModuleType:
    if not file.endswith(".py"):
        return importlib.import_module(file)
    name = f"winnow_task_{Path(file).stem}_{sha256(file)[:16]}"
    if name not in sys.modules:
        spec = spec_from_file_location(name, file, loader=FromSource(name, file))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


AT_ONCE = 256
"""Maximum number of rows per message."""


def main(parent: ParentLink) -> None:
    """Send all rows, then an empty list; or the reason why the rows cannot be read."""
    message = parent.receive()
    spec = LmEvalSpec.model_validate(message["task"])
    import datasets  # from an extra, which the functions need as well

    datasets.disable_caching()  # cached results of functions may have been drawn with other seeds
    set_seeds(each.rpartition(":")[0] for each in spec.functions)
    try:
        for rows in _groups(rows_with(spec, importing(spec.functions), asks_hub=message["asks_hub"])):
            parent.send({"rows": rows})
        parent.send({"rows": []})
    except SpecError as error:
        parent.send({"failed": error.message})
    except Exception as error:  # the task's own code can raise anything
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
