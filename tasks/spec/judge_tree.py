"""Judges by name, and the nested judges and models in a judge's spec.

Each entry of the table defines which parameters of a judge hold judges and which hold models. All others hold
data, in any form: a JSON schema may contain mappings that look like a judge or a model. The content of a
plug-in's parameters is unknown; by convention, `model` and `models` describe models.
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
"""Key in a judge's section that names outputs needing no verdict; it is not a parameter of the judge."""


def spares(spec: JsonView) -> bool:
    """Whether a stored campaign spares verdicts on equal outputs."""
    return (spec.get("judge") or {}).get(SPARE) is not None


@dataclass(frozen=True, slots=True)
class Maker:
    """Factory of one of Winnow's judges."""

    location: str
    """"module:callable", below `winnow.tasks.judges`."""
    version: int
    """Increased when a verdict can change: a campaign continues only with the version that it began with."""

    def load(self) -> Any:  # noqa: ANN401 -- each makes a judge of its own class
        """Import and return the callable."""
        return object_at(f"winnow.tasks.judges.{self.location}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeEntry:
    """One of Winnow's judges, and which of its parameters hold judges and models."""

    outputs: Maker | None = None
    """Factory of the judge of single outputs, if there is one of this name."""
    pairs: Maker | None = None
    """Factory of the judge of pairs of outputs, if there is one of this name."""
    judges: str | None = None
    """The parameter with a judge or a list of them."""
    combines: bool = False
    """Whether the judge's score depends only on the scores of its nested judges."""
    models: tuple[str, ...] = ()
    """The parameters with a model or a list of them."""


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
"""Winnow's judges by name. A plug-in cannot replace one."""

BUILT_IN = {name: each.outputs for name, each in JUDGES.items() if each.outputs is not None}
PAIRS = {name: each.pairs for name, each in JUDGES.items() if each.pairs is not None}
"""Factories of Winnow's judges of outputs, and of pairs, by name."""

_OF_PLUGINS = JudgeEntry(models=_MODELS)


Placed = tuple[str, JsonObject]
"""A mapping with its key in the file, such as `judge.models[1]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeNode:
    """A judge with its nested judges and models."""

    place: str
    """Its key in the file, such as `judge.judges[1]`."""
    type: str | None
    """The judge's name; None if the file gives no name, which its reader refuses."""
    params: JsonView
    """All of its keys in the file, including its type."""
    own_models: tuple[Placed, ...] = ()
    """The models in its own parameters."""
    inner: "tuple[JudgeNode, ...]" = ()

    @property
    def is_plugin(self) -> bool:
        """Whether the judge is third-party, whose parameters may hold any judge or model."""
        return self.type not in JUDGES

    def walk(self) -> "Iterator[JudgeNode]":
        """This judge and all nested judges."""
        yield self
        for each in self.inner:
            yield from each.walk()

    @property
    def models(self) -> tuple[JsonObject, ...]:
        """The models of this judge and of all nested judges, as described in the spec."""
        return tuple(given for each in self.walk() for _, given in each.own_models)

    @property
    def parts(self) -> "tuple[JudgeNode, ...]":
        """The judges whose scores it combines; itself if it is not a combination."""
        if self.type is None or self.is_plugin or not JUDGES[self.type].combines:
            return (self,)
        return tuple(part for each in self.inner for part in each.parts)


def judge_tree(given: object, place: str = "judge") -> JudgeNode:
    """The tree of a judge in a spec; malformed parts are left to their reader."""
    params: JsonView = given if isinstance(given, dict) else {}
    name = params.get("type")
    type_ = name if isinstance(name, str) else None
    entry = JUDGES.get(type_ or "")
    models = [each for key in (entry or _OF_PLUGINS).models for each in _held(params, key, place)]
    inner: tuple[JudgeNode, ...] = ()
    if entry is None:  # by the same convention, judges that it holds may have models
        for at, each in _held(params, "judges", place):
            models += [model for node in judge_tree(each, at).walk() for model in node.own_models]
    elif entry.judges is not None:
        inner = tuple(judge_tree(each, at) for at, each in _held(params, entry.judges, place))
    return JudgeNode(place=place, type=type_, params=params, own_models=tuple(models), inner=inner)


def _held(params: JsonView, key: str, place: str) -> Iterator[Placed]:
    """Mappings in a parameter, each with its key: a list of them if its name is a plural."""
    value = params.get(key)
    if not key.endswith("s"):
        if isinstance(value, dict):
            yield f"{place}.{key}", value
        return
    for index, each in enumerate(value if isinstance(value, list | tuple) else ()):
        if isinstance(each, dict):
            yield f"{place}.{key}[{index}]", each


def functions_of(judge: JsonView) -> Iterator[tuple[str, str]]:
    """Yield (key, FILE.py:FUNCTION) for each function of the user that a judge's parameters name.

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
    """The trees of a stored spec's judge and of its metrics' judges."""
    yield judge_tree(spec.get("judge"))
    for index, metric in enumerate(spec.get("metrics") or ()):
        yield judge_tree(metric["judge"], f"metrics[{index}].judge")


def model_name(model: JsonView) -> str:
    """The name of a judge's model; `judge_id` and `name` replace each other if only one is given."""
    return str(model.get("name", model.get("judge_id")))


def judge_place(judge: str, model: JsonView) -> str:
    """The storage key of a judge's model, from the judge's key."""
    return f"{judge}.{model.get('judge_id', model.get('name'))}"


def metric_place(name: object) -> str:
    """The storage key of a metric's judge."""
    return f"metrics.{name}"


def judging_models(spec: JsonView) -> Iterator[Placed]:
    """The models of a stored spec's judge and of its metrics' judges, by `judge_place`."""
    judges = [("judge", spec.get("judge"))]
    judges += [(metric_place(each["name"]), each["judge"]) for each in spec.get("metrics") or ()]
    for place, judge in judges:
        for model in judge_tree(judge).models:
            yield judge_place(place, model), model


def judging_fingerprints(identity: JsonView) -> JsonObject:
    """Weight fingerprints of these models, by model name, from a campaign's identity."""
    of_judge = (identity.get("judge_identity") or {}).get("fingerprints", {})
    return {**identity.get("metric_fingerprints", {}), **of_judge}


def scored_by(judge: object) -> tuple[str, ...]:
    """Names of the models with which a judge of single outputs scores or chooses.

    For a third-party judge these are the models in its parameters `model` or `models`, as for Winnow's
    judges.
    """
    models = judge_tree(judge).models
    return tuple(dict.fromkeys(str(each.get("judge_id", each.get("name"))) for each in models))


def names_file(template: str) -> bool:
    """Whether a judge's template is a path instead of its text or name."""
    return template.endswith((".j2", ".jinja", ".jinja2", ".txt")) and "\n" not in template


def is_human(spec: JsonView) -> bool:
    """Whether a stored campaign has a human judge, by its spec."""
    return judge_tree(spec.get("judge")).type == HUMAN
