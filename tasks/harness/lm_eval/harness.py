"""lm-eval as a harness: the parts of a campaign that come from its tasks.

They include the judge and the sampling settings.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.data.dataset_files import PlacedRow
from winnow.tasks.data.harnesses import compares_pairs, prompt_name, with_settings
from winnow.tasks.data.hub import FORMATS
from winnow.tasks.errors import SpecError
from winnow.tasks.harness.lm_eval.definition import Definition, load_definition
from winnow.tasks.harness.lm_eval.files import KEY, Function, as_lm_eval_has_it, is_of_lm_eval
from winnow.tasks.harness.lm_eval.reading import task_rows
from winnow.tasks.plugins.allowed_code import Act, act_of_function
from winnow.tasks.spec.sections.dataset import DatasetSpec, LmEvalSpec, TaskSpec

METRICS: Mapping[str, Mapping[str, JsonView]] = {
    "generate_until": {"exact_match": {"type": "exact_match"}},
    "multiple_choice": {
        "acc": {"type": "acc", "target": "index"},
        "acc_norm": {"type": "acc_norm", "target": "index"},
        "acc_bytes": {"type": "acc_norm", "target": "index", "per": "byte"},
    },
    "loglikelihood": {"acc": {"type": "greedy"}},
    "loglikelihood_rolling": {
        name: {"type": name} for name in ("word_perplexity", "byte_perplexity", "bits_per_byte")
    },
}
"""Judge that gives the same number as a metric of lm-eval for each example, by output type and metric."""

OPTIONS = ("ignore_case", "ignore_punctuation", "ignore_numbers", "regexes_to_ignore")
"""Options of exact_match."""

WITHOUT_EFFECT = ("metric", "aggregation", "higher_is_better", "hf_evaluate")

MEANS = ("mean", "nanmean")
"""Aggregations that are a mean of the documents' numbers; here, NaN is an unscored comparison."""

OF_THE_CORPUS = {
    **{
        name: name
        for name in ("bits_per_byte", "bleu", "brier_score", "chrf", "f1", "mcc", "perplexity", "ter")
    },
    **dict.fromkeys(("byte_perplexity", "word_perplexity"), "weighted_perplexity"),
    "bypass": "bypass",
}
"""Default aggregations of lm-eval 0.4.13, by metric, if they are not the mean."""

TAKE_FIRST = [{"function": "take_first"}]
"""Filters that lm-eval uses for a task without filters."""

FILTERS = ("lowercase", "map", "regex", "remove_whitespace", "uppercase")

_LENGTHS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
"""lm-eval's names for the maximum number of tokens; the first that is set counts."""

REMEDY = "write your own judge next to the task"

IN_THE_SANDBOX = (
    "add next to task: judge: {type: code, allow_code: true, tests: '{{ target }}', prefix: '{{ input }}'}, "
    "without prefix if models write whole programs; this runs them in Winnow's sandbox "
    "(docs/how-to/score-code.md)"
)


class _Metric(NamedTuple):
    name: str
    options: JsonView
    function: Function | None
    """Function of the task that computes the metric; None for a metric of lm-eval."""
    is_mean: bool
    """Whether lm-eval's number is the mean of the numbers of all documents."""
    less_is_better: bool
    said: str
    """Description of the metric in messages."""


