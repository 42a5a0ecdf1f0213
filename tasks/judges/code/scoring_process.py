"""Score outputs by an lm-eval task's own functions, in a confined fork per output.

The task's files, which the user has permitted, are imported once. Each output is then scored in a fork that
first confines itself like programs of models (`inside.confinement`): it can read Python's libraries and the
task's folders, write nothing, reach no network and start no process. The fork ends after its output, so that
no output can change how others are scored. Its result is limited in size and checked here.
"""

import json
import math
import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from winnow.algorithms.state.plugin_registry import in_words, object_at
from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.judges.code.inside.confinement import Limits, confine
from winnow.tasks.judges.code.sandbox import CLOCK_FACTOR
from winnow.tasks.judges.protocol import INVALID_SCORE, JUDGE_FAILED, Sample, Scale, Verdict
from winnow.tasks.judges.rules.exact_match import OPTIONS, ExactMatchJudge
from winnow.tasks.judges.rules.likelihoods import BITS, MOST_NATS, PER_BYTE, PER_WORD
from winnow.tasks.plugins.python_files import import_function

MOST_BYTES = 1 << 14
"""Maximum bytes of one result."""

MOST_OF_A_SENTENCE = 300

PERPLEXITIES = {"word_perplexity": PER_WORD, "byte_perplexity": PER_BYTE, "bits_per_byte": BITS}
"""Metrics of a text's log-likelihood and length, which a function returns as a pair."""

Scorer = Callable[[Sample], object]
"""Function that returns the metric's value for an output."""


class _Missing(Exception):
    """The function returned no value of this metric; the message names its result."""


def loaded(
    *,
    metric: str,
    process_results: str | None,
    function: str | None,
    filters: Sequence[JsonObject],
    options: JsonObject,
    output_type: str,
    functions: Sequence[Sequence[str]],
    digests: Mapping[str, str],
    limits: Mapping[str, int],
    range: Sequence[float],
) -> Callable[[Sample], Verdict]:
    """Import a task's functions, and return a function that scores an output.

    Args:
        metric: See `LmEvalJudge`.
        process_results: See `LmEvalJudge`.
        function: See `LmEvalJudge`.
        filters: See `LmEvalJudge`.
        options: See `LmEvalJudge`.
        output_type: See `LmEvalJudge`.
        functions: File and name of each function that the other arguments name.
        digests: SHA-256 of the files that may be imported, by module name.
        limits: The fields of `Limits`.
        range: The numbers that score 0 and 1.
    """
    _set_seeds()
    imported = {f"{file}:{name}": _imported(file, name, digests) for file, name in functions}
    steps = [_step(each, imported) for each in filters]
    if process_results is not None:
        value = _by_results(imported[_full(process_results)], metric, output_type, steps)
    elif function is not None:
        value = _by_metric(imported[_full(function)], metric, options, steps)
    else:
        value = _by_exact_match(ExactMatchJudge(**options), steps)
    folders = tuple({str(Path(file).parent) for file, _ in functions})
    first, last = range
    of_text = PERPLEXITIES.get(metric) if output_type == "loglikelihood_rolling" else None
    scale = of_text or Scale(unit="", formula="", convert=lambda number: (number - first) / (last - first))
    return lambda sample: _verdict(_confined(value, sample, Limits(**limits), folders), metric, scale)


def _set_seeds() -> None:
    """Seed the generators that functions may use, so that equal outputs get equal scores."""
    random.seed(0)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(1234)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(1234)
    if (langdetect := sys.modules.get("langdetect")) is not None:
        langdetect.DetectorFactory.seed = 0  # its own generator, which IFEval does not seed


def _full(path: str) -> str:
    file, _, name = path.rpartition(":")
    return f"{Path(file).expanduser().resolve()}:{name}"


def _imported(file: str, name: str, digests: Mapping[str, str]) -> Callable[..., Any]:
    module = sys.modules.get(Path(file).stem)
    if getattr(module, "__file__", None) == file:
        found: Callable[..., Any] = getattr(module, name)
        return found
    return import_function(file, name, digests)


Step = Callable[[Any, JsonView], Any]
"""A filter: receives an output's responses, or the previous filter's result, and the document."""


def _step(given: JsonView, imported: Mapping[str, Callable[..., Any]]) -> Step:
    name = str(given["function"])
    options = {key: value for key, value in given.items() if key != "function"}
    if name == "take_first":
        return lambda responses, document: responses[0]
    if name in OPTIONS:
        alone = ExactMatchJudge(filters=[dict(given)])
        return lambda responses, document: [alone.filtered(each) for each in responses]
    if name == "custom":
        apply = imported[_full(options.pop("filter_fn"))]
    else:  # a class of the task, or of lm-eval
        made: Any = imported[_full(name)] if ":" in name else object_at("lm_eval.filters:get_filter")(name)
        apply = made(**options).apply
    return lambda responses, document: next(iter(apply([responses], [document])))


def _filtered(sample: Sample, steps: Sequence[Step]) -> Any:  # noqa: ANN401 -- whatever a filter makes
    found: Any = [sample.output]
    for step in steps:
        found = step(found, _document(sample))
    return found


def _document(sample: Sample) -> JsonObject:
    document: Any = sample.fields["doc"]
    return dict(document)


def _by_results(call: Callable[..., Any], metric: str, output_type: str, steps: Sequence[Step]) -> Scorer:
    def value(sample: Sample) -> object:
        results: list[Any]
        if output_type == "generate_until":
            results = [_filtered(sample, steps)]
        elif output_type == "loglikelihood_rolling":
            results = [sample.loglikelihoods[0]]
        elif output_type == "loglikelihood":
            results = [(sample.loglikelihoods[0], bool(sample.output))]
        else:
            results = [(each, _Unknown()) for each in sample.loglikelihoods]
        found = _of(call(_document(sample), results), metric)
        if output_type == "loglikelihood_rolling" and metric in PERPLEXITIES and isinstance(found, tuple):
            return _of_text(metric, *found)
        return found

    return value


