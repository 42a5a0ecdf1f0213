"""Table of judges, and the nested judges and models in a judge's spec.

Each entry of the table names the parameters of a judge that hold judges and those that hold models. All other
parameters hold data of any form: a JSON schema, for example, can contain mappings that look like a judge or a
model. Winnow does not know the parameters of a plug-in; by convention, `model` and `models` hold models.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.json_types import JsonObject, JsonView

HUMAN = "human"
"""The type of the human judge."""

WITH_FUNCTIONS = ("lm-eval", "python")
"""Types of judges that run functions of the user's Python files; see `functions_of`."""

SPARE = "spare"
"""Key of a judge's section that names outputs needing no verdict; not a parameter of the judge."""


def spares(spec: JsonView) -> bool:
    """Whether a stored campaign requests no verdicts on equal outputs."""
    return (spec.get("judge") or {}).get(SPARE) is not None


@dataclass(frozen=True, slots=True)
class Maker:
    """Factory of a built-in judge."""

    location: str
    """Import path as "module:callable", relative to `winnow.tasks.judges`."""
    version: int
    """Raised when a verdict can change.
    A campaign continues only with the version that it began with.
    """

    def load(self) -> Any:  # noqa: ANN401 -- each makes a judge of its own class
        """Import and return the factory."""
        return object_at(f"winnow.tasks.judges.{self.location}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeEntry:
    """A built-in judge, and its parameters that hold judges and models."""

    outputs: Maker | None = None
    """Factory of the judge of single outputs; None if this name has no such judge."""
    pairs: Maker | None = None
    """Factory of the judge of pairs of outputs; None if this name has no such judge."""
    judges: str | None = None
    """Parameter that holds a judge or a list of judges; None if the judge has no nested judges."""
    combines: bool = False
    """Whether the judge's score depends only on the scores of its nested judges."""
    models: tuple[str, ...] = ()
    """Parameters that hold a model or a list of models."""


_MODELS = ("model", "models")


def _rule(location: str, version: int) -> JudgeEntry:
    return JudgeEntry(outputs=Maker(location, version))


def _combination(name: str, version: int) -> JudgeEntry:
    return JudgeEntry(outputs=Maker(f"combination:{name}", version), judges="judges", combines=True)


JUDGES = {
    "acc": _rule("rules.likelihoods:AccJudge", 1),
    "acc_norm": _rule("rules.likelihoods:AccNormJudge", 1),
    "all": _combination("AllJudge", 1),
    "any": _combination("AnyJudge", 1),
    "best-of": _combination("BestOfJudge", 1),
    "bits_per_byte": _rule("rules.likelihoods:BitsPerByteJudge", 1),
    "bleu": _rule("isolated.translation:BleuJudge", 1),
    "byte_perplexity": _rule("rules.likelihoods:BytePerplexityJudge", 1),
    "choice": _rule("rules.choice:ChoiceJudge", 2),
    "chrf": _rule("isolated.translation:ChrfJudge", 1),
    "code": _rule("code.judge:CodeJudge", 2),
    "contains": _rule("rules.string_match:ContainsJudge", 1),
    "exact": _rule("rules.string_match:ExactJudge", 1),
    "exact_match": _rule("rules.exact_match:ExactMatchJudge", 1),
    "f1": _rule("rules.string_match:F1Judge", 1),
    "greedy": _rule("rules.likelihoods:GreedyJudge", 1),
    HUMAN: JudgeEntry(outputs=Maker("human:HumanJudge", 1), pairs=Maker("human:HumanPairJudge", 1)),
    "inspect": _rule("rules.inspect.judge:InspectJudge", 1),
    "inspect-graded": JudgeEntry(
        outputs=Maker("pointwise.inspect_graded:inspect_graded_judge", 1),
        models=("model",),
    ),
    "json-schema": _rule("isolated.json_schema:JsonSchemaJudge", 2),
    "llm": JudgeEntry(
        outputs=Maker("pointwise.llm:llm_judge", 2),
        pairs=Maker("pairwise.llm:llm_judge", 3),
        models=_MODELS,
    ),
    "lm-eval": _rule("code.lm_eval:LmEvalJudge", 1),
    "math": _rule("isolated.math:MathJudge", 2),
    "normalised": _rule("rules.string_match:NormalisedJudge", 1),
    "numeric": _rule("rules.numeric:NumericJudge", 2),
    "python": _rule("isolated.python_function:PythonJudge", 1),
    "recorded": _rule("rules.given_scores:RecordedJudge", 1),
    "regex": _rule("rules.regex:RegexJudge", 2),
    "reported": _rule("rules.given_scores:ReportedJudge", 1),
    "rouge": _rule("isolated.rouge:RougeJudge", 2),
    "rules": JudgeEntry(pairs=Maker("pairwise.rules:rules_judge", 1), judges="scorer"),
    "score": _rule("rules.given_scores:ScoreJudge", 1),
    "similarity": _rule("isolated.similarity:SimilarityJudge", 2),
    "squad": _rule("rules.string_match:SquadJudge", 1),
    "ter": _rule("isolated.translation:TerJudge", 1),
    "weighted": _combination("WeightedJudge", 1),
    "word_perplexity": _rule("rules.likelihoods:WordPerplexityJudge", 1),
}
"""Built-in judges by name. A plug-in cannot replace a built-in judge."""

BUILT_IN = {name: each.outputs for name, each in JUDGES.items() if each.outputs is not None}
PAIRS = {name: each.pairs for name, each in JUDGES.items() if each.pairs is not None}
"""Factories of built-in judges by name: `BUILT_IN` for single outputs, `PAIRS` for pairs of outputs."""

_OF_PLUGINS = JudgeEntry(models=_MODELS)


Placed = tuple[str, JsonObject]
"""A model's or judge's mapping with its key in the file, such as `judge.models[1]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeNode:
    """A judge with its nested judges and models."""

    place: str
    """The judge's key in the file, such as `judge.judges[1]`."""
    type: str | None
    """The judge's name; None if the file gives no name, which raises an error when the judge is created."""
    params: JsonView
    """All keys of the judge in the file, including its type."""
    own_models: tuple[Placed, ...] = ()
    """The models in the judge's own parameters, without those of nested judges."""
    inner: "tuple[JudgeNode, ...]" = ()

    @property
    def is_plugin(self) -> bool:
        """Whether the judge is third-party; its parameters can hold any judge or model."""
        return self.type not in JUDGES

    def walk(self) -> "Iterator[JudgeNode]":
        """Yield this judge and all nested judges."""
        yield self
        for each in self.inner:
            yield from each.walk()

    @property
    def models(self) -> tuple[JsonObject, ...]:
        """The models of this judge and of all nested judges, as described in the spec."""
        return tuple(given for each in self.walk() for _, given in each.own_models)

    @property
    def parts(self) -> "tuple[JudgeNode, ...]":
        """The judges whose scores this judge combines; itself if it combines none."""
        if self.type is None or self.is_plugin or not JUDGES[self.type].combines:
            return (self,)
        return tuple(part for each in self.inner for part in each.parts)


def judge_tree(given: object, place: str = "judge") -> JudgeNode:
    """Parse a judge of a spec into a tree of judges.

    Malformed parts raise no error here; the code that creates the judge reports them.
    """
    params: JsonView = given if isinstance(given, dict) else {}
    name = params.get("type")
    type_ = name if isinstance(name, str) else None
    entry = JUDGES.get(type_ or "")
    models = [each for key in (entry or _OF_PLUGINS).models for each in _mappings_in(params, key, place)]
    inner: tuple[JudgeNode, ...] = ()
    if entry is None:  # by the same convention, judges nested in a plug-in can have models
        for at, each in _mappings_in(params, "judges", place):
            models += [model for node in judge_tree(each, at).walk() for model in node.own_models]
    elif entry.judges is not None:
        inner = tuple(judge_tree(each, at) for at, each in _mappings_in(params, entry.judges, place))
    return JudgeNode(place=place, type=type_, params=params, own_models=tuple(models), inner=inner)


def _mappings_in(params: JsonView, key: str, place: str) -> Iterator[Placed]:
    """Yield the mappings in a parameter, with their keys in the file.

    A parameter whose name ends with "s" holds a list of mappings.
    """
    value = params.get(key)
    if not key.endswith("s"):
        if isinstance(value, dict):
            yield f"{place}.{key}", value
        return
    for index, each in enumerate(value if isinstance(value, list | tuple) else ()):
        if isinstance(each, dict):
            yield f"{place}.{key}[{index}]", each


def functions_of(judge: JsonView) -> Iterator[tuple[str, str]]:
    """Yield (key, FILE.py:FUNCTION) for each user function in a judge's parameters.

    Args:
        judge: The judge's keys in the file.
    """
    for key in ("path", "process_results", "function"):
        if isinstance(named := judge.get(key), str):
            yield key, named
    filters = judge.get("filters")
    for at, step in enumerate(filters if isinstance(filters, list | tuple) else ()):
        for key in ("function", "filter_fn"):
            named = step.get(key) if isinstance(step, dict) else None
            if isinstance(named, str) and ":" in named:
                yield f"filters[{at}].{key}", named


def judge_trees(spec: JsonView) -> Iterator[JudgeNode]:
    """Yield the trees of a stored spec's judge and of its metrics' judges."""
    yield judge_tree(spec.get("judge"))
    for index, metric in enumerate(spec.get("metrics") or ()):
        yield judge_tree(metric["judge"], f"metrics[{index}].judge")


def model_name(model: JsonView) -> str:
    """The name of a judge's model: its `name`, else its `judge_id`."""
    return str(model.get("name", model.get("judge_id")))


def judge_place(judge: str, model: JsonView) -> str:
    """The storage key of a judge's model, which begins with the judge's storage key."""
    return f"{judge}.{model.get('judge_id', model.get('name'))}"


def metric_place(name: object) -> str:
    """The storage key of a metric's judge, from the metric's name."""
    return f"metrics.{name}"


def judging_models(spec: JsonView) -> Iterator[Placed]:
    """Yield the models of a stored spec's judges, metrics' included, with their keys.

    The keys are those of `judge_place`.
    """
    judges = [("judge", spec.get("judge"))]
    judges += [(metric_place(each["name"]), each["judge"]) for each in spec.get("metrics") or ()]
    for place, judge in judges:
        for model in judge_tree(judge).models:
            yield judge_place(place, model), model


def judging_fingerprints(identity: JsonView) -> JsonObject:
    """Weight fingerprints of judge models, by model name, from a campaign's identity."""
    of_judge = (identity.get("judge_identity") or {}).get("fingerprints", {})
    return {**identity.get("metric_fingerprints", {}), **of_judge}


def scored_by(judge: object) -> tuple[str, ...]:
    """Names of the models that a judge of single outputs uses to score or to choose.

    For a third-party judge these are the models in its parameters `model` or `models`.
    """
    models = judge_tree(judge).models
    return tuple(dict.fromkeys(str(each.get("judge_id", each.get("name"))) for each in models))


def names_file(template: str) -> bool:
    """Whether a judge's template is a file's path, not the template's text or name."""
    return template.endswith((".j2", ".jinja", ".jinja2", ".txt")) and "\n" not in template


def is_human(spec: JsonView) -> bool:
    """Whether the judge of a stored campaign's spec is the human judge."""
    return judge_tree(spec.get("judge")).type == HUMAN
