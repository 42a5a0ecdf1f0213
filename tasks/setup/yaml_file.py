"""Read a campaign's YAML file; every message gives the file, the line and the key."""

import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from winnow.storage.json_types import JsonObject, JsonView
from winnow.storage.objectives import OBJECTIVES, traits_of
from winnow.storage.plain_files import open_plain
from winnow.storage.text import in_home
from winnow.tasks.engines.known_providers import AGENTS
from winnow.tasks.errors import SpecError, SpecMistakes
from winnow.tasks.setup.task_key import with_task
from winnow.tasks.spec.campaign import CampaignFile, CampaignSpec
from winnow.tasks.spec.sections.dataset import TaskSpec
from winnow.tasks.spec.sections.models import OF_MODELS, agent_class
from winnow.tasks.spec.selector_traits import TO_BEGIN_WITH, WITHOUT_AUTOEVALUATOR
from winnow.tasks.spec.spec_model import SAME_NAME, SECRET, keys_of
from winnow.tasks.spec.value_errors import demand, missing_form, remedy, shown
from winnow.tasks.text.printable import one_line

MOST_BYTES = 16 * 2**20
"""Maximum size of a campaign's file, and of its content with all aliases expanded, in bytes."""

MOST_MISTAKES = 50
"""Maximum number of mistakes in one report."""

BYTES_OF_A_VALUE = 64
"""Bytes added for each value, because many short values are as much work as a long one."""

ALIKE = 0.6
"""Minimum similarity of two keys for the suggestion that one is a misspelling of the other."""

ALMOST = 0.8
"""Minimum similarity if the key is valid at another level."""

ELSEWHERE = {
    "stop_seqs": (
        "end_strings", "stop", "stop_sequence", "stop_sequences", "stop_string", "stop_strings", "stop_words",
        "stops", "until",
    ),
    "max_tokens": (
        "max_completion_tokens", "max_gen_toks", "max_gen_tokens", "max_generated_tokens", "max_length",
        "max_new_tokens", "max_output_tokens", "max_tokens_to_sample", "n_predict", "num_predict",
        "num_tokens",
    ),
    "temperature": ("do_sample", "temp"),
    "top_p": ("nucleus", "nucleus_p"),
    "repetition_penalty": ("repeat_penalty",),
    "structured_output": (
        "format", "guided_choice", "guided_decoding", "guided_grammar", "guided_json", "guided_regex",
        "json_schema", "response_format",
    ),
    "samples": (
        "best_of", "epochs", "k", "n", "n_repeats", "n_samples", "num_completions", "num_generations",
        "num_repeats", "num_return_sequences", "num_samples", "num_trials", "repeat", "repeats", "trials",
    ),
    "template": (
        "content", "doc_to_text", "instruction", "prompt", "prompt_template", "text", "user", "user_prompt",
    ),
    "system": ("system_instruction", "system_message", "system_prompt"),
    "few_shot": ("examples", "fewshot", "num_fewshot", "num_few_shot", "shots"),
    "messages": ("chat", "conversation"),
    "prompts": ("prompt", "prompt_template", "prompt_templates"),
    "models": ("engines", "llms", "model_list", "providers", "targets"),
    "dataset": ("data", "datasets", "examples", "test_cases", "testcases", "tests"),
    "generate_configs": (
        "decoding", "generation_config", "generation_kwargs", "generation_params", "gen_kwargs",
        "sampling", "sampling_params",
    ),
    "generate_config": (
        "decoding", "generation_config", "generation_kwargs", "generation_params", "gen_kwargs",
        "sampling", "sampling_params",
    ),
    "fields": ("columns", "features", "mapping"),
    "input": ("prompt", "query", "question"),
    "target": ("answer", "expected", "expected_output", "gold", "ideal", "label", "reference"),
    "path": ("data_files", "file", "files"),
    "hub": ("dataset_path", "hf", "huggingface", "hugging_face"),
    "limit": (
        "max_examples", "max_rows", "max_samples", "n", "n_examples", "n_rows", "num_examples", "num_rows",
    ),
    "model": ("checkpoint", "id", "model_id", "model_name", "model_name_or_path", "model_path", "pretrained"),
    "provider": ("api", "backend", "engine", "type", "vendor"),
    "lora": ("adapter", "adapter_path", "peft", "peft_path"),
    "api_key": ("apikey", "key", "token"),
    "seed": ("random_seed", "random_state", "rng_seed"),
    "model_base_url": ("api_base", "api_url", "base_url", "endpoint", "host", "server", "url"),
    "model_args.{}": (
        "device_map", "dtype", "enforce_eager", "gpu_memory_utilization", "max_model_len", "max_num_seqs",
        "quantization", "tensor_parallel_size", "torch_dtype", "trust_remote_code",
    ),
    "max_connections": (
        "concurrency", "eval_batch_size", "max_concurrency", "max_concurrent", "max_workers",
        "num_concurrent", "num_workers", "parallel", "rate_limit", "requests_per_minute", "rpm",
    ),
    "request_timeout": ("timeout",),
    "max_retries": ("num_retries", "retries"),
    "judge": ("assert", "assertion", "assertions", "evaluator", "grader", "scorer"),
    "budget": ("max_comparisons", "max_evals", "max_evaluations", "n_trials"),
    "delta": ("alpha", "confidence", "significance"),
    "selector": ("sampler", "strategy"),
    "stopping": ("early_stopping", "pruner", "n_trials"),
}  # fmt: skip
"""Words of other tools for a key, or for a setting that they have in another place, by key."""

