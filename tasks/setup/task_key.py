"""Fills in what the key `task` of a campaign's file stands for: a dataset, prompts, settings and a judge."""

import re
from pathlib import Path

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.data.hub import FORMATS
from winnow.tasks.data.inspect import definition as inspect_definition
from winnow.tasks.data.inspect.definition import InspectTask
from winnow.tasks.data.lm_eval import scoring as lm_eval_scoring
from winnow.tasks.data.lm_eval.definition import Definition, load_definition
from winnow.tasks.data.lm_eval.files import KEY, as_lm_eval_has_it
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.objectives import OBJECTIVES, traits_of
from winnow.tasks.spec.sections.dataset import TaskSpec

OF_THE_JUDGE = ("metric", "filter", "scorer", "grader")
"""Keys of `task` that say how its own judge judges."""


def with_task(values: JsonView, task: TaskSpec, read: InspectTask | None = None) -> JsonObject:
    """The values of a campaign's file with what its task stands for in the place of the task.

    Args:
        values: As in the file.
        task: Its key `task`.
        read: The content of a task of Inspect, where somebody has allowed to run it; see `with_inspect`.

    Raises:
        SpecError: If the task does what Winnow does not, or the file says what the task says already.
    """
    refuse_twice(values, [key for key in OF_THE_JUDGE if getattr(task, key) is not None])
    return with_lm_eval(values, task) if task.lm_eval is not None else with_inspect(values, task, read)


SELECTING = ("filter", "limit", "sample", "shuffle")
"""Keys of the dataset that may be given beside a task."""

BECOMES = ("dataset", "output_type", "choices", "target_delimiter", "prompts", "judge")
"""Keys of the file that a task stands for; `generate_config` of its models is filled in as well."""


def refuse_twice(values: JsonView, given: list[str]) -> None:
    """Refuse a file that says what its task says.

    Args:
        values: The values of the file.
        given: Keys of `task` that are for its own judge, where they are given.

    Raises:
        SpecError: Naming the key.
    """
    dataset = values.get("dataset", {})
    if not isinstance(dataset, dict):
        raise SpecError("must be a mapping of keys to values", "dataset")
    twice = [f"dataset.{key}" for key in dataset if key not in SELECTING]
    for key in ("output_type", "choices", "target_delimiter"):
        twice += [key] * (key in values)
    if twice:
        raise SpecError("is said by the task already; leave it out", twice[0])
    if "judge" in values and given:
        raise SpecError("is for the task's own judge; leave it out, or leave judge out", f"task.{given[0]}")


def filled_in(model: object, settings: JsonView) -> object:
    """A model of the file with settings of a task, before which its own go."""
    if not isinstance(model, dict):
        return model
    own = model.get("generate_config") or {}
    return {**model, "generate_config": {**settings, **own} if isinstance(own, dict) else own}


