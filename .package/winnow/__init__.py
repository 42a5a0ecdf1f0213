"""Winnow finds the best of many language-model candidates with as few generations as possible.

Programs and notebooks import these names from here; each is loaded when it is first used:

* `Spec`, with `Model`, `Prompt`, `Dataset` and the other parts: a campaign's definition as typed classes.
* `run`: run a campaign to its end, from its definition or its file.
* `select`: find the best candidate with a Python function as scorer, with or without a database.
* `propose`: run a campaign, and add prompts that are written after seeing its results.
* `compare`, `plan`, `gate`, `simulate`, `rescore`, `label`: the commands of these names, as functions.
* `open`: open a results database; its campaigns and answers are pandas frames.
* `judge`, `pair_judge`, `selector`, `engine`, `embedder`: decorators that register a program's own plug-ins.
* `Router`: load and use the policy that a route campaign learned, without a database or an engine.
* `create_selector`, `selector_names`: the algorithms, for loops that call `ask` and `tell` themselves.
* `WinnowError`, `SpecError`, `StorageError`, `AlgorithmError`: errors that a program can act on.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from winnow.algorithms.errors import AlgorithmError
    from winnow.algorithms.registry import create_selector, selector_names
    from winnow.flows.api.compare import compare
    from winnow.flows.api.decorators import embedder, engine, judge, pair_judge, selector
    from winnow.flows.api.gates import gate
    from winnow.flows.api.labels import label
    from winnow.flows.api.plans import plan
    from winnow.flows.api.propose import propose
    from winnow.flows.api.rescoring import rescore
    from winnow.flows.api.results import Campaign
    from winnow.flows.api.results import Results as open  # noqa: A004 -- as one writes winnow.open
    from winnow.flows.api.run import run
    from winnow.flows.api.select import select
    from winnow.flows.api.simulations import simulate
    from winnow.flows.api.spec import Spec
    from winnow.storage.errors import StorageError
    from winnow.tasks.errors import SpecError, WinnowError
    from winnow.tasks.objectives.route.router import Router
    from winnow.tasks.setup.typed_parts import (
        Autoevaluator,
        Budget,
        Certify,
        Choices,
        Constraint,
        Dataset,
        Embedder,
        Exclusion,
        Execution,
        FewShot,
        Fields,
        GenerateConfig,
        Groups,
        Guardrail,
        Judge,
        MaxAge,
        Message,
        Metric,
        Model,
        Price,
        Prompt,
        RandomSample,
        Reasoning,
        Samples,
        Sampling,
        Selector,
        SolvedExamples,
        Stopping,
        StructuredOutput,
        Task,
        Webhook,
    )

    __version__: str

__all__ = [
    "AlgorithmError",
    "Autoevaluator",
    "Budget",
    "Campaign",
    "Certify",
    "Choices",
    "Constraint",
    "Dataset",
    "Embedder",
    "Exclusion",
    "Execution",
    "FewShot",
    "Fields",
    "GenerateConfig",
    "Groups",
    "Guardrail",
    "Judge",
    "MaxAge",
    "Message",
    "Metric",
    "Model",
    "Price",
    "Prompt",
    "RandomSample",
    "Reasoning",
    "Router",
    "Samples",
    "Sampling",
    "Selector",
    "SolvedExamples",
    "Spec",
    "SpecError",
    "Stopping",
    "StorageError",
    "StructuredOutput",
    "Task",
    "Webhook",
    "WinnowError",
    "__version__",
    "compare",
    "create_selector",
    "embedder",
    "engine",
    "gate",
    "judge",
    "label",
    "open",
    "pair_judge",
    "plan",
    "propose",
    "rescore",
    "run",
    "select",
    "selector",
    "selector_names",
    "simulate",
]

_HOMES = {
    "AlgorithmError": "winnow.algorithms.errors:AlgorithmError",
    "Campaign": "winnow.flows.api.results:Campaign",
    "Router": "winnow.tasks.objectives.route.router:Router",
    "Spec": "winnow.flows.api.spec:Spec",
    "SpecError": "winnow.tasks.errors:SpecError",
    "StorageError": "winnow.storage.errors:StorageError",
    "WinnowError": "winnow.tasks.errors:WinnowError",
    "compare": "winnow.flows.api.compare:compare",
    "create_selector": "winnow.algorithms.registry:create_selector",
    "embedder": "winnow.flows.api.decorators:embedder",
    "engine": "winnow.flows.api.decorators:engine",
    "judge": "winnow.flows.api.decorators:judge",
    "open": "winnow.flows.api.results:Results",
    "pair_judge": "winnow.flows.api.decorators:pair_judge",
    "run": "winnow.flows.api.run:run",
    "select": "winnow.flows.api.select:select",
    "selector": "winnow.flows.api.decorators:selector",
    "selector_names": "winnow.algorithms.registry:selector_names",
    "gate": "winnow.flows.api.gates:gate",
    "label": "winnow.flows.api.labels:label",
    "plan": "winnow.flows.api.plans:plan",
    "propose": "winnow.flows.api.propose:propose",
    "rescore": "winnow.flows.api.rescoring:rescore",
    "simulate": "winnow.flows.api.simulations:simulate",
}
_HOMES |= {
    name: f"winnow.tasks.setup.typed_parts:{name}"
    for name in __all__
    if name not in _HOMES and name != "__version__"
}

if not TYPE_CHECKING:  # else type checkers would accept any name

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