FOR_MERGING = "x-"
"""Prefix of top-level keys whose values are only merged into others."""

MERGE = "tag:yaml.org,2002:merge"

TO_WRITE = {
    "campaign": "a campaign into it (`winnow init` creates a starter file)",
    "judge": "judge: {type: …} into it",
}
"""What to write into an empty file, in words, by kind of file."""

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class SpecFile:
    """A parsed file: its values, and the line of each key."""

    path: Path
    values: Any
    lines: dict[KeyPath, int] = field(default_factory=dict)
    overridden: frozenset[KeyPath] = frozenset()
    """Keys whose values came from `--set`, not from the file."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the command that set keys, by key."""

    def locate(self, key: str) -> str:
        """Place of a dotted key, `FILE:LINE: KEY`, for error messages.

        The line is that of the key, or of the nearest enclosing key in the file. The place is `--set KEY` if
        the value does not come from the file.
        """
        key = self._as_written(key)
        parts = parse_key(key)
        begun = bool(parts) and any(path[: len(parts)] == parts for path in self.overridden)
        if self.is_overridden(key) or (begun and parts not in self.lines):
            return self.options.get(key, f"--set {key}")
        while parts and parts not in self.lines:
            parts = parts[:-1]
        line = self.lines.get(parts)
        where = f"{self.path}:{line}" if line else str(self.path)
        return f"{where}: {key}" if key else where

    def _as_written(self, key: str) -> str:
        """The key of `task` that set a dataset's key, if the file lacks the latter."""
        parts, own = parse_key(key), self.values.get("dataset", {})
        if parts[:1] != ("dataset",) or len(parts) == 1 or "task" not in self.values:
            return key
        return key if not isinstance(own, dict) or parts[1] in own else format_key(("task", *parts[2:]))

    def is_overridden(self, key: str) -> bool:
        """Whether the value of a dotted key came from `--set`."""
        parts = parse_key(key)
        return any(parts[: len(path)] == path for path in self.overridden)