def prompt_name(task: str) -> str:
    """The name of the task, as names of prompts may be."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", task).lstrip("._-")[:100] or "task"


FIELDS = {"id": "id", "input": "input", "target": "target"}


def with_inspect(values: JsonView, task: TaskSpec, read: InspectTask | None) -> JsonObject:
    """The values of a campaign's file with what its task stands for in the place of the task.

    Args:
        values: As in the file.
        task: Its key `task`.
        read: The task's content; None where nobody has allowed yet to run it. What follows from its code has
            then a placeholder: the rest says what would have to be allowed.

    Raises:
        SpecError: If the task does what Winnow does not.
    """
    own = {key: value for key, value in values.items() if key != "task"}
    described = {"task": task.inspect, "args": task.args, "python": task.python}
    own["dataset"] = {**values.get("dataset", {}), "inspect": described, "fields": FIELDS}
    if "judge" not in values and not _compares_pairs(values):
        own["judge"] = _judge(task, read)
    if "prompts" not in values:
        name = prompt_name(str(task.inspect).rpartition("@")[2])
        own["prompts"] = [{"name": name, **_prompt(values, read)}]
    models = values.get("models")
    if read is not None and isinstance(models, list):
        own["models"] = [filled_in(each, inspect_definition.generation_of(read)) for each in models]
    return own


def _judge(task: TaskSpec, read: InspectTask | None) -> JsonObject:
    if read is not None:
        return inspect_definition.judge_of(read, task.scorer, task.grader)
    return {"type": "inspect-graded", "model": task.grader} if task.grader else {"type": "inspect"}


def _prompt(values: JsonView, read: InspectTask | None) -> JsonObject:
    if read is None:
        return {"template": "{{ input }}"}
    if read.is_one_question:
        return {"template": "{{ context }}"}
    models = values.get("models")
    for each in models if isinstance(models, list) else []:
        if isinstance(each, dict) and not each.get("chat"):
            name = each.get("name")
            read.refuse("shows models more than one message", f"set chat: true for the model {name!r}")
    return {"messages": [{"turns": "messages"}]}


OUTPUT_TYPES = {
    "multiple_choice": "multiple-choice",
    "loglikelihood": "loglikelihood",
    "loglikelihood_rolling": "perplexity",
}


def with_lm_eval(values: JsonView, task: TaskSpec) -> JsonObject:
    """The values of a campaign's file with what its task stands for in the place of the task.

    Args:
        values: As in the file.
        task: Its key `task`.

    Raises:
        SpecError: If the task does what Winnow does not.
    """
    assert task.lm_eval is not None
    with as_lm_eval_has_it(task.lm_eval, KEY):
        definition = load_definition(task.lm_eval, task.include_path)
        own = {key: value for key, value in values.items() if key != "task"}
        if "judge" not in values and not _compares_pairs(values):
            own["judge"] = lm_eval_scoring.judge_of(definition, task.metric, task.filter)
        return own | _of_the_definition(definition, values, task)


def _of_the_definition(definition: Definition, values: JsonView, task: TaskSpec) -> JsonObject:
    """All but the judge."""
    models = values.get("models") if isinstance(values.get("models"), list) else []
    chats = [bool(each.get("chat")) for each in models or [] if isinstance(each, dict)]
    shown = _Shown(definition, task, chats)
    found: JsonObject = {"dataset": {**values.get("dataset", {}), **shown.dataset()}, **shown.choices()}
    if "prompts" not in values:
        found["prompts"] = [{"name": prompt_name(definition.name), **shown.prompt()}]
    if definition.output_type != "generate_until":
        return {**found, "output_type": OUTPUT_TYPES[definition.output_type]}
    if models:
        found["models"] = [filled_in(each, lm_eval_scoring.generation_of(definition)) for each in models]
    return found


class _Shown:
    """The form in which a task is shown to the models of a campaign.

    Args:
        definition: The task.
        task: The file's key `task`.
        chats: Whether each model chats.
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
            raise SpecError("is for models that chat; leave it out", "task.fewshot_as_multiturn")
        if has_roles and self._are_mixed and not is_weighed:
            definition.refuse("is shown otherwise to models that chat", "ask those in another campaign")
        self._is_chat = has_roles and True in chats and not is_weighed
        self._multiturn = multiturn
        self._all_chat = bool(chats) and all(chats)

    def dataset(self) -> JsonObject:
        """The part of the campaign's key `dataset` that a task stands for."""
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
        """The part of the only entry of the campaign's key `prompts`."""
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
            return {"target_delimiter": ""}  # lm-eval puts none before what it weighs alone
        if definition.output_type != "multiple_choice":
            return {}
        if self._is_chat and definition.config.get("gen_prefix"):
            definition.refuse("begins the answers of chats (gen_prefix)", "ask models that do not chat")
        found: JsonObject = {"choices": {"field": "choices"}}
        if definition.target_delimiter == " ":
            return found  # Winnow's default is the same, also where a chat template ends the prompt
        if self._are_mixed:
            definition.refuse(
                f"has the target_delimiter {definition.target_delimiter!r}, which chats go without",
                "ask models that chat in a campaign of their own",
            )
        return {**found, "target_delimiter": "" if self._all_chat else definition.target_delimiter}


def _compares_pairs(values: JsonView) -> bool:
    objective = values.get("objective")
    return objective in OBJECTIVES and traits_of(objective).compares_pairs