def _judge_of(
    task: Definition, metric: str | None, filter_name: str | None, bounds: Sequence[float] | None
) -> JsonObject:
    """Judge for a campaign's file that scores like the task.

    Args:
        task: The task.
        metric: Name of one of the task's metrics; None selects the first that scores each example.
        filter_name: Name of one of the task's filter pipelines; None selects the first.
        bounds: Numbers that score 0 and 1, for a metric of the task's own functions; None means [0, 1], or
            [1, 0] if lower is better.

    Raises:
        SpecError: If Winnow does not support the task's scoring.
    """
    if task.config.get("unsafe_code"):
        task.refuse("runs what models write (unsafe_code), which is not permitted here", IN_THE_SANDBOX)
    by_results = task.config.get("process_results")
    wanted = _wanted(task, metric)
    is_own = by_results is not None or wanted.function is not None
    others = [] if is_own else sorted(wanted.options.keys() - set(OPTIONS))
    if others and task.output_type == "generate_until":
        task.refuse(f"gives {wanted.name} the option {others[0]!r}", REMEDY)
    steps = list(_pipeline(task, filter_name))
    *first, last = steps or [{"function": "take_first"}]
    is_plain = last["function"] == "take_first" and all(each["function"] in FILTERS for each in first)
    if task.config.get("repeats", 1) != 1 and not is_plain:
        task.refuse(f"requests {task.config['repeats']} answers and scores them together (repeats)", REMEDY)
    if not is_own and (is_plain or task.output_type != "generate_until"):
        judge = dict(METRICS[task.output_type][wanted.name])
        if task.output_type != "generate_until":
            return judge  # lm-eval ignores options here, too
        return {**judge, **({"filters": first} if first else {}), **wanted.options}
    own = {"process_results": by_results, "function": wanted.function if by_results is None else None}
    given = bounds or ([1.0, 0.0] if wanted.less_is_better else None)
    return {
        "type": "lm-eval",
        "metric": wanted.name,
        **{key: _from_here(each) for key, each in own.items() if each is not None},
        "filters": steps or TAKE_FIRST,
        **({"options": dict(wanted.options)} if wanted.options and by_results is None else {}),
        **({"output_type": task.output_type} if task.output_type != "generate_until" else {}),
        **({"range": list(given)} if given else {}),
    }


def _wanted(task: Definition, metric: str | None) -> _Metric:
    there = list(_metrics(task))
    named = [each for each in there if each.name == metric] if metric is not None else there
    if not named:
        task.refuse(f"has no metric {metric!r}", f"its metrics: {', '.join(each.name for each in there)}")
    for each in named:
        if _scores_each(task, each):
            return each
    names = ", ".join(each.said for each in named)
    task.refuse(f"is scored by {names}, which Winnow cannot compute for each example", REMEDY)


def _scores_each(task: Definition, metric: _Metric) -> bool:
    if not metric.is_mean:
        return False
    if task.config.get("process_results") is not None:
        return True
    if metric.function is not None:
        return task.output_type == "generate_until"
    return metric.name == metric.said and metric.name in METRICS[task.output_type]


def _metrics(task: Definition) -> Iterator[_Metric]:
    listed = task.config.get("metric_list")
    by_results = task.config.get("process_results") is not None
    if listed is None:
        listed = [{"metric": name} for name in METRICS[task.output_type]]
    for each in listed:
        name, hf = each.get("metric"), bool(each.get("hf_evaluate")) and not by_results
        aggregation = each.get("aggregation", OF_THE_CORPUS.get(str(name), "mean"))
        is_text = task.output_type == "loglikelihood_rolling" and name in METRICS[task.output_type]
        said = f"the function {name}" if isinstance(name, Function) else str(name)
        said += " (hf_evaluate)" if hf else ""
        is_mean = aggregation in MEANS or is_text
        yield _Metric(
            name=name.name if isinstance(name, Function) else str(name),
            options={key: value for key, value in each.items() if key not in WITHOUT_EFFECT},
            function=name if isinstance(name, Function) else None,
            is_mean=is_mean,
            less_is_better=each.get("higher_is_better") is False,
            said=said if is_mean else f"{said} (aggregation: {aggregation})",
        )


def _pipeline(task: Definition, name: str | None) -> Iterator[JsonObject]:
    """Steps of a filter pipeline; a function is written as FILE.py:NAME."""
    listed = task.config.get("filter_list")
    if not listed:
        if name is not None:
            task.refuse(f"has no filter {name!r}", "remove filter")
        return
    found = [each for each in listed if name in (None, each["name"])]
    if not found:
        task.refuse(f"has no filter {name!r}", f"its filters: {', '.join(each['name'] for each in listed)}")
    for step in found[0]["filter"]:
        yield {key: _from_here(each) if isinstance(each, Function) else each for key, each in step.items()}


def _from_here(function: Function) -> str:
    """FILE.py:NAME relative to the working folder, so that a campaign can move with its folder."""
    file = Path(function.file)
    here = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    return f"{here}:{function.name}"