def read_spec_file(
    path: str | Path, overrides: Sequence[str] = (), *, kind: Literal["campaign", "judge"] = "campaign"
) -> SpecFile:
    """Read the values and lines of a file, and apply `key=value` overrides.

    Args:
        path: The YAML file.
        overrides: The overrides.
        kind: Expected kind of file, for error messages.

    Raises:
        SpecError: The file cannot be read or is not YAML, or an override is not `key=value`.
    """
    path = Path(in_home(str(path)))
    try:
        with open_plain(path) as file:
            content = file.read(MOST_BYTES + 1)
        text = content.decode("utf-8")
    except FileNotFoundError:
        is_name = path.parts == (path.stem,)
        stored = f"; to resume a campaign of this name: winnow resume {path}" if is_name else ""
        raise SpecError(f"there is no file {path} (looked in {Path.cwd()}){stored}") from None
    except IsADirectoryError:
        raise SpecError(f"{path} is a folder; name a file") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{path} cannot be read as text: {error}; save it as UTF-8") from error
    except OSError as error:
        raise SpecError(f"{path} cannot be read as text: {error.strerror or error}") from error
    if len(content) > MOST_BYTES:
        raise SpecError(f"{path} is larger than {MOST_BYTES >> 20} MiB; move data to files, and name them")
    lines: dict[KeyPath, int] = {}
    try:
        values = _parse(text, path, lines)
    except yaml.YAMLError as error:
        raise SpecError(_yaml_complaint(path, error, text)) from error
    except RecursionError:
        raise SpecError(f"{path}: the values are nested too deeply; use fewer levels") from None
    if values is None:
        raise SpecError(f"{path} is empty; write {TO_WRITE[kind]}")
    if not isinstance(values, dict):
        raise SpecError(_no_mapping(path, kind, values))
    values = {key: value for key, value in values.items() if not str(key).startswith(FOR_MERGING)}
    return overriding(SpecFile(path, values, lines), overrides)


def overriding(file: SpecFile, overrides: Sequence[str]) -> SpecFile:
    """Apply `key=value` settings to a file's values; they are changed in place.

    Raises:
        SpecError: A setting is not `key=value`, or its key does not exist.
    """
    overridden = frozenset(_apply(file.values, override) for override in overrides)
    return replace(file, overridden=file.overridden | overridden)


def parse_spec(file: SpecFile, task: object = None) -> CampaignSpec:
    """Parse the campaign described by a file's values.

    Args:
        file: The file.
        task: Result of running its task; see `Harness.read`. None if it is not known yet: prompts, judge and
            settings that depend on it are then placeholders.

    Raises:
        SpecError: The values are invalid; has one line per mistake.
    """
    try:
        return CampaignSpec.model_validate(_with_task(file, task))
    except ValidationError as error:
        raise mistakes_of(error, file) from error


def mistakes_of(error: ValidationError, file: SpecFile, place: KeyPath = ()) -> SpecMistakes:
    """Convert pydantic's errors to an error with one line per mistake.

    Args:
        error: The error of pydantic.
        file: The validated file.
        place: Path of the validated part in a campaign's file; empty for a whole file.
    """
    mistakes = error.errors()
    misspelt = {
        meant[0]
        for each in mistakes
        if each["type"] == "extra_forbidden" and not place and len(each["loc"]) == 1
        if (meant := _meant((), str(each["loc"][0])))
    }
    # A misspelt key is one mistake, not also a missing one.
    mistakes = [
        each
        for each in mistakes
        if not each["loc"] or each["loc"][0] in file.values or f"'{each['loc'][0]}'" not in misspelt
    ]
    complaints = [one_line(_complaint(file, detail, place)) for detail in mistakes[:MOST_MISTAKES]]
    if len(mistakes) > MOST_MISTAKES:
        complaints.append(f"{file.path}: and {len(mistakes) - MOST_MISTAKES} mistakes more")
    return SpecMistakes("\n".join(complaints))


def _with_task(file: SpecFile, read: object) -> JsonObject:
    """The file's values, with the task replaced by the values that it stands for."""
    if "task" not in file.values:
        return dict(file.values)
    try:
        task = TaskSpec.model_validate(file.values["task"])
    except ValidationError as error:
        located = [_complaint(file, {**each, "loc": ("task", *each["loc"])}) for each in error.errors()]
        raise SpecMistakes("\n".join(map(one_line, located))) from error
    try:
        values = with_task(file.values, task, read)
    except SpecError as error:
        raise SpecError(f"{file.locate(error.path or 'task')}: {error.message}") from error
    for key in values.keys() - file.values.keys():
        file.lines.setdefault((key,), file.lines.get(("task",), 1))
    return values


def parse_key(key: str) -> KeyPath:
    """Split a dotted key such as `models[0].model` into keys and positions."""
    return tuple(
        int(part) if part.isdigit() else part for part in re.split(r"[.\[\]]+", key.strip()) if part != ""
    )


