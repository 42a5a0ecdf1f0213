"""Source and selection of a campaign's examples, in its file."""

import os
from glob import has_magic
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from winnow.storage.text import in_home
from winnow.tasks.spec.spec_model import FilePath, SpecModel, matching

Commit = Annotated[str, *matching("[0-9a-f]{40}", "must be a commit of 40 hexadecimal digits")] | None

Seed = Annotated[int, Field(ge=0, lt=2**63)]


class FieldNames(SpecModel):
    """Names of the dataset's columns, by role."""

    id: str | None = None
    input: str = "input"
    target: str | None = "target"


class SampleSpec(SpecModel):
    """Rows of the dataset, drawn at random without replacement."""

    n: int = Field(ge=1)
    """Number of rows to draw; all rows if the dataset has fewer."""
    seed: Seed = 0


def _sample(value: object) -> object:
    if isinstance(value, (str, float, bool)):
        raise ValueError("must be a whole number of rows, or {n: ROWS, seed: SEED}")
    return {"n": value} if isinstance(value, int) else value


def _fields_of_images(value: object) -> object:
    """A list of fields; a single text is a list of one."""
    return [value] if isinstance(value, str) else value


def _listed(value: object) -> object:
    """Validate paths with one error message, not one for each type."""
    texts = value if isinstance(value, list) else [value]
    if texts and all(isinstance(each, str) and each for each in texts):
        return in_home(value) if isinstance(value, str) else list(map(in_home, texts))
    raise ValueError("must be a file, a pattern such as shards/*.parquet, or a list of these")


class LmEvalSpec(SpecModel):
    """The documents of an lm-eval task, in the form shown to models."""

    task: FilePath = Field(min_length=1)
    """Name of a task of the installed lm-eval, or path of a task's YAML file or its folder."""
    include_path: FilePath | None = Field(default=None, min_length=1)
    """Folder that is searched first for a task of this name."""
    num_fewshot: int | None = Field(default=None, ge=0, le=1000)
    """Number of solved examples before each document.
    None is the number that the task sets, or 0 if it sets no number.
    """
    fewshot_seed: Seed = 1234
    """Seed for drawing the solved examples, as in lm-eval."""
    chat: Literal["single-turn", "multiturn"] | None = None
    """For chat models: whether solved examples are part of the user's message or turns of the chat. None is a
    text prompt.
    """
    hub: FilePath | None = Field(default=None, min_length=1)
    """Hub dataset of the documents; None if they do not come from a hub.
    Written by Winnow.
    """
    revision: str | None = Field(default=None, min_length=1)
    """Revision of the hub dataset that the task requests; None is the main branch."""
    commit: Commit = None
    """Commit of the hub dataset; written by Winnow."""
    functions: list[str] = []
    """Python functions that create the documents, as FILE.py:FUNCTION; they need --trust."""


class InspectSpec(SpecModel):
    """Samples of an Inspect task, in the form that its solvers give to models."""

    task: FilePath = Field(min_length=1)
    """FILE.py@TASK, FILE.py with one task, or the name of a task of an installed package."""
    args: dict[str, JsonValue] = {}
    """The task's arguments."""
    python: FilePath | None = Field(default=None, min_length=1)
    """Python interpreter with Inspect installed; None is the interpreter that runs Winnow."""

    @property
    def file(self) -> Path | None:
        """The Python file that defines the task; None for a task of an installed package."""
        path, at, name = self.task.rpartition("@")
        found = path if at and "/" not in name else self.task
        return Path(found) if found.endswith(".py") else None

    def interpreter(self, folder: Path) -> str | None:
        """The interpreter to run; None if no interpreter is named.

        A path with a separator is made absolute; the name of a command is unchanged.
        """
        if self.python is None or os.sep not in self.python:
            return self.python
        # Symbolic links are kept, because the interpreter of an environment is one.
        return os.path.abspath(folder / self.python)


_FOR_LM_EVAL = (
    "include_path",
    "num_fewshot",
    "fewshot_seed",
    "fewshot_as_multiturn",
    "metric",
    "filter",
    "range",
)

_FOR_INSPECT = ("args", "scorer", "grader", "python")


class TaskSpec(SpecModel):
    """A benchmark of lm-eval or Inspect that sets dataset, prompts, output type and judge."""

    lm_eval: FilePath | None = Field(default=None, min_length=1)
    """Name of a task of the installed lm-eval, or path of a task's YAML file or its folder."""
    inspect: FilePath | None = Field(default=None, min_length=1)
    """Instead of lm_eval: FILE.py@TASK of Inspect, or the name of an installed package's task; needs
    --trust.
    """
    include_path: FilePath | None = Field(default=None, min_length=1)
    """For lm_eval: folder that is searched first for a task of this name."""
    num_fewshot: int | None = Field(default=None, ge=0, le=1000)
    """For lm_eval: number of solved examples before each document.
    None is the number that the task sets, or 0 if it sets no number.
    """
    fewshot_seed: Seed = 1234
    """For lm_eval: seed for drawing solved examples; the default is that of lm-eval."""
    fewshot_as_multiturn: bool | None = None
    """For lm_eval and chat models: whether solved examples are turns of the chat.
    None is true, as in lm-eval.
    """
    metric: str | None = Field(default=None, min_length=1)
    """For lm_eval: one of the task's metrics; None is the first metric that scores single examples."""
    filter: str | None = Field(default=None, min_length=1)
    """For lm_eval: one of the task's filter pipelines, such as strict-match; None is the first."""
    range: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    """For lm_eval tasks scored by their own functions: the numbers that become scores 0 and 1; None is 0 to
    1.
    """
    args: dict[str, JsonValue] = {}
    """For inspect: arguments of the task."""
    scorer: str | None = Field(default=None, min_length=1)
    """For inspect: one of the task's scorers; None is the first scorer that Winnow has a judge for."""
    grader: dict[str, JsonValue] | None = None
    """For inspect: the model that grades, with the keys of a campaign's models."""
    python: FilePath | None = Field(default=None, min_length=1)
    """For inspect: Python interpreter with Inspect installed; None is the interpreter that runs Winnow."""

    @model_validator(mode="after")
    def _is_one_benchmark(self) -> Self:
        if (self.lm_eval is None) == (self.inspect is None):
            raise ValueError("give exactly one of lm_eval and inspect")
        theirs, other = (_FOR_INSPECT, "inspect") if self.inspect is None else (_FOR_LM_EVAL, "lm_eval")
        for key in theirs:
            if key in self.model_fields_set:
                raise ValueError(f"{key} is only for {other}; remove {key}")
        return self


