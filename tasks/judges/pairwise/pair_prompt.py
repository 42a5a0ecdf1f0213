"""The prompt of a judgment: a template of ours, of the user's, or one that was published elsewhere.

A template may use, by these or by the names that published ones use (`ALIASES`):

* question, answer_a, answer_b   the duel; answer_a is the one shown first
* reference                      the example's targets, one per line; empty where it has none
* reply_format                   how to reply, in words that fit what the judge reads (jinja2 only)
* boundary                       a mark that is in none of the texts, to fence them (jinja2 only)
* metadata                       the example's other fields, as in `metadata.category` (jinja2 only)

Only templates with a boundary keep a candidate's text from posing as the end of its own quotation.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from winnow.storage.json_types import JsonView
from winnow.storage.text import in_home
from winnow.tasks.data.sandboxed_templates import compile_template, render
from winnow.tasks.errors import JudgeError, unknown_name
from winnow.tasks.judges.asking.boundary import boundary
from winnow.tasks.judges.asking.calls import PresentationOrder
from winnow.tasks.judges.pairwise.brace_template import BracesTemplate, variables_in_braces
from winnow.tasks.judges.pairwise.verdicts import VerdictFormatName
from winnow.tasks.judges.protocol import Duel

BUILT_IN: Mapping[str, VerdictFormatName] = {"alpaca": "m/M", "arena-hard": "[[A>>B]]", "mt-bench": "[[A]]"}
"""Name -> the verdict format it is written for."""

ALIASES = {
    "question": ("question", "instruction", "QUESTION"),
    "answer_a": ("answer_a", "output_1", "ANSWER_A"),
    "answer_b": ("answer_b", "output_2", "ANSWER_B"),
    "reference": ("reference", "ref_answer_1", "REFERENCE"),
}
REPLY_FORMAT = "reply_format"

_PATH = "judge.template"
_FILE_SUFFIXES = (".j2", ".jinja", ".jinja2", ".txt")
_TEXTS = tuple(alias for aliases in ALIASES.values() for alias in aliases)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTemplate:
    """A template that has been checked."""

    source: str
    """Its text, even where it came from a file."""
    variables: frozenset[str]
    """Names of the variables that it uses."""
    fill: Callable[[JsonView], str] = field(repr=False, compare=False)
    """Puts in values; raises `TemplateError`."""

    def prompt(self, duel: Duel, presentation_order: PresentationOrder, reply_format: str) -> str:
        """The prompt of one judgment.

        Raises:
            TemplateError: If a value is missing or the prompt is longer than any context window.
        """
        answers = duel.answer_a, duel.answer_b
        first, second = answers if presentation_order == "original" else answers[::-1]
        reference = "\n".join(duel.targets)
        values = {"question": duel.question, "answer_a": first, "answer_b": second, "reference": reference}
        mark = boundary(values.values())
        named = {alias: values[name] for name, aliases in ALIASES.items() for alias in aliases}
        given = {"boundary": mark, REPLY_FORMAT: reply_format, "metadata": dict(duel.fields)}
        return self.fill({**named, **given})


def load_template(template: str) -> PairTemplate:
    """The template of this name, in this file or of this text.

    Args:
        template: A key of `BUILT_IN`, a path that ends in .j2, .jinja, .jinja2 or .txt, or the text itself.

    Raises:
        JudgeError: If it is a name or file that there is not, or does not show both answers.
        TemplateError: If it cannot be compiled or uses a variable that it will not be given.
    """
    source = _source(template)
    pair_template = _compiled(source)
    for answer in ("answer_a", "answer_b"):
        if not pair_template.variables & set(ALIASES[answer]):
            raise JudgeError(f"the template never shows {answer}; a judge must see both answers", _PATH)
    return pair_template


def names_file(template: str) -> bool:
    """Whether a template is given as a path, and not as its text or its name."""
    return template.endswith(_FILE_SUFFIXES) and "\n" not in template


def _source(template: str) -> str:
    if template in BUILT_IN:
        folder = files("winnow.tasks.judges.pairwise") / "templates"
        return (folder / f"{template}.j2").read_text(encoding="utf-8")
    if names_file(template):
        try:
            return Path(in_home(template)).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            sentence = f"the file {template!r} cannot be read as text ({error}); give its path from here"
            raise JudgeError(f"{sentence}, {Path.cwd()}", _PATH) from error
    if "{" not in template:
        sentence = unknown_name("template", template, BUILT_IN)
        raise JudgeError(f"{sentence}; or give a file ending .j2 or the text itself", _PATH)
    return template


def _compiled(source: str) -> PairTemplate:
    in_braces = variables_in_braces(source)
    if all(in_braces & set(ALIASES[answer]) for answer in ("answer_a", "answer_b")):
        braces = BracesTemplate(source, _TEXTS, _PATH)
        return PairTemplate(source=source, variables=in_braces, fill=braces.render)
    jinja = compile_template(source, (*_TEXTS, "boundary", REPLY_FORMAT, "metadata"), _PATH)
    return PairTemplate(
        source=source,
        variables=jinja.variables,
        fill=lambda values: render(jinja, {name: values[name] for name in jinja.variables}),
    )