class _Loader(yaml.SafeLoader):
    """YAML loader with numbers as in YAML 1.2: 1e-3 is a number, but text in YAML 1.1."""


FLOAT = ("tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789"))
"""Tag, pattern and first characters of numbers with an exponent, for reading and writing YAML."""

_Loader.add_implicit_resolver(*FLOAT)


def _parse(text: str, file: Path | str, lines: dict[KeyPath, int]) -> object:
    root = yaml.compose(text, Loader=_Loader)
    if root is None:
        return None
    if _written_out(root, {}) > MOST_BYTES:
        raise SpecError(
            f"{file}: with every alias expanded, its values are larger than {MOST_BYTES >> 20} MiB; "
            "use fewer aliases, or move data to files and name them"
        )
    return _value(root, (), lines, file)


def _written_out(node: yaml.Node, known: dict[int, int]) -> int:
    """Size in bytes of a node with every alias expanded.

    Raises:
        RecursionError: The node contains itself.
    """
    if id(node) not in known:
        if isinstance(node, yaml.MappingNode):
            inner = [part for pair in node.value for part in pair]
        else:
            inner = node.value if isinstance(node, yaml.SequenceNode) else []
        size = BYTES_OF_A_VALUE + (0 if isinstance(node, yaml.CollectionNode) else len(node.value))
        known[id(node)] = size + sum(_written_out(part, known) for part in inner)
    return known[id(node)]


def _value(node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int], file: Path | str) -> object:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        entries = _entries(node, path, file)
        lines.update({(*path, key): key_node.start_mark.line + 1 for key, (key_node, _) in entries.items()})
        return {key: _value(each, (*path, key), lines, file) for key, (_, each) in entries.items()}
    if isinstance(node, yaml.SequenceNode):
        return [_value(child, (*path, index), lines, file) for index, child in enumerate(node.value)]
    _require_straight_quotes(node, path, file)
    try:
        value = _Loader("").construct_object(node)
    except ValueError:  # such as a date in month 13
        return node.value
    # A date or binary scalar is read as text, because a campaign has no such values.
    return value if value is None or isinstance(value, (str, int, float, bool)) else node.value


CURLY = re.compile(
    r"[\u201c-\u201f\u2018-\u201b\u00ab\u00bb\u2039\u203a]\s*([\w./:@-]+)\s*[\u201c-\u201f\u2018-\u201b\u00ab\u00bb\u2039\u203a]"
)
"""Matches a single word in a word processor's quotes; such quotes around a sentence can be intended."""


def _require_straight_quotes(node: yaml.Node, path: KeyPath, file: Path | str) -> None:
    """Refuse a word in quotes that YAML would read as a part of the word."""
    if isinstance(node, yaml.ScalarNode) and node.style is None and (found := CURLY.fullmatch(node.value)):
        where = ": ".join(filter(None, (_at(file, node.start_mark.line + 1), format_key(path))))
        raise SpecError(
            f"{where}: {node.value} is in quotes of a word processor, which YAML reads as a part of the "
            f'text; write "{found[1]}" with straight quotes, or without quotes'
        )


Entries = dict[str, tuple[yaml.Node, yaml.Node]]


def _entries(node: yaml.MappingNode, path: KeyPath, file: Path | str) -> Entries:
    """Nodes of each key and value of a mapping, after those of merged mappings.

    As in YAML 1.1, the mapping's own keys override those of `<<`, and in a list the first mapping overrides
    the others.
    """
    own: Entries = {}
    merged: Entries = {}
    for key_node, value_node in node.value:
        key, line = key_node.value, key_node.start_mark.line + 1
        _require_straight_quotes(key_node, path, file)
        if not isinstance(key, str):
            where = ": ".join(filter(None, (_at(file, line), format_key(path))))
            raise SpecError(
                f"{where}: a key must be plain text; put a value that begins with '{{{{' in quotes"
            )
        if key in own:
            first = own[key][0].start_mark.line + 1
            several = ", with a list of the merged mappings" if key_node.tag == MERGE else ""
            raise SpecError(
                f"{_at(file, line)}: {key}: the key occurs twice (first in line {first}); keep one{several}"
            )
        own[key] = key_node, value_node
        if key_node.tag == MERGE:
            merged = _merged(value_node, (*path, key), file)
    return {**merged, **{key: nodes for key, nodes in own.items() if nodes[0].tag != MERGE}}


