"""The prompt templates of the demo: one text per style of answering, and one for the judge of duels."""

TEMPLATES = {
    "direct": "{{ task }} {{ input }} =",
    "scratchpad": "{{ task }} {{ input }} steps:",
    "reversed": "{{ task }} {{ input }} reversed:",
}
"""Jinja2 templates over the fields `task` and `input` of an example, by style."""

JUDGE_TEMPLATE = "{{ metadata.task }} {{ question }} | {{ answer_a }} | {{ answer_b }} |"
"""Jinja2 template of what the judge of duels reads."""


def render(style: str, task: str, input: str) -> str:
    """The prompt that the template of `style` makes of one example."""
    return TEMPLATES[style].replace("{{ task }}", task).replace("{{ input }}", input)


def judge_prompt(task: str, input: str, first: str, second: str) -> str:
    """The prompt that `JUDGE_TEMPLATE` makes of one example and two answers."""
    return f"{task} {input} | {first} | {second} |"
