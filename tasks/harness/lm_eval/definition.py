"""Definition of a task from its file; refuses features that Winnow does not support."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from winnow.storage.json_types import JsonView
from winnow.tasks.data.hub import FORMATS, HubSource
from winnow.tasks.errors import SpecError
from winnow.tasks.harness.lm_eval.files import KEY, Function, TaskFile, read_task

_OF_THE_HUB = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+)/[^@]+")
"""URL of a file in a dataset of the hub."""

OUTPUT_TYPES = ("generate_until", "multiple_choice", "loglikelihood", "loglikelihood_rolling")

_READ = """
    task dataset_path dataset_name dataset_kwargs training_split validation_split test_split fewshot_split
    process_docs doc_to_text doc_to_target doc_to_choice process_results description target_delimiter
    fewshot_delimiter fewshot_config num_fewshot metric_list output_type generation_kwargs repeats filter_list
    gen_prefix unsafe_code custom_dataset
"""
_WITHOUT_EFFECT = """
    task_alias tag metadata should_decontaminate doc_to_decontamination_query group group_alias
"""
_REFUSED = {
    "class": "is a Python class (class)",
    "doc_to_audio": "shows models sounds (doc_to_audio)",
    "doc_to_image": "shows models pictures (doc_to_image)",
    "use_prompt": "takes its prompt from promptsource (use_prompt)",
}
READ = frozenset(_READ.split())
WITHOUT_EFFECT = frozenset(_WITHOUT_EFFECT.split())
"""Keys that affect neither the prompt nor the scoring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fewshot:
    """Form of solved examples, which may differ from that of the question."""

    split: str | None
    process_docs: Function | None
    samples: list[JsonView] | Function | None
    sampler: str
    doc_to_text: object
    doc_to_target: object
    doc_to_choice: object
    gen_prefix: str | None
    target_delimiter: str
    fewshot_delimiter: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """Documents and prompts of a task, without its scoring."""

    name: str
    file: Path
    read: tuple[Path, ...]
    """The task's file and the included files."""
    config: JsonView
    output_type: str
    source: HubSource
    """Source of the documents; `path` is a name on the hub, a folder, or one of `FORMATS`."""
    fewshot: Fewshot
    num_fewshot: int | None
    description: object
    target_delimiter: str
    fewshot_delimiter: str

    @property
    def eval_split(self) -> str:
        """Name of the split that is evaluated."""
        found = self.config.get("test_split") or self.config.get("validation_split")
        if found is None:
            self.refuse("names neither a test_split nor a validation_split")
        return str(found)

    @property
    def functions(self) -> list[str]:
        """Python functions that create prompts, each once, as FILE:NAME."""
        keys = (
            *("custom_dataset", "process_docs", "doc_to_text", "doc_to_target", "doc_to_choice"),
            *("description", "gen_prefix"),
        )
        values = [
            *(self.config.get(key) for key in keys),
            *(self.config.get("fewshot_config") or {}).values(),
        ]
        return list(dict.fromkeys(str(each) for each in values if isinstance(each, Function)))

    @property
    def has_metric_functions(self) -> bool:
        """Whether a metric is a function of the task, which receives the target unchanged."""
        listed = self.config.get("metric_list") or ()
        return any(isinstance(each.get("metric"), Function) for each in listed)

    @property
    def local_data(self) -> list[str]:
        """Local files, patterns and folders with the task's documents, including relative ones.

        A `dataset_path` counts as well; it is a local folder or a name on the hub.
        """
        source = self.source
        files = list(_texts(source.data_files))
        folders = [] if source.path in FORMATS else [source.path]
        if source.data_dir is not None:
            folders.append(os.path.join(*folders, os.path.expanduser(source.data_dir)))
        return [*folders, *(os.path.join(*folders[-1:], each) for each in files)]

    def refuse(self, feature: str, remedy: str = "choose another task") -> NoReturn:
        """Raise `SpecError` for an unsupported feature, with what to do."""
        raise SpecError(f"the task {self.name} {feature}; {remedy}", KEY)