def _merged(node: yaml.Node, path: KeyPath, file: Path | str) -> Entries:
    """Entries of a merged mapping, or of a list of such mappings."""
    mappings = node.value if isinstance(node, yaml.SequenceNode) else [node]
    found: Entries = {}
    for each in mappings:
        if not isinstance(each, yaml.MappingNode):
            where = f"{_at(file, each.start_mark.line + 1)}: {format_key(path)}"
            raise SpecError(f"{where}: merges a mapping, such as *name, or a list of mappings")
        found = {**_entries(each, path, file), **found}
    return found


def _at(file: Path | str, line: int) -> str:
    """The place of a line, for error messages.

    An override is a text instead of a file, and has no lines.
    """
    return file if isinstance(file, str) else f"{file}:{line}"


def _apply(values: JsonObject, override: str) -> KeyPath:
    key, equals, text = override.partition("=")
    path = parse_key(key)
    if not equals or not path:
        raise SpecError(f"--set {override}: write key=value, for example --set stopping.budget=2000")
    try:
        value = _parse(text, f"--set {override}", {})
    except (yaml.YAMLError, RecursionError) as error:
        raise SpecError(f"--set {override}: the value is not YAML; put text in quotes") from error
    target: Any = values
    depth = 0
    try:
        for part in path[:-1]:
            target = target.setdefault(part, {}) if isinstance(target, dict) else target[part]
            depth += 1
        target[path[-1]] = value
    except (AttributeError, IndexError, KeyError, TypeError):
        raise SpecError(f"--set {override}: {_no_place(path, depth, target)}") from None
    return path


def _no_place(path: KeyPath, depth: int, found: object) -> str:
    """Why a path cannot be set; its first `depth` parts lead to `found`."""
    if isinstance(found, list):
        entries = "1 entry, [0]" if len(found) == 1 else f"{len(found)} entries, counted from 0"
        above = format_key(path[:depth])
        return f"there is no place '{format_key(path)}' in the file: {above} has {entries}"
    if isinstance(found, dict):
        return f"there is no place '{format_key(path)}' in the file"
    above, inner = format_key(path[:depth]), format_key(path[depth:])
    whole = f"--set {above}='{{{inner}: …}}'"
    return f"{above} is {repr(found)[:60]}, which has no {inner}; set it as a whole: {whole}"


def _complaint(file: SpecFile, detail: ErrorDetails, place: KeyPath = ()) -> str:
    parts = detail["loc"]
    where = file.locate(format_key(parts))
    if detail["type"] == "extra_forbidden":
        above = (*place, *parts[:-1])
        agent = None if place else _agent_at(parts, file.values)
        known, meant = _known_keys(above, agent), _meant(above, str(parts[-1]), agent)
        if not above and meant and meant[0].strip("'") not in file.values:
            meant = meant[:1]
        hint = f"did you mean {' or '.join(meant)}?" if meant else f"known here: {', '.join(known)}"
        may_be_merged = not above and not meant and isinstance(detail["input"], dict)
        merging = f"; a mapping that others merge by << has a key such as {FOR_MERGING}base" * may_be_merged
        return f"{where}: unknown key; {hint}{merging}"
    if detail["type"] == "missing":
        return f"{where}: is missing; add it{to_add(format_key(parts), file.values)}"
    given = detail.get("input")
    is_shown = detail["type"] != SECRET and (isinstance(given, (str, int, float, bool)) or given is None)
    got = f" (got {shown(given)})" if is_shown else ""
    if detail["type"] == SAME_NAME:
        places = (file.lines.get((*parts, each)) for each in detail["ctx"]["entries"])
        numbers = [str(each) for each in places if each is not None]
        got = f" (lines {' and '.join(numbers)})" if len(numbers) == 2 else ""
    return f"{where}: {demand(detail)}{got}{remedy(detail, format_key(parts))}"


