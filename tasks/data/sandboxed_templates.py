"""Prompt templates: jinja2 in a sandbox, strict about names, with bounded output.

Values are data: a field that contains `{{ ... }}` is printed unchanged. The template itself comes from a spec
of possibly unknown origin, so it cannot reach outside its values, load files, or exhaust the memory.

A field's own name can contain dots: `answers.text` is the column of that name if there is one. For jinja2 it
is the attribute `text` of the variable `answers`.
"""

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps

import jinja2
from jinja2 import meta, nodes
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing
from jinja2.visitor import NodeTransformer

from winnow.tasks.data.template_grammar import FILTERS, check_grammar, check_parts, check_variables
from winnow.tasks.errors import TemplateError

FIELD, IS_FIELD = "the field of a name", "is there a field of a name"
"""Names of the filters below; no template can contain these names."""


@jinja2.pass_context
def _field(context: Context, name: str) -> object:
    return context.resolve(name)


@jinja2.pass_context
def _is_field(context: Context, name: str) -> bool:
    return context.resolve_or_missing(name) is not missing


FIELD_FILTERS = {FIELD: _field, IS_FIELD: _is_field}


def chains(tree: nodes.Template, free: Collection[str]) -> dict[str, nodes.Getattr]:
    """The dotted names in a template, such as `answers.text`, each with a node.

    Here `free` are the template's variables.
    """
    found = ((_chain(node), node) for node in tree.find_all(nodes.Getattr))
    return {name: node for name, node in found if name is not None and name.partition(".")[0] in free}


def needed_fields(tree: nodes.Template, free: Collection[str]) -> set[str]:
    """The fields that an expression requires.

    `row` stands for the whole row, and `is defined` requires no field.
    """
    tests = [node.node for node in tree.find_all(nodes.Test) if node.name in ("defined", "undefined")]
    asked = {name for node in tests if (name := _chain(node)) is not None}
    used = {*free, *chains(tree, free)} - asked
    return {name.removeprefix("row.") for name in used - {"row"}}


def name_dotted_fields(
    tree: nodes.Template, free: Collection[str], known: Collection[str] | None
) -> set[str]:
    """Make a template use fields whose names contain dots.

    Args:
        tree: The template, which is changed.
        free: The template's variables.
        known: Names of all fields; None if they are known only when the template is rendered.

    Returns:
        The fields with dots that the template uses; empty if `known` is None.
    """
    if known is not None and not any("." in name for name in known):
        return set()
    bound = {name.name for loop in tree.find_all(nodes.For) for name in loop.target.find_all(nodes.Name)}
    bound |= {loop.target.name for loop in tree.find_all(nodes.For) if isinstance(loop.target, nodes.Name)}
    transformer = _Transformer(set(free) - bound, known)
    transformer.visit(tree)
    return transformer.found


class _Transformer(NodeTransformer):
    def __init__(self, heads: set[str], known: Collection[str] | None) -> None:
        self.found: set[str] = set()
        self._heads = heads
        self._known = known

    def visit_Getattr(self, node: nodes.Getattr) -> nodes.Node:
        name = _chain(node)
        if name is None or name.partition(".")[0] not in self._heads:
            return self.generic_visit(node)
        if self._known is None:
            plain = self.generic_visit(node)
            return nodes.CondExpr(
                _named(IS_FIELD, name, node), _named(FIELD, name, node), plain, lineno=node.lineno
            )
        if name not in self._known:
            return self.generic_visit(node)
        self.found.add(name)
        return _named(FIELD, name, node)


def _named(filter_: str, name: str, at: nodes.Node) -> nodes.Filter:
    constant = nodes.Const(name, lineno=at.lineno)
    return nodes.Filter(constant, filter_, [], [], None, None, lineno=at.lineno)


def _chain(node: nodes.Node) -> str | None:
    """A name with dots as a template writes it; None for any other node."""
    if isinstance(node, nodes.Name):
        return node.name
    if not isinstance(node, nodes.Getattr):
        return None
    inner = _chain(node.node)
    return None if inner is None else f"{inner}.{node.attr}"


MAX_CHARACTERS = 1_000_000  # longer than any context window today

MAX_STEPS = 1_000_000
"""Maximum number of loop turns and filter calls in one rendering."""

MAX_SECONDS = 5.0
"""Maximum seconds of one rendering, because a step takes longer on a long text than on a short one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A checked template."""

    source: str
    """The source in the spec."""
    path: str | None
    """The template's key in the spec, with which error messages begin."""
    variables: frozenset[str]
    """The fields that the template uses; all of them are required."""
    compiled: jinja2.Template
    """The jinja2 template that renders it."""
    needed: frozenset[str] = frozenset()
    """For a condition: the fields that it requires, including dotted names.

    Fields that the condition tests with `is defined` are excluded.
    """