def _generation_of(task: Definition) -> JsonObject:
    """Generation settings of the task, as keys of `generate_config`.

    Raises:
        SpecError: If Winnow does not support one of the settings.
    """
    given = task.config.get("generation_kwargs")
    settings: JsonObject = dict(given or {"max_gen_toks": 256, "do_sample": False, "temperature": 0.0})
    until = settings.pop("until", [task.fewshot_delimiter])
    lengths = [settings.pop(name, None) for name in _LENGTHS]
    temperature, sample = float(settings.pop("temperature", 0.0)), settings.pop("do_sample", None)
    if sample and not temperature:
        task.refuse("samples without a temperature (generation_kwargs.do_sample)", "choose another task")
    more: JsonObject = {key: settings.pop(key) for key in ("top_p", "top_k") if key in settings}
    if settings:
        task.refuse(f"has generation_kwargs.{min(settings)}", "choose another task")
    return {
        "temperature": 0.0 if sample is False else temperature,
        "max_tokens": int(next((each for each in lengths if each is not None), 256)),
        "stop_seqs": [until] if isinstance(until, str) else list(until or []),
        **({} if sample is False else more),
    }


class LmEval:
    """Harness for tasks of lm-eval; see `tasks.data.harnesses.Harness`."""

    def read(self, dataset: DatasetSpec, *, is_allowed: bool) -> None:
        """See `Harness`; reads nothing, because only the rows require running a task."""

    def rows(self, dataset: DatasetSpec, read: object, *, is_allowed: bool) -> Iterable[PlacedRow]:
        """See `Harness`."""
        return task_rows(_named(dataset), is_allowed=is_allowed)

    def filled_in(self, values: JsonView, task: TaskSpec, read: object) -> JsonObject:
        """See `Harness`."""
        return with_lm_eval(values, task)

    def left_out(self, dataset: DatasetSpec, judge: JsonView) -> list[str]:
        """See `Harness`."""
        task = _named(dataset)
        definition = load_definition(task.task, task.include_path)
        given = judge.get("metric", "acc" if judge.get("type") == "greedy" else judge.get("type"))
        given = "acc_bytes" if judge.get("per") == "byte" else given
        return [each.said for each in _metrics(definition) if each.name != given]

    def acts(self, dataset: DatasetSpec, folder: Path) -> Iterator[tuple[Act, tuple[str, ...]]]:
        """See `Harness`."""
        for function in _named(dataset).functions:
            file, _, name = function.rpartition(":")
            yield act_of_function(folder / file, name), (KEY,)

    def files(self, dataset: DatasetSpec) -> Iterator[tuple[str, str]]:
        """See `Harness`; a task's own files and their data, without files of the installed lm-eval."""
        task = _named(dataset)
        try:
            definition = load_definition(task.task, task.include_path)
        except SpecError:  # reported when the campaign's examples are read
            yield KEY, task.task
            return
        own = (str(each) for each in definition.read if not is_of_lm_eval(each))
        yield from ((KEY, each) for each in (*own, *definition.local_data))


def _named(dataset: DatasetSpec) -> LmEvalSpec:
    assert dataset.lm_eval is not None  # `harness_of` has checked it
    return dataset.lm_eval


OUTPUT_TYPES = {
    "multiple_choice": "multiple-choice",
    "loglikelihood": "loglikelihood",
    "loglikelihood_rolling": "perplexity",
}


def with_lm_eval(values: JsonView, task: TaskSpec) -> JsonObject:
    """Replace the task in a campaign's file by the values that it stands for.

    Raises:
        SpecError: If the task needs a feature that Winnow does not support.
    """
    assert task.lm_eval is not None
    with as_lm_eval_has_it(task.lm_eval, KEY):
        definition = load_definition(task.lm_eval, task.include_path)
        own = {key: value for key, value in values.items() if key != "task"}
        if "judge" not in values and not compares_pairs(values):
            own["judge"] = _judge_of(definition, task.metric, task.filter, task.range)
        return own | _of_the_definition(definition, values, task)


