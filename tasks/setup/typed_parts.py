"""Parts of a campaign's file as classes for programs, such as `winnow.Model`.

Each class is a part of `tasks.spec`. Mistakes raise `SpecError` with the same messages as for a file.
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
    """Base class of the parts; an invalid part raises `SpecError`."""

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
    """Convert a value to the form of a campaign's file; parts stay unchanged."""
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
    """Named sampling settings, one of `generate_configs`.

    Candidates are crossed with them.
    """

    _place = ("generate_configs", 0)


class StructuredOutput(_Part, StructuredOutputSpec):
    """Required form of an output: a pattern, choices, a JSON schema or a grammar."""

    _place = ("models", 0, "generate_config", "structured_output")


class Prompt(_Part, PromptSpec):
    """A prompt: a jinja2 template over the fields of an example, or chat messages."""

    _place = ("prompts", 0)


class Message(_Part, MessageSpec):
    """A chat message."""

    _place = ("prompts", 0, "messages", 0)


class SolvedExamples(_Part, SolvedSpec):
    """Source of a prompt's solved examples."""

    _place = ("prompts", 0, "few_shot", "from")


class FewShot(_Part, FewShotSpec):
    """Solved examples to show before the question; `source` is the file's key `from`."""

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
    """Text around every prompt: a jinja2 template with the variable `prompt`."""

    _place = ("guardrails", 0)


class Exclusion(_Part, ExclusionSpec):
    """Candidates to exclude: all that match every given name."""

    _place = ("exclude", 0)


class Dataset(_Part, DatasetSpec):
    """Source and selection of the examples."""

    _place = ("dataset",)


class Fields(_Part, FieldNames):
    """Columns of the dataset with the input, the target and the id."""

    _place = ("dataset", "fields")


class RandomSample(_Part, SampleSpec):
    """Random sample of a dataset's rows."""

    _place = ("dataset", "sample")


class Task(_Part, TaskSpec):
    """A benchmark of lm-eval or Inspect that sets dataset, prompts and judge."""

    _place = ("task",)


class Choices(_Part, ChoicesSpec):
    """Answer choices of a multiple-choice prompt."""

    _place = ("choices",)


class Samples(_Part, SamplesSpec):
    """Several outputs per example, and how their scores are reduced to one."""

    _place = ("samples",)


class Judge(_Part, JudgeSpec):
    """A judge by name, with its parameters: `Judge("choice", options=["yes", "no"])`."""

    _place = ("judge",)

    if TYPE_CHECKING:

        def __init__(self, type: str, **params: object) -> None: ...

    else:

        def __init__(self, type: str, **params: object) -> None:
            super().__init__(type=type, **params)


class Metric(_Part, MetricSpec):
    """A further judge, whose mean is reported in addition to the score."""

    _place = ("metrics", 0)


class Constraint(_Part, ConstraintSpec):
    """A bound on a candidate's mean of a metric."""

    _place = ("constraints", 0)


class Groups(_Part, GroupsSpec):
    """Groups of examples, and how a candidate's group means are combined."""

    _place = ("groups",)


class Autoevaluator(_Part, AutoevaluatorSpec):
    """A model that, instead of a human, answers every example."""

    _place = ("certify", "autoevaluator")


class Certify(_Part, CertifySpec):
    """The allowed risk of a certified candidate, and the costs of candidates."""

    _place = ("certify",)


class Embedder(_Part, EmbedderSpec):
    """Computes the vectors of prompts that a router uses."""

    _place = ("embedder",)


class Selector(_Part, SelectorSpec):
    """A selector with its parameters: `Selector("champion", params={"top_m": 2})`."""

    _place = ("selector",)

    if TYPE_CHECKING:

        def __init__(self, name: str, *, params: JsonObject = ...) -> None: ...

    else:

        def __init__(self, name: str, **given: object) -> None:
            super().__init__(name=name, **given)


class Stopping(_Part, StoppingSpec):
    """Conditions that end a campaign: error probability, tolerance and budget."""

    _place = ("stopping",)


class Budget(_Part, BudgetSpec):
    """Limits on comparisons, tokens, device time, price or human labels.

    The first limit that is reached ends the campaign.
    """

    _place = ("stopping", "budget")


class Execution(_Part, ExecutionSpec):
    """How a campaign runs; no score depends on these settings."""

    _place = ("execution",)


class Price(_Part, PriceSpec):
    """Price per million tokens of a model."""

    _place = ("execution", "prices", "model")


class Webhook(_Part, WebhookSpec):
    """A webhook that receives the outcome of a run."""

    _place = ("execution", "notify", 0)


class MaxAge(_Part, MaxAgeSpec):
    """Maximum age of reused outputs."""

    _place = ("reuse",)
