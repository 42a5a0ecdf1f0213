"""Parts of a campaign's file as classes for programs: `winnow.Model` and all others.

Each is a part of `tasks.spec`; mistakes are `SpecError`s with the same messages as for a file.
"""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import BaseModel, ValidationError

from winnow.storage.json_types import JsonObject
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.written_files import as_in_a_file
from winnow.tasks.setup.yaml_file import KeyPath, SpecFile, mistakes_of
from winnow.tasks.spec.campaign import (
    ChoicesSpec,
    GuardrailSpec,
    JudgeSpec,
    MetricSpec,
    SelectorSpec,
    StoppingSpec,
)
from winnow.tasks.spec.campaign import (
    Exclusion as ExclusionSpec,
)
from winnow.tasks.spec.sections.budget import BudgetSpec, PriceSpec
from winnow.tasks.spec.sections.dataset import DatasetSpec, FieldNames, SampleSpec, SolvedSpec, TaskSpec
from winnow.tasks.spec.sections.execution import ExecutionSpec, WebhookSpec
from winnow.tasks.spec.sections.execution import MaxAge as MaxAgeSpec
from winnow.tasks.spec.sections.generate_config import (
    GenerateConfig as GenerateConfigSpec,
)
from winnow.tasks.spec.sections.generate_config import (
    NamedGenerateConfig,
    SamplesSpec,
)
from winnow.tasks.spec.sections.generate_config import (
    StructuredOutput as StructuredOutputSpec,
)
from winnow.tasks.spec.sections.models import ModelSpec, ReasoningSpec
from winnow.tasks.spec.sections.objectives import (
    AutoevaluatorSpec,
    CertifySpec,
    ConstraintSpec,
    EmbedderSpec,
    GroupsSpec,
)
from winnow.tasks.spec.sections.prompts import FewShotSpec, MessageSpec, PromptSpec


class _Part:
    """Base of parts; raises `SpecError` for an invalid one."""

    _place: ClassVar[KeyPath]
    """Path of such a part in a campaign's file, for messages about its keys."""

    if not TYPE_CHECKING:  # type checkers see the keys of the part

        def __init__(self, **values: object) -> None:
            values = {key: _as_given(each) for key, each in values.items()}
            try:
                super().__init__(**values)
            except ValidationError as error:
                file = SpecFile(Path(type(self).__name__), values)
                raise mistakes_of(error, file, self._place) from None

        def __setattr__(self, name: str, value: object) -> None:
            raise SpecError(f"a {type(self).__name__} cannot be changed; make another one with {name}=...")

        def __repr_args__(self) -> list[tuple[str, object]]:
            return [(key, each) for key, each in super().__repr_args__() if key in self.model_fields_set]


def _as_given(value: object) -> object:
    """A value in the form of a campaign's file; parts of this module are returned unchanged."""
    if isinstance(value, BaseModel):
        return value
    if isinstance(value, list | tuple):
        return [_as_given(each) for each in value]
    return as_in_a_file(value)


class Model(_Part, ModelSpec):
    """A checkpoint or a served model, and the engine that runs it."""

    _place = ("models", 0)


class Reasoning(_Part, ReasoningSpec):
    """How to separate a model's reasoning from its answer."""

    _place = ("models", 0, "reasoning")


class GenerateConfig(_Part, GenerateConfigSpec):
    """Sampling settings of a model."""

    _place = ("models", 0, "generate_config")


class Sampling(_Part, NamedGenerateConfig):
    """Named sampling settings, one of `generate_configs`: candidates are crossed with them."""

    _place = ("generate_configs", 0)


class StructuredOutput(_Part, StructuredOutputSpec):
    """The form of an output: a pattern, one of several texts, a JSON schema or a grammar."""

    _place = ("models", 0, "generate_config", "structured_output")


class Prompt(_Part, PromptSpec):
    """A prompt: a jinja2 template over the fields of an example, or the messages of a chat."""

    _place = ("prompts", 0)


class Message(_Part, MessageSpec):
    """One message of a chat."""

    _place = ("prompts", 0, "messages", 0)


class SolvedExamples(_Part, SolvedSpec):
    """Source of the solved examples in a prompt."""

    _place = ("prompts", 0, "few_shot", "from")