def _of_the_definition(definition: Definition, values: JsonView, task: TaskSpec) -> JsonObject:
    """Values that a task stands for, except the judge."""
    models = values.get("models") if isinstance(values.get("models"), list) else []
    chats = [bool(each.get("chat")) for each in models or [] if isinstance(each, dict)]
    shown = _Shown(definition, task, chats)
    found: JsonObject = {"dataset": {**values.get("dataset", {}), **shown.dataset()}, **shown.choices()}
    if "prompts" not in values:
        found["prompts"] = [{"name": prompt_name(definition.name), **shown.prompt()}]
    if definition.output_type != "generate_until":
        return {**found, "output_type": OUTPUT_TYPES[definition.output_type]}
    if models:
        found["models"] = [with_settings(each, _generation_of(definition)) for each in models]
    return found


class _Shown:
    """Form in which models of a campaign receive a task.

    Args:
        definition: The task.
        task: The value of the file's key `task`.
        chats: Whether each model is a chat model.
    """

    def __init__(self, definition: Definition, task: TaskSpec, chats: list[bool]) -> None:
        self._definition = definition
        self._task = task
        n = definition.num_fewshot if task.num_fewshot is None else task.num_fewshot
        self._are_mixed = len(set(chats)) > 1
        multiturn = bool(n) and task.fewshot_as_multiturn is not False
        has_roles = bool(definition.description) or bool(definition.config.get("gen_prefix")) or multiturn
        is_weighed = definition.output_type == "loglikelihood_rolling"
        if task.fewshot_as_multiturn and True not in chats:
            raise SpecError("needs a chat model; remove fewshot_as_multiturn", "task.fewshot_as_multiturn")
        if has_roles and self._are_mixed and not is_weighed:
            definition.refuse(
                "has another prompt for chat models", "put chat models into a separate campaign"
            )
        self._is_chat = has_roles and True in chats and not is_weighed
        self._multiturn = multiturn
        self._all_chat = bool(chats) and all(chats)

    def dataset(self) -> JsonObject:
        """Part of the campaign's key `dataset` that replaces the task."""
        definition, path = self._definition, self._definition.source.path
        is_local = path in FORMATS or Path(path).is_dir()
        lm_eval = {
            "task": self._task.lm_eval,
            "include_path": self._task.include_path,
            "num_fewshot": self._task.num_fewshot,
            "fewshot_seed": self._task.fewshot_seed,
            "chat": ("multiturn" if self._multiturn else "single-turn") if self._is_chat else None,
            "hub": None if is_local else path,
            "revision": None if is_local else definition.source.commit,
            "functions": definition.functions,
        }
        has_target = definition.output_type != "loglikelihood_rolling"
        fields = {"id": "id", "input": "input", "target": "target" if has_target else None}
        return {"lm_eval": lm_eval, "fields": fields}

    def prompt(self) -> JsonObject:
        """Content of the only entry of the campaign's key `prompts`."""
        if self._definition.output_type == "loglikelihood_rolling":
            return {"template": "{{ input }}"}
        if not self._is_chat:
            return {"template": "{{ context }}"}
        begun = [{"role": "assistant", "content": "{{ prefix }}"}]
        prefix = begun if self._definition.config.get("gen_prefix") else []
        return {"messages": [{"turns": "messages"}, *prefix]}

    def choices(self) -> JsonObject:
        """The campaign's keys `choices` and `target_delimiter`."""
        definition = self._definition
        if definition.output_type == "loglikelihood":
            return {"target_delimiter": ""}  # lm-eval puts no delimiter before a single continuation
        if definition.output_type != "multiple_choice":
            return {}
        if self._is_chat and definition.config.get("gen_prefix"):
            definition.refuse("begins the answers of chats (gen_prefix)", "use models without chat: true")
        found: JsonObject = {"choices": {"field": "choices"}}
        if definition.target_delimiter == " ":
            return found  # Winnow's default is the same, also if a chat template ends the prompt
        if self._are_mixed:
            definition.refuse(
                f"has the target_delimiter {definition.target_delimiter!r}, which chats do not use",
                "put chat models into a separate campaign",
            )
        return {**found, "target_delimiter": "" if self._all_chat else definition.target_delimiter}
