"""Importing the functions of a task: foreign code, which only the process of `child` runs."""

import importlib
import sys
from collections.abc import Callable, Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from winnow.tasks.data.lm_eval.documents import Resolve
from winnow.tasks.data.lm_eval.files import Function
from winnow.tasks.errors import DatasetError


def importing(allowed: Iterable[str]) -> Resolve:
    """What imports those functions that were allowed, and refuses all others."""
    known = frozenset(allowed)

    def resolve(function: Function) -> Callable[..., object]:
        if str(function) not in known:
            raise DatasetError(
                f"the task runs {function}, which dataset.lm_eval.functions does not name; write task: "
                "in the place of dataset.lm_eval",
                "dataset.lm_eval.functions",
            )
        found: object = getattr(_module(function.file), function.name)
        if not callable(found):
            raise TypeError(f"{function} is no function")
        return found

    return resolve


def _module(file: str) -> ModuleType:
    if not file.endswith(".py"):
        return importlib.import_module(file)
    name = f"winnow_task_{Path(file).stem}_{abs(hash(file)):x}"
    if name not in sys.modules:
        spec = spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