def _of_text(metric: str, loglikelihood: float, units: int) -> float:
    """Measure of one text, from its log-likelihood and its number of words or bytes."""
    nats = -loglikelihood / units
    return nats / math.log(2.0) if metric == "bits_per_byte" else math.exp(min(nats, MOST_NATS))


class _Unknown:
    """Placeholder for whether a choice is greedy, which is not requested; reading it fails."""

    def __bool__(self) -> bool:
        raise TypeError("the function reads whether a choice is what greedy decoding gives, which is unknown")

    __float__ = __int__ = __index__ = __bool__


def _by_metric(call: Callable[..., Any], metric: str, options: JsonObject, steps: Sequence[Step]) -> Scorer:
    """Scorer by the metric's own function, called as lm-eval 0.4.13 does."""

    def called(gold: object, result: object) -> object:
        try:
            found = call(references=[gold], predictions=[result], **options)
        except TypeError:
            found = call([gold, result])
        return _of(found, metric) if isinstance(found, dict) else found

    def value(sample: Sample) -> object:
        result, gold = _filtered(sample, steps), sample.fields["gold"]
        if isinstance(gold, list):
            return float(any([called(each, result) for each in gold]))
        if type(gold) is not type(result) and not isinstance(result, list):
            gold = type(result)(gold)
        return called(gold, result)

    return value


def _by_exact_match(judge: ExactMatchJudge, steps: Sequence[Step]) -> Scorer:
    def value(sample: Sample) -> object:
        said = _filtered(sample, steps)
        if not isinstance(said, str):
            raise TypeError(f"the filters must return a text, got {type(said).__name__}")
        return judge.judge(Sample(output=said, targets=sample.targets)).score

    return value


def _of(found: object, metric: str) -> object:
    if not isinstance(found, Mapping):
        raise _Missing(f"the function must return a mapping of metrics, got {type(found).__name__}")
    if metric not in found:
        raise _Missing(f"the function must return {metric!r}, got only {', '.join(map(str, found))}")
    return found[metric]


def _confined(value: Scorer, sample: Sample, limits: Limits, folders: Sequence[str]) -> JsonObject:
    """Result of a confined fork: `value`, or `failed` with a sentence."""
    reads, writes = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _score_and_end(value, sample, limits, folders, parent, writes)
    os.close(writes)
    try:
        told = _read(reads, time.monotonic() + limits.seconds * CLOCK_FACTOR)
    finally:
        os.close(reads)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if told is None:
        return {"failed": f"took more than {limits.seconds * CLOCK_FACTOR} s by the clock"}
    try:
        message = json.loads(told)
    except (ValueError, RecursionError):
        message = None
    if isinstance(message, dict) and len(message) == 1 and message.keys() <= {"value", "failed"}:
        return message
    return {"failed": _ending(status, limits)}


def _ending(status: int, limits: Limits) -> str:
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return f"took more than {limits.seconds} s of a processor, or more memory than it may"
    return "ended its process without a result"


def _score_and_end(
    value: Scorer, sample: Sample, limits: Limits, folders: Sequence[str], parent: int, writes: int
) -> None:
    """Score an output in this process, then end the process."""
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        os.closerange(3, writes)
        os.closerange(writes + 1, os.sysconf("SC_OPEN_MAX"))
        os.environ.clear()
        _set_seeds()  # each fork starts from the same seeds
        confine(limits, None, parent, folders)
        told = _result_json(value(sample))
    except _Missing as error:
        told = {"failed": str(error)[:MOST_OF_A_SENTENCE]}
    except BaseException as error:  # the task's code can raise anything
        told = {"failed": f"raised {in_words(error)}"[:MOST_OF_A_SENTENCE]}
    try:
        os.write(writes, json.dumps(told).encode())
    finally:
        os._exit(0)


def _result_json(value: object) -> JsonObject:
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool | int | float):
        return {"value": float(value)}
    return {"failed": f"must return a number, got {repr(value)[:100]}"}


def _read(descriptor: int, deadline: float) -> bytes | None:
    """Read until the writer closes or `MOST_BYTES` is exceeded; None at the deadline."""
    told = bytearray()
    ready = select.poll()
    ready.register(descriptor, select.POLLIN)
    while len(told) <= MOST_BYTES:
        if not ready.poll(max(0.0, deadline - time.monotonic()) * 1000.0):
            return None
        if not (chunk := os.read(descriptor, MOST_BYTES)):
            break
        told += chunk
    return bytes(told)


def _verdict(told: JsonView, metric: str, scale: Scale) -> Verdict:
    if "failed" in told:
        return Verdict.unscored(JUDGE_FAILED, detail=f"{metric}: {str(told['failed'])[:MOST_OF_A_SENTENCE]}")
    number = told["value"]
    if not isinstance(number, float) or not math.isfinite(number):
        return Verdict.unscored(INVALID_SCORE, detail=f"{metric}: {str(number)[:100]} is not a finite number")
    score = scale.convert(number)
    if not 0.0 <= score <= 1.0 and not scale.unit:
        return Verdict.unscored(
            INVALID_SCORE,
            detail=f"{metric}: {number:g} is outside the range that scores 0 to 1; set task.range",
        )
    return Verdict(score=scale.score(number), answer=f"{metric} {number:g}")
