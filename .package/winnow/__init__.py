"""Winnow finds the best of many language-model candidates with as few generations as possible.

What a program or a notebook uses of it is imported from here, and loaded when it is first used:

* `run`: a campaign, from its file or a mapping, to its end.
* `select`: the best of many by any Python function as the scorer, with a database or without.
* `judge`, `pair_judge`, `selector`, `engine`, `embedder`: decorators that name a program's own, for its campaigns.
* `open`: a results database, its campaigns and answers, as pandas frames.
* `Router`: what a campaign that routes has learned, served without a database or an engine.
* `create_selector`, `selector_names`: the algorithms, to be asked and told by a loop of one's own.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from winnow.algorithms.registry import create_selector, selector_names
    from winnow.flows.api.decorators import embedder, engine, judge, pair_judge, selector
    from winnow.flows.api.results import Results as open  # noqa: A004 -- as one writes winnow.open
    from winnow.flows.api.run import run
    from winnow.flows.api.select import select
    from winnow.tasks.objectives.route.router import Router

    __version__: str

__all__ = [
    "Router",
    "__version__",
    "create_selector",
    "embedder",
    "engine",
    "judge",
    "open",
    "pair_judge",
    "run",
    "select",
    "selector",
    "selector_names",
]

_HOMES = {
    "Router": "winnow.tasks.objectives.route.router:Router",
    "create_selector": "winnow.algorithms.registry:create_selector",
    "embedder": "winnow.flows.api.decorators:embedder",
    "engine": "winnow.flows.api.decorators:engine",
    "judge": "winnow.flows.api.decorators:judge",
    "pair_judge": "winnow.flows.api.decorators:pair_judge",
    "open": "winnow.flows.api.results:Results",
    "run": "winnow.flows.api.run:run",
    "select": "winnow.flows.api.select:select",
    "selector": "winnow.flows.api.decorators:selector",
    "selector_names": "winnow.algorithms.registry:selector_names",
}


if not TYPE_CHECKING:  # or a name that is not there would pass for one

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version("winnow-llm")
        if name not in _HOMES:
            raise AttributeError(f"module 'winnow' has no attribute {name!r}")
        module, _, attribute = _HOMES[name].partition(":")
        return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