def compile_template(
    source: str, allowed: Collection[str] | None, path: str | None = None, *, shows_target: bool = False
) -> Template:
    """Check and compile a template.

    Args:
        source: jinja2; `tasks.data.template_grammar` defines the allowed part of it.
        allowed: The available fields, as in `Dataset.field_names`; None if they are not known yet. "target"
            is not allowed.
        path: The template's key in the spec, such as "prompts[0].template".
        shows_target: Whether "target" is allowed too, as for solved examples.

    Raises:
        TemplateError: The template is not jinja2, or uses a variable that is not allowed (above all the
            target), or anything outside the grammar.
    """
    with _in_a_sentence(path):
        tree = _ENVIRONMENT.parse(source)
        check_grammar(tree, _ENVIRONMENT.tests, path)
        free = meta.find_undeclared_variables(tree)
        check_parts(chains(tree, free), allowed, path, shows_target=shows_target)
        dotted = name_dotted_fields(tree, free, allowed)
        variables = frozenset(meta.find_undeclared_variables(tree) | dotted)
        known = variables if allowed is None else allowed
        check_variables(tree, variables, known, path, shows_target=shows_target)
        _count_turns(tree)
        return Template(source=source, path=path, variables=variables, compiled=_compiled(tree))


def compile_condition(source: str, path: str) -> Template:
    """Check and compile an expression, such as "level > 3 and answer", for `holds`.

    Raises:
        TemplateError: The text is not an expression, or uses anything outside the grammar.
    """
    with _in_a_sentence(path):
        parser = Parser(_ENVIRONMENT, source, state="variable")
        condition = parser.parse_expression()
        if not parser.stream.eos:
            parser.fail("there is text after the end of the expression")
        printed = nodes.CondExpr(condition, nodes.Const("1"), nodes.Const(""), lineno=1)
        tree = nodes.Template([nodes.Output([printed], lineno=1)], lineno=1)
        tree.set_environment(_ENVIRONMENT)
        check_grammar(tree, _ENVIRONMENT.tests, path)
        variables = frozenset(meta.find_undeclared_variables(tree))
        needed = frozenset(needed_fields(tree, variables))
        name_dotted_fields(tree, variables, None)
        compiled = _compiled(tree)
        return Template(source=source, path=path, variables=variables, compiled=compiled, needed=needed)


def holds(condition: Template, row: Mapping[str, object], place: str) -> bool:
    """Whether a condition is true for a row.

    The condition can use the row's columns, and `row` for the whole row.

    Raises:
        TemplateError: The condition names a column that the row lacks, or fails in another way; the message
            begins with `place`.
    """
    try:
        return render(condition, {"row": row, **row}) != ""
    except TemplateError as error:
        raise TemplateError(f"{place}: {error.message}", condition.path) from error


def _compiled(tree: nodes.Template) -> jinja2.Template:
    compiled = _ENVIRONMENT.from_string(tree)
    compiled.globals = {}  # there are none, and looking for them takes time with each text
    return compiled


_ADVICE = {
    "unexpected '}'": "close {{ with }}, as in {{ input }}",
    "end of print statement": "close {{ with }}",
    "end of statement block": "close {% with %}",
    "Missing end of comment": "close {# with #}, or write {{ '{#' }} for the characters themselves",
    "Unexpected end of template": "close the block, such as {% if %} with {% endif %}",
    "Encountered unknown tag": "tags are {% if %}, {% for %}, {% set %} and their ends",
    "unexpected char": "put text in quotes, and names alone between {{ and }}",
}
"""Remedies by part of jinja2's message; the first match counts."""


@contextmanager
def _in_a_sentence(path: str | None) -> Iterator[None]:
    """Turn any error during the compilation of a template into a `TemplateError`."""
    try:
        yield
    except jinja2.TemplateSyntaxError as error:
        said = (error.message or "").rstrip(".")
        advice = next((f"; {advice}" for part, advice in _ADVICE.items() if part in said), "")
        raise TemplateError(f"line {error.lineno} of the template: {said}{advice}", path) from error
    except (RecursionError, MemoryError, SyntaxError) as error:
        raise TemplateError("the template is nested too deeply; simplify it", path) from error
    except TemplateError:
        raise
    except Exception as error:  # constant expressions are evaluated here already, and can fail
        raise TemplateError(_sentence(error), path) from error


def render(template: Template, fields: Mapping[str, object], key: str | None = None) -> str:
    """Render the prompt for one example.

    Args:
        template: The template, from `compile_template`.
        fields: The example's fields: JSON values, which are printed and never interpreted.
        key: The example's key, for error messages.

    Raises:
        TemplateError: A value is missing or null, an expression fails, the prompt is longer than
            `MAX_CHARACTERS`, or rendering takes more than `MAX_STEPS` or `MAX_SECONDS`.
    """
    running = _work.set(_Work())
    try:
        return _joined(_pieces(template.compiled, fields))
    except Exception as error:  # filters can raise any exception
        where = "" if key is None else f"example {key!r}: "
        raise TemplateError(f"{where}{_sentence(error)}", template.path) from error
    finally:
        _work.reset(running)


def _pieces(compiled: jinja2.Template, fields: Mapping[str, object]) -> Iterator[str]:
    """Yield the pieces of a rendering.

    This is faster than jinja2's `generate`, which copies all names of the environment.
    """
    return compiled.root_render_func(compiled.new_context(dict(fields), shared=not compiled.globals))