def to_add(key: str, values: JsonView) -> str:
    """Allowed values of a missing key, as the end of a sentence.

    Empty if every value is allowed.

    Args:
        key: The key.
        values: All values of the file.
    """
    if key == "judge" or key.endswith("judge.type"):
        return ", such as judge: {type: normalised}; winnow judges lists all"
    if key not in ("selector", "selector.name"):
        return missing_form(key)
    from winnow.algorithms.registry import BASELINES, SELECTORS

    objective, certify = str(values.get("objective", OBJECTIVES[0])), values.get("certify")
    if objective not in SELECTORS:
        return "; winnow selectors lists them"
    has_autoevaluator = isinstance(certify, dict) and certify.get("autoevaluator")
    is_alone = traits_of(objective).measures_risk and not has_autoevaluator
    ours = SELECTORS[objective]
    first = (
        WITHOUT_AUTOEVALUATOR if is_alone else next(name for name in (*TO_BEGIN_WITH, *ours) if name in ours)
    )
    others = ", ".join(name for name in ours if name != first and name not in BASELINES)
    written = f"selector: {{name: {first}}}" if key == "selector" else f"name: {first}"
    return f", such as {written}; others for {objective}: {others} (winnow selectors describes them)"


def format_key(parts: Sequence[str | int]) -> str:
    """Format a path of keys and positions, such as `models[0].model`."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _meant(parts: KeyPath, key: str, agent: type[BaseModel] | None = None) -> list[str]:
    """Keys that an unknown key may stand for, in quotes.

    First the key with this name in other tools, or at the top of the file; else the nearest of the part's own
    keys, and then of a section in it.
    """
    plain, known, top = _plain(key), _known_keys(parts, agent), _known_keys(())
    words = [word.format(plain) for word, others in ELSEWHERE.items() if plain in others]
    if here := next((word for word in (plain, *words) if word.partition(".")[0] in known), None):
        return [f"'{here}'"]
    if plain in top:
        return [f"'{plain}' at the top of the file"]
    below = [each for word in (plain, *words) for each in _one_level_down(parts, word)][:1]
    elsewhere = [f"'{word}' at the top of the file" for word in words if word in top]
    elsewhere += [each for word in (plain, *words) for each in _in_lists(parts, word)]
    near = get_close_matches(plain, known, n=1, cutoff=ALMOST if below or elsewhere else ALIKE)
    return [f"'{each}'" for each in (*near, *below)] or elsewhere[:1]


def _plain(key: str) -> str:
    """Convert a key to this file's style, such as maxTokens or max-tokens to max_tokens."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).replace("-", "_").strip("_").lower()


def _one_level_down(parts: KeyPath, key: str) -> list[str]:
    """The section of a part with this key, as `section.key`.

    Empty unless exactly one section has the key.
    """
    sections = {name: field.annotation for name, field in keys_of(_model_of(parts)).items()}
    found = [
        f"{name}.{key}"
        for name, section in sections.items()
        if isinstance(section, type) and issubclass(section, BaseModel) and key in keys_of(section)
    ]
    return found if len(found) == 1 else []


def _in_lists(parts: KeyPath, key: str) -> list[str]:
    """The first list of a part whose entries have this key, as `'key' in list`."""
    lists = {
        name: getattr(entry := get_args(info.annotation)[0], "__origin__", entry)
        for name, info in keys_of(_model_of(parts)).items()
        if get_origin(info.annotation) is list
    }
    models = {name: entry for name, entry in lists.items() if isinstance(entry, type)}
    found = (name for name, entry in models.items() if issubclass(entry, BaseModel) and key in keys_of(entry))
    return [f"'{key}' in {name}" for name in found][:1]


def _known_keys(parts: KeyPath, agent: type[BaseModel] | None = None) -> list[str]:
    known = keys_of(_model_of(parts, agent))
    return sorted(known if agent is None or len(parts) > 2 else known.keys() - {*OF_MODELS, "model", "entry"})


