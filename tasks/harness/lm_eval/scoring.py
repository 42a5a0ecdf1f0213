"""Convert a task's metrics and filters to a judge, and its generation settings to Winnow's."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.harness.lm_eval.definition import Definition
from winnow.tasks.harness.lm_eval.files import Function

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
"""lm-eval's metrics that score each example, by output type, with the judge that gives the same number."""

OPTIONS = ("ignore_case", "ignore_punctuation", "ignore_numbers", "regexes_to_ignore")
"""Options of exact_match."""

WITHOUT_EFFECT = ("metric", "aggregation", "higher_is_better")

FILTERS = ("lowercase", "map", "regex", "remove_whitespace", "uppercase")

_LENGTHS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
"""lm-eval's names for the number of tokens; the first one that is set counts."""

REMEDY = "write a judge of your own beside the task"

IN_THE_SANDBOX = (
    "write beside it judge: {type: code, allow_code: true, tests: '{{ target }}', prefix: '{{ input }}'}, "
    "without the prefix where models write whole programs, which runs them in Winnow's sandbox "
    "(docs/how-to/score-code.md)"
)


class _Metric(NamedTuple):
    name: str
    options: JsonView


def judge_of(task: Definition, metric: str | None, filter_name: str | None) -> JsonObject:
    """The judge in a campaign's file that scores like the task.

    Args:
        task: The task.
        metric: Name of one of its metrics; None is the first that scores each example.
        filter_name: Name of one of its filter pipelines; None is the first.

    Raises:
        SpecError: If Winnow does not support the task's scoring.
    """
    if task.config.get("unsafe_code"):
        task.refuse("runs what models write (unsafe_code), which nobody has allowed here", IN_THE_SANDBOX)
    if task.config.get("process_results") is not None:
        task.refuse(f"scores by the function {task.config['process_results']} (process_results)", REMEDY)
    known = METRICS[task.output_type]
    wanted = _wanted(task, metric)
    judge = dict(known[wanted.name])
    if task.output_type != "generate_until":
        return judge  # lm-eval takes no notice of options here either
    if others := sorted(wanted.options.keys() - set(OPTIONS)):
        task.refuse(f"gives {wanted.name} the option {others[0]!r}", REMEDY)
    filters = list(_pipeline(task, filter_name))
    return {**judge, **({"filters": filters} if filters else {}), **wanted.options}


def _wanted(task: Definition, metric: str | None) -> _Metric:
    known = METRICS[task.output_type]
    there = list(_metrics(task))
    named = [each for each in there if each.name == metric] if metric is not None else there
    if not named:
        task.refuse(f"has no metric {metric!r}", f"its metrics: {', '.join(each.name for each in there)}")
    for each in named:
        if each.name in known:
            return each
    names = ", ".join(each.name for each in named)
    task.refuse(f"is scored by {names}, which gives no score of each example here", REMEDY)


def _metrics(task: Definition) -> Iterator[_Metric]:
    listed = task.config.get("metric_list")
    if listed is None:
        listed = [{"metric": name} for name in METRICS[task.output_type]]
    for each in listed:
        name, hf = each.get("metric"), each.get("hf_evaluate")
        options = {key: value for key, value in each.items() if key not in WITHOUT_EFFECT}
        aggregation = each.get("aggregation", "mean")
        if isinstance(name, Function):
            yield _Metric(f"the function {name}", {})
        elif hf:
            yield _Metric(f"{name} (hf_evaluate)", {})
        elif aggregation != "mean" and task.output_type != "loglikelihood_rolling":
            yield _Metric(f"{name} (aggregation: {aggregation})", {})
        else:
            yield _Metric(str(name), options)


def _pipeline(task: Definition, name: str | None) -> Iterator[JsonObject]:
    """The filter steps that change an output."""
    listed = task.config.get("filter_list")
    if not listed:
        if name is not None:
            task.refuse(f"has no filter {name!r}", "remove filter")
        return
    found = [each for each in listed if name in (None, each["name"])]
    if not found:
        task.refuse(f"has no filter {name!r}", f"its filters: {', '.join(each['name'] for each in listed)}")
    *steps, last = found[0]["filter"]
    if last.get("function") != "take_first" or any(each["function"] == "take_first" for each in steps):
        task.refuse(f"has the filter {found[0]['name']}, which does not end with take_first", REMEDY)
    for step in steps:
        if step["function"] not in FILTERS:
            task.refuse(f"filters by {step['function']} ({found[0]['name']})", REMEDY)
        yield dict(step)


def generation_of(task: Definition) -> JsonObject:
    """The task's generation settings, in the form of `generate_config`.

    Raises:
        SpecError: If Winnow does not support one of them.
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