class _Work:
    """Number of steps of one rendering so far, and its deadline."""

    def __init__(self) -> None:
        self._steps = 0
        self._deadline = time.monotonic() + MAX_SECONDS

    def step(self) -> None:
        """Count a step.

        Raises:
            _Unprintable: The rendering takes too many steps or too long.
        """
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise _Unprintable(f"the template takes more than {MAX_STEPS} steps; {_PREPARE}")
        if time.monotonic() > self._deadline:
            raise _Unprintable(f"the template takes more than {MAX_SECONDS:g} s; {_PREPARE}")


_PREPARE = "loop over less, or prepare the data instead"

_work: ContextVar[_Work | None] = ContextVar("_work", default=None)
"""The current rendering; None while a template is compiled, when filters can run on constants."""


def _sentence(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return f"the template failed: {text}" if not isinstance(error, _Unprintable) else text


class _Unprintable(ValueError):
    """A value that cannot be printed in a prompt."""


def _joined(texts: Iterable[str], separator: str = "") -> str:
    pieces: list[str] = []
    length = 0
    for text in texts:
        length += len(text) + (len(separator) if pieces else 0)
        if length > MAX_CHARACTERS:
            _refuse_longer(length)
        pieces.append(text)
    return separator.join(pieces)


def _refuse_longer(length: int) -> None:
    if length > MAX_CHARACTERS:
        raise _Unprintable(
            f"the prompt is longer than {MAX_CHARACTERS} characters; shorten the template or data"
        )


class _Sandbox(ImmutableSandboxedEnvironment):
    """Sandbox that forbids repeating texts or lists by an operator.

    Otherwise one number would decide the size of the output.
    """

    intercepted_binops = frozenset({"*", "%"})

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        for operand in (left, right):
            if not isinstance(operand, int | float):
                raise _Unprintable(f"{operator} needs numbers on both sides, got {type(operand).__name__}")
        return super().call_binop(context, operator, left, right)


def _printable(value: object) -> object:
    """Return a JSON value other than null.

    Raises:
        _Unprintable: The value is null, or not a JSON value.
    """
    if isinstance(value, str | int | float | list | dict | jinja2.Undefined):  # strict: an Undefined raises
        return value
    if value is None:
        raise _Unprintable("a value to print is null; write {{ name | default('', true) }} if it may be")
    raise _Unprintable(
        f"a {type(value).__name__} cannot be printed; call the method, or use | list or | join"
    )


def _join(values: Iterable[object], separator: str = "") -> str:
    return _joined((str(_printable(value)) for value in values), str(separator))


def _replace(text: str, old: str, new: str, count: int | None = None) -> str:
    text, old, new = str(text), str(old), str(new)
    _refuse_longer(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new, -1 if count is None else count)


def _to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)  # jinja2's own escapes < and & for web pages


COUNTED = "count each turn"
"""Name of the filter that counts loop turns; no template can write this name."""


@jinja2.pass_context  # this also prevents loops over constants from running during compilation
def _counted(_: Context, values: Iterable[object]) -> Iterator[object]:
    for value in values:
        _step()
        yield value


def _counting(filter_: Callable[..., object]) -> Callable[..., object]:
    """Wrap a filter so that each call counts as a step."""

    @wraps(filter_)
    def counting(*args: object, **kwargs: object) -> object:
        _step()
        return filter_(*args, **kwargs)

    return counting


def _step() -> None:
    if (work := _work.get()) is not None:
        work.step()


def counted_environment(filters: Mapping[str, Callable[..., object]]) -> jinja2.Environment:
    """All of jinja2 in a sandbox, with further filters.

    Filter calls and loop turns count as steps.
    """
    environment = _Sandbox(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    for name in set(environment.globals) - {"range", "dict"}:
        del environment.globals[name]
    known = {**environment.filters, "replace": _replace, **filters}
    for name in ("center", "format"):  # with these, one number decides the length of a text
        del known[name]
    environment.filters = {name: _counting(each) for name, each in known.items()} | {COUNTED: _counted}
    return environment


def counted_template(environment: jinja2.Environment, source: str, path: str) -> Template:
    """Compile a template of an environment from `counted_environment`, for `render`.

    Errors of jinja2 are passed on.
    """
    tree = environment.parse(source)
    _count_turns(tree)
    return Template(source=source, path=path, variables=frozenset(), compiled=environment.from_string(tree))


def _count_turns(tree: nodes.Template) -> None:
    for loop in tree.find_all(nodes.For):
        loop.iter = nodes.Filter(loop.iter, COUNTED, [], [], None, None, lineno=loop.lineno)


def _sandbox() -> _Sandbox:
    environment = _Sandbox(undefined=jinja2.StrictUndefined, keep_trailing_newline=True, finalize=_printable)
    environment.globals.clear()
    own: dict[str, Callable[..., object]] = {"join": _join, "replace": _replace, "tojson": _to_json}
    known = {**environment.filters, **own}
    environment.filters = {name: _counting(known[name]) for name in FILTERS}
    environment.filters |= {COUNTED: _counted, **FIELD_FILTERS}
    return environment


_ENVIRONMENT = _sandbox()