def _agent_at(parts: KeyPath, values: JsonView) -> type[BaseModel] | None:
    """The class of the agent whose entry contains a key; None if it is in no agent's."""
    if parts[0] != "models" or len(parts) < 2 or not isinstance(parts[1], int):
        return None
    listed = values.get("models")
    entry = listed[parts[1]] if isinstance(listed, list) and parts[1] < len(listed) else None
    provider = entry.get("provider") if isinstance(entry, dict) else None
    return agent_class(provider) if provider in AGENTS else None


def _model_of(parts: KeyPath, agent: type[BaseModel] | None = None) -> type[BaseModel]:
    """The class of a part of the file.

    Args:
        parts: Path of the part.
        agent: The class of the agent whose entry contains the part; None outside of agents.
    """
    model: Any = CampaignFile
    if agent is not None:
        model, parts = agent, parts[2:]
    is_name = False
    for part in parts:
        if isinstance(part, str) and not is_name:
            annotation = keys_of(model)[part].annotation
            model, is_name = _section_of(annotation), get_origin(annotation) is dict
        else:
            is_name = False
    found: type[BaseModel] = model
    return found


def _section_of(annotation: Any) -> type[BaseModel]:  # noqa: ANN401
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    # For a mapping, the type of its values; in a union, the section comes first.
    return _section_of(annotation.__args__[1 if get_origin(annotation) is dict else 0])


def _yaml_complaint(path: Path, error: yaml.YAMLError, text: str) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    advice = next((f"; {advice}" for part, advice in _ADVICE.items() if part in problem), "")
    opened = getattr(error, "context_mark", None)
    lines = text.splitlines()
    if mark and mark.line < len(lines) and (glued := GLUED_DASH.match(lines[mark.line])):
        advice = f"; put a space after the '-': - {glued[1]}..."
    if mark and opened and opened.line < mark.line and any(part in problem for part in _OPENED):
        advice += f" (opened in line {opened.line + 1})"
    line = f":{mark.line + 1}" if mark else ""
    return f"{path}{line}: not YAML: {problem}{advice}"


GLUED_DASH = re.compile(r"\s*-([{\[\w][^\s:]*)")
"""Matches an entry of a list whose dash lacks the space after it."""

_OPENED = ("expected ',' or", "end of stream", "document separator")
"""Problems caused by a bracket or quote that was opened in an earlier line."""

_ADVICE = {
    "'\\t'": "indent with spaces",
    "that cannot start any token": "put text that begins with this character in quotes",
    "another document": "a file contains one campaign: write each into a file of its own",
    "constructor for the tag": "write plain values, without a tag",
    "undefined alias": "put text that begins with * in quotes",
    "expected alphabetic or numeric": "put text that begins with * or & in quotes",
    "but found '}'": "remove this bracket, which has no opening bracket",
    "but found ']'": "remove this bracket, which has no opening bracket",
    "expected the node content, but found ','": "remove one of the commas, or write the value between them",
    "but got '<stream end>'": "close the bracket",
    "or '}', but got ']'": "close { with }, and [ with ]",
    "or ']', but got '}'": "close { with }, and [ with ]",
    "expected <block end>": "indent this line like the lines of the same list or mapping above it",
    "expected ',' or": "close the quote or bracket before it, and put text with commas or braces in quotes",
    "mapping values are not allowed": "put text that contains ': ' in quotes, and check the indentation",
    "could not find expected ':'": "write KEY: VALUE, and put text of several lines after KEY: |",
    "end of stream": "close the quote or bracket",
    "document separator": "close the quote or bracket",
    "special characters are not allowed": "remove control characters",
}
"""Remedies, by a part of the YAML parser's message; the first match counts."""


DATA = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
"""Suffixes of files with examples."""


def _no_mapping(path: Path, kind: str, value: object) -> str:
    """Message for a file that contains something else than keys and values."""
    if kind == "campaign" and path.suffix.casefold() in DATA:
        return f"{path} contains data, not a campaign; create a campaign's file: winnow init --data {path}"

    what = "a list" if isinstance(value, list) else f"the value {reprlib.repr(value)}"
    return f"{path}: a {kind} file is a mapping of keys to values, this is {what}; write lines of KEY: VALUE"
