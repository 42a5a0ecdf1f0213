"""A user's function in its own process: import, calls, and checks of its results."""

import inspect
import math
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from numbers import Real
from pathlib import Path

from winnow.algorithms.errors import at_bound
from winnow.tasks.judges.protocol import InvalidScore, Sample, Verdict
from winnow.tasks.plugins.source_code import FromSource, import_sources_of


def loaded(
    file: str, function: str, low: float, high: float, digests: Mapping[str, str]
) -> Callable[[Sample], Verdict]:
    """Import the function as a judging function.

    Raises:
        ImportError: If the code no longer matches the digests.
        AttributeError, TypeError: If there is no such function.
    """
    import_sources_of(Path(file).parent, digests)
    name = Path(file).stem
    spec = spec_from_file_location(name, file, loader=FromSource(name, file))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    _require_unchanged(digests)
    call = getattr(module, function)
    if not callable(call):
        raise TypeError(f"{function} is no function")
    _require_one_argument(function, call)
    return lambda sample: _verdict(call(sample), low, high)


def _require_one_argument(function: str, call: Callable[..., object]) -> None:
    """Refuse, before anything is generated, a function that would fail on every output."""
    with suppress(ValueError):  # what tells nothing of its arguments
        arguments = inspect.signature(call)
        try:
            arguments.bind(None)
        except TypeError:
            raise TypeError(f"it is called with one sample, and takes {function}{arguments}") from None


def _verdict(said: object, low: float, high: float) -> Verdict:
    if isinstance(said, Verdict):
        return said
    number = at_bound(float(said), low, high) if isinstance(said, Real) else math.nan
    if not low <= number <= high:
        raise InvalidScore(f"a score is a number from {low:g} to {high:g}, got {repr(said)[:100]}")
    return Verdict(score=(number - low) / (high - low), answer=f"{number:g}")


def _require_unchanged(digests: Mapping[str, str]) -> None:
    for name, digest in digests.items():
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None and sha256(Path(file).read_bytes()).hexdigest() != digest:
            raise ImportError(f"{file} was changed after the campaign started or resumed")
