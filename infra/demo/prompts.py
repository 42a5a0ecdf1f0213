"""The prompt templates of the demo: one text per style of answering."""

TEMPLATES = {
    "direct": "{{ task }} {{ input }} =",
    "scratchpad": "{{ task }} {{ input }} steps:",
    "reversed": "{{ task }} {{ input }} reversed:",
}
"""Jinja2 templates over the fields `task` and `input` of an example, by style."""


def render(style: str, task: str, input: str) -> str:
    """The prompt that the template of `style` makes of one example."""
    return TEMPLATES[style].replace("{{ task }}", task).replace("{{ input }}", input)
