"""What the key `task` of a campaign's file stands for."""

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.data.inspect.campaign_keys import with_inspect
from winnow.tasks.data.inspect.definition import InspectTask
from winnow.tasks.data.lm_eval.campaign_keys import with_lm_eval
from winnow.tasks.data.task_keys import refuse_twice
from winnow.tasks.spec.sections.dataset import TaskSpec

OF_THE_JUDGE = ("metric", "filter", "scorer", "grader")
"""Keys of `task` that say how its own judge judges."""


def with_task(values: JsonView, task: TaskSpec, read: InspectTask | None = None) -> JsonObject:
    """The values of a campaign's file with what its task stands for in the place of the task.

    Args:
        values: As in the file.
        task: Its key `task`.
        read: What a task of Inspect holds, where somebody has allowed to run it; see `with_inspect`.

    Raises:
        SpecError: If the task does what Winnow does not, or the file says what the task says already.
    """
    refuse_twice(values, [key for key in OF_THE_JUDGE if getattr(task, key) is not None])
    return with_lm_eval(values, task) if task.lm_eval is not None else with_inspect(values, task, read)
