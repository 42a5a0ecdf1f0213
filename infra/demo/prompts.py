"""The demo's prompt templates: one per style of answer, and one for the judge of duels."""

TEMPLATES = {
    "direct": "{{ task }} {{ input }} =",
    "scratchpad": "{{ task }} {{ input }} steps:",
    "reversed": "{{ task }} {{ input }} reversed:",
}
"""Style -> jinja2 template over the fields `task` and `input` of an example."""

JUDGE_TEMPLATE = "{{ metadata.task }} {{ question }} | {{ answer_a }} | {{ answer_b }} |"
"""Jinja2 template of the prompt for the judge of duels."""


def render(style: str, task: str, input: str) -> str:
    """Render the template of `style` for one example."""
    return TEMPLATES[style].replace("{{ task }}", task).replace("{{ input }}", input)


def judge_prompt(task: str, input: str, first: str, second: str) -> str:
    """Render `JUDGE_TEMPLATE` for one example and two answers."""
    return f"{task} {input} | {first} | {second} |"