def load_definition(task: str, include_path: str | None) -> Definition:
    """Read and check the definition of a task; see `read_task`.

    Raises:
        SpecError: If the task does not exist, or needs a feature that Winnow does not support.
    """
    file = read_task(task, include_path)
    config = dict(file.config)
    for refused in _refusals(file):
        raise SpecError(f"the task {config['task']} {refused}; choose another task", KEY)
    delimiter = str(config.get("target_delimiter", " "))
    between = str(config.get("fewshot_delimiter", "\n\n"))
    return Definition(
        name=config["task"],
        file=file.path,
        read=file.read,
        config=config,
        output_type=config.get("output_type", "generate_until"),
        source=_source(file),
        fewshot=_fewshot(config, delimiter, between),
        num_fewshot=config.get("num_fewshot"),
        description=config.get("description") or "",
        target_delimiter=delimiter,
        fewshot_delimiter=between,
    )


def _refusals(file: TaskFile) -> Iterator[str]:
    config = file.config
    for key in config:
        if key in _REFUSED and config[key]:
            yield _REFUSED[key]
        elif key not in READ | WITHOUT_EFFECT | set(_REFUSED):
            yield f"has the key {key!r}, which lm-eval 0.4.13 does not have"
    output_type = config.get("output_type", "generate_until")
    if output_type not in OUTPUT_TYPES:
        yield f"has the output_type {output_type!r}"
    if type(config.get("repeats", 1)) is not int:
        yield f"has the repeats {config['repeats']!r}"
    if not isinstance(config.get("fewshot_config") or {}, dict):
        yield "has a fewshot_config that is not a mapping"
    fewshot = config.get("fewshot_config") or {}
    if fewshot.get("sampler", "default") not in ("default", "first_n"):
        yield f"draws solved examples by {fewshot['sampler']} (fewshot_config.sampler)"
    for key in fewshot:
        if key not in {*Fewshot.__slots__}:
            yield f"has fewshot_config.{key}"


def _fewshot(config: JsonView, delimiter: str, between: str) -> Fewshot:
    own = config.get("fewshot_config") or {}
    inherited = {
        "split": config.get("fewshot_split"),
        "samples": None,
        "sampler": "default",
        "target_delimiter": delimiter,
        "fewshot_delimiter": between,
        **{key: config.get(key) for key in ("process_docs", "doc_to_text", "doc_to_target", "doc_to_choice")},
        "gen_prefix": config.get("gen_prefix"),
    }
    return Fewshot(**{**inherited, **own})


def _source(file: TaskFile) -> HubSource:
    """Source of the documents; remote files are refused, except those of one hub dataset."""
    config = file.config
    path, kwargs = config.get("dataset_path"), dict(config.get("dataset_kwargs") or {})
    kwargs.pop("trust_remote_code", None)  # as in lm-eval, such code never runs
    name = config["task"]
    if isinstance(config.get("custom_dataset"), Function):
        return HubSource(path=FORMATS[0])  # without files, because the function creates the documents
    if not isinstance(path, str):
        raise SpecError(f"the task {name} names no dataset_path; choose another task", KEY)
    if others := sorted(kwargs.keys() - {"data_files", "data_dir", "revision", "verification_mode"}):
        raise SpecError(f"the task {name} has dataset_kwargs.{others[0]}; choose another task", KEY)
    files = kwargs.get("data_files")
    if path in FORMATS and (found := _of_one_dataset(files)) is not None:
        path, files = found
    if remote := [each for each in _texts(files) if urlsplit(each).scheme or "::" in each]:
        raise SpecError(
            f"the task {name} reads its data from {remote[0]}; download it and name the local file", KEY
        )
    return HubSource(
        path=path,
        name=config.get("dataset_name"),
        commit=kwargs.get("revision"),
        data_files=files,
        data_dir=kwargs.get("data_dir"),
    )


def _of_one_dataset(files: object) -> tuple[str, object] | None:
    """Hub dataset and files that URLs name; None unless all URLs belong to one such dataset."""
    named = [_OF_THE_HUB.fullmatch(each) for each in _texts(files)]
    datasets = {each[1] if each else None for each in named}
    if len(datasets) != 1 or (dataset := datasets.pop()) is None:
        return None
    inside = len(f"hf://datasets/{dataset}/")
    if isinstance(files, Mapping):
        return dataset, {key: [each[inside:] for each in _texts(value)] for key, value in files.items()}
    return dataset, [each[inside:] for each in _texts(files)]


def _texts(files: object) -> Iterator[str]:
    if isinstance(files, str):
        yield files
    elif isinstance(files, Mapping | list):
        for each in files.values() if isinstance(files, Mapping) else files:
            yield from _texts(each)