class SourceSpec(SpecModel):
    """Source of examples: files, or a dataset of a hub."""

    path: Annotated[str | list[str], BeforeValidator(_listed)] | None = None
    """Files, or patterns such as "shards/*.jsonl".
    Formats: .parquet, .jsonl, .json and .csv; the last three also with .gz.
    """
    hub: FilePath | None = Field(default=None, min_length=1)
    """Instead of path: a dataset of the Hugging Face hub, such as openai/gsm8k, or a folder with a dataset in
    the layout of the hub or of `save_to_disk`.
    """
    name: str | None = Field(default=None, min_length=1)
    """For hub: one of the dataset's configurations."""
    split: str | None = Field(default=None, min_length=1)
    """For hub: one of the dataset's splits; None for a dataset with a single split."""
    revision: str | None = Field(default=None, min_length=1)
    """For hub: a commit, branch or tag; None is the main branch."""
    commit: Commit = None
    """For hub: the commit of the revision; written by Winnow."""

    @model_validator(mode="after")
    def _comes_from_one_place(self) -> Self:
        if len(self._places()) != 1:
            raise ValueError(self._which())
        for key in ("name", "split", "revision", "commit"):
            if self.hub is None and getattr(self, key) is not None:
                raise ValueError(f"{key} is only for hub; remove {key}")
        return self

    def _places(self) -> list[str]:
        """The keys with a source of examples that the file sets."""
        return [key for key in ("path", "hub") if getattr(self, key) is not None]

    def _which(self) -> str:
        return "give exactly one of path (files) and hub (a dataset of a hub)"

    @property
    def source(self) -> str:
        """Name of the source, for errors and tables."""
        if self.hub is not None:
            return "/".join(each for each in (self.hub, self.name, self.split) if each is not None)
        return ", ".join(self.path) if isinstance(self.path, list) else str(self.path)


class DatasetSpec(SourceSpec):
    """Source, selection and order of the examples."""

    lm_eval: LmEvalSpec | None = None
    """Instead of path: the result of `task: {lm_eval: ...}`."""
    inspect: InspectSpec | None = None
    """Instead of path: the result of `task: {inspect: ...}`."""
    fields: FieldNames = FieldNames()
    filter: str | None = Field(default=None, min_length=1)
    """A jinja2 expression over the columns of a row; rows for which it is false are skipped."""
    limit: int | None = Field(default=None, ge=1)
    """Maximum number of rows after the filter."""
    sample: Annotated[SampleSpec | None, BeforeValidator(_sample)] = None
    """Random sample of the rows after filter and limit: a number of rows, or {n: 200, seed: 1}."""
    shuffle: Seed | None = None
    """Seed for the order of examples; None keeps the order of the source."""
    cluster: str | None = Field(default=None, min_length=1)
    """Field of an example that names its document or conversation.

    Examples with the same value are drawn together, so claims about new examples count these clusters instead
    of single examples.
    """
    images: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        BeforeValidator(_fields_of_images, json_schema_input_type=str | list[str]),
    ] = []
    """Fields whose images are shown to models.

    Each contains a path from the data file's folder, an https or data URL, or a list of these.
    """

    @model_validator(mode="after")
    def _shows_images_of_rows(self) -> Self:
        if self.images and (self.lm_eval or self.inspect):
            raise ValueError("images are for path and hub, not for a task; remove images")
        return self

    def _places(self) -> list[str]:
        return [
            *super()._places(),
            *(key for key in ("lm_eval", "inspect") if getattr(self, key) is not None),
        ]

    def _which(self) -> str:
        return f"{super()._which()}, or add the key task to the file"

    @property
    def source(self) -> str:
        """Name of the source, or of the task, for errors and tables."""
        task = self.lm_eval or self.inspect
        return super().source if task is None else f"task {task.task}"

    @property
    def title(self) -> str:
        """A short name: that of the first file without suffixes, or a pattern's folder."""
        if self.path is None:
            return self.source
        first = self.path if isinstance(self.path, str) else self.path[0]
        file = Path(first.removesuffix(".gz"))
        return file.parent.name or file.stem if has_magic(file.name) else file.stem


class SolvedSpec(SourceSpec):
    """Source and selection of solved examples."""

    fields: FieldNames | None = None
    """Names of the columns by role; None for the names in `dataset.fields`."""
    filter: str | None = Field(default=None, min_length=1)
    """A jinja2 expression over the columns of a row; rows for which it is false are skipped."""
    limit: int | None = Field(default=None, ge=1)
    """Maximum number of rows after the filter."""
