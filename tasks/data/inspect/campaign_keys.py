"""What `task: {inspect: ...}` of a file becomes: a dataset, prompts, settings and a judge."""

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.data.inspect.definition import InspectTask, generation_of, judge_of
from winnow.tasks.data.task_keys import filled_in, prompt_name
from winnow.tasks.spec.sections.dataset import TaskSpec

FIELDS = {"id": "id", "input": "input", "target": "target"}


def with_inspect(values: JsonView, task: TaskSpec, read: InspectTask | None) -> JsonObject:
    """The values of a campaign's file with what its task stands for in the place of the task.

    Args:
        values: As in the file.
        task: Its key `task`.
        read: What the task holds; None where nobody has allowed yet to run it. What follows from its code has
            then a placeholder: the rest says what would have to be allowed.

    Raises:
        SpecError: If the task does what Winnow does not.
    """
    own = {key: value for key, value in values.items() if key != "task"}
    described = {"task": task.inspect, "args": task.args, "python": task.python}
    own["dataset"] = {**values.get("dataset", {}), "inspect": described, "fields": FIELDS}
    if "judge" not in values and values.get("objective") != "best-duel":
        own["judge"] = _judge(task, read)
    if "prompts" not in values:
        name = prompt_name(str(task.inspect).rpartition("@")[2])
        own["prompts"] = [{"name": name, **_prompt(values, read)}]
    models = values.get("models")
    if read is not None and isinstance(models, list):
        own["models"] = [filled_in(each, generation_of(read)) for each in models]
    return own


def _judge(task: TaskSpec, read: InspectTask | None) -> JsonObject:
    if read is not None:
        return judge_of(read, task.scorer, task.grader)
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
