"""Define a campaign in Python by typed keywords, validated like a campaign's file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Required, Self, TypedDict, Unpack

import yaml

from winnow.tasks.errors import SpecError
from winnow.tasks.setup.written_files import as_in_a_file, campaign_text, written_changes
from winnow.tasks.setup.yaml_file import SpecFile, parse_spec, read_spec_file
from winnow.tasks.spec.campaign import (
    CampaignFile,
    CampaignSpec,
    ChoicesSpec,
    Exclusion,
    GuardrailSpec,
    JudgeSpec,
    MetricSpec,
    OutputType,
    SelectorSpec,
    StoppingSpec,
)
from winnow.tasks.spec.sections.dataset import DatasetSpec, TaskSpec
from winnow.tasks.spec.sections.execution import ExecutionSpec, MaxAge
from winnow.tasks.spec.sections.generate_config import NamedGenerateConfig, SamplesSpec
from winnow.tasks.spec.sections.models import ModelSpec
from winnow.tasks.spec.sections.objectives import CertifySpec, ConstraintSpec, EmbedderSpec, GroupsSpec
from winnow.tasks.spec.sections.prompts import PromptSpec
from winnow.tasks.text.phrases import count_of

IN_PROGRAM = Path("spec")
"""Name of a spec without a file, in error messages."""


class SpecKeys(TypedDict, total=False):
    """Keys of a campaign's file as keywords, with the same short forms."""

    name: Required[str]
    objective: str
    seed: int
    storage: str
    models: Required[Sequence[ModelSpec | Mapping[str, object] | str]]
    prompts: Sequence[PromptSpec | str]
    guardrails: Sequence[GuardrailSpec]
    generate_configs: Sequence[NamedGenerateConfig]
    exclude: Sequence[Exclusion]
    dataset: DatasetSpec | str | Sequence[str]
    output_type: OutputType
    choices: ChoicesSpec | None
    target_delimiter: str | None
    samples: SamplesSpec | int | None
    judge: JudgeSpec | str
    metrics: Sequence[MetricSpec]
    constraints: Sequence[ConstraintSpec]
    certify: CertifySpec | None
    embedder: EmbedderSpec
    prompt_type: str | None
    fresh_generations: bool
    selector: SelectorSpec | str
    history: Sequence[str]
    groups: GroupsSpec | None
    holdout: float | None
    batch_size: int
    lookahead: int | Literal["auto"]
    streaming: bool
    stopping: StoppingSpec
    fail_on_error: float
    reuse: Literal["all", "campaign", "none", "only"] | MaxAge
    tags: Sequence[str]
    execution: ExecutionSpec
    task: TaskSpec | None


class TypedSpec(CampaignSpec):
    """A campaign's definition, from keywords or from a file; see `winnow.Spec`."""

    _file: SpecFile

    def __init__(self, **keys: Unpack[SpecKeys]) -> None:
        file = SpecFile(IN_PROGRAM, as_in_a_file(keys))
        read = parse_spec(file)
        super().__init__(**{key: getattr(read, key) for key in read.model_fields_set})
        self._file = file

    @classmethod
    def from_file(cls, path: str | Path, changes: Mapping[str, object] | None = None) -> Self:
        """Read a definition from a campaign's file.

        Args:
            path: The YAML file.
            changes: New values by dotted key, such as {"stopping.budget": 400}.

        Raises:
            SpecError: The file is invalid; gives the file, the line, the key and the remedy.
        """
        file = read_spec_file(path, written_changes(changes or {}))
        parse_spec(file)  # its errors give line numbers
        spec = cls(**file.values)
        spec._file = file
        return spec

    def replace(self, **keys: Any) -> Self:  # noqa: ANN401 -- of `SpecKeys`
        """Return the definition with new values of some keys, checked again."""
        return type(self)(**{**self._file.values, **keys})

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_"):
            raise SpecError(f"a spec cannot be changed; spec.replace({name}=...) returns a changed one")
        super().__setattr__(name, value)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a changed definition, as `replace` does."""
        return self.replace(**(update or {}))

    @property
    def file(self) -> SpecFile:
        """The equivalent campaign file, with line numbers if it was read from a file."""
        return self._file

    def to_yaml(self) -> str:
        """Text of the equivalent campaign file; short forms stay short."""
        values = self._file.values
        try:
            return campaign_text({key: values[key] for key in CampaignFile.model_fields if key in values})
        except yaml.YAMLError as error:
            raise SpecError(
                f"spec: a file cannot contain {error.args[-1]!r}; give text, numbers or lists"
            ) from error

    def __repr__(self) -> str:
        parts = [count_of(len(self.models), "model"), count_of(len(self.prompts), "prompt")]
        return f"<{type(self).__name__} {self.name!r}: {self.objective}, {' x '.join(parts)}>"

    def __str__(self) -> str:
        return self.to_yaml()