class FewShot(_Part, FewShotSpec):
    """Solved examples shown before the question; `source` is the key `from` of a file."""

    _place = ("prompts", 0, "few_shot")

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            n: int,
            source: SolvedSpec | str | list[str] | None = None,
            seed: int = 0,
            fewshot_as_multiturn: bool = False,
            question: str | None = None,
            answer: str = "{{ target }}",
            target_delimiter: str = " ",
            delimiter: str = "\n\n",
        ) -> None: ...

    else:

        def __init__(self, **values: object) -> None:
            super().__init__(**{{"source": "from"}.get(key, key): each for key, each in values.items()})


class Guardrail(_Part, GuardrailSpec):
    """Text put around every prompt: a jinja2 template of `prompt`."""

    _place = ("guardrails", 0)


class Exclusion(_Part, ExclusionSpec):
    """Candidates to exclude: those that match all given names."""

    _place = ("exclude", 0)


class Dataset(_Part, DatasetSpec):
    """Source and selection of the examples."""

    _place = ("dataset",)


class Fields(_Part, FieldNames):
    """The dataset's columns that hold the input, the target and the id."""

    _place = ("dataset", "fields")


class RandomSample(_Part, SampleSpec):
    """Random sample of a dataset's rows."""

    _place = ("dataset", "sample")


class Task(_Part, TaskSpec):
    """A benchmark of lm-eval or Inspect that sets dataset, prompts and judge."""

    _place = ("task",)


class Choices(_Part, ChoicesSpec):
    """The texts between which a model chooses."""

    _place = ("choices",)


class Samples(_Part, SamplesSpec):
    """Several outputs per example, and how their scores are reduced to one."""

    _place = ("samples",)


class Judge(_Part, JudgeSpec):
    """A judge by name, with its parameters as keywords: `Judge("choice", options=["yes", "no"])`."""

    _place = ("judge",)

    if TYPE_CHECKING:

        def __init__(self, type: str, **params: object) -> None: ...

    else:

        def __init__(self, type: str, **params: object) -> None:
            super().__init__(type=type, **params)


class Metric(_Part, MetricSpec):
    """A further judge, whose mean is reported next to the score."""

    _place = ("metrics", 0)


class Constraint(_Part, ConstraintSpec):
    """A bound on a candidate's mean of a metric."""

    _place = ("constraints", 0)


class Groups(_Part, GroupsSpec):
    """Groups of examples, and how their means are combined to one value per candidate."""

    _place = ("groups",)


class Autoevaluator(_Part, AutoevaluatorSpec):
    """A model that answers every example instead of a human."""

    _place = ("certify", "autoevaluator")


class Certify(_Part, CertifySpec):
    """The allowed risk of a certified candidate, and the costs of candidates."""

    _place = ("certify",)


class Embedder(_Part, EmbedderSpec):
    """Computes the vectors of prompts that a router uses."""

    _place = ("embedder",)


class Selector(_Part, SelectorSpec):
    """An algorithm by name, with its parameters: `Selector("champion", params={"top_m": 2})`."""

    _place = ("selector",)

    if TYPE_CHECKING:

        def __init__(self, name: str, *, params: JsonObject = ...) -> None: ...

    else:

        def __init__(self, name: str, **given: object) -> None:
            super().__init__(name=name, **given)


class Stopping(_Part, StoppingSpec):
    """When a campaign ends: error probability, tolerance and budget."""

    _place = ("stopping",)


class Budget(_Part, BudgetSpec):
    """Limits on comparisons, tokens, device time, price or human labels; the first one spent ends it."""

    _place = ("stopping", "budget")


class Execution(_Part, ExecutionSpec):
    """How a campaign runs; none of these settings changes a score."""

    _place = ("execution",)


class Price(_Part, PriceSpec):
    """Price of a million tokens of a model."""

    _place = ("execution", "prices", "model")


class Webhook(_Part, WebhookSpec):
    """An address that receives the outcome of a run."""

    _place = ("execution", "notify", 0)


class MaxAge(_Part, MaxAgeSpec):
    """Maximum age of reused outputs."""

    _place = ("reuse",)
