"""The grammar of templates: they print, branch and loop.

They do not assign, define or load. The restriction bounds the output of a template by its own length times
the length of the data, so that no template exhausts the memory. Everything that multiplies (repetition,
powers, padding, nested definitions) is forbidden. `sandboxed_templates` limits what can still grow (`join`,
`replace`), and the time of loops and filters.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NoReturn, Self

from jinja2 import nodes

from winnow.tasks.errors import TemplateError, unknown_name

TARGET = "target"
MAX_LOOP_DEPTH = 2

_FILTERS = """
    abs capitalize count d default dictsort first float int items join last length list lower map max min
    reject rejectattr replace reverse select selectattr sort string title tojson trim truncate unique upper
    wordcount
"""
_METHODS = """
    capitalize count endswith get items keys lower lstrip rstrip split splitlines startswith strip title
    upper values
"""
FILTERS = frozenset(_FILTERS.split())
METHODS = frozenset(_METHODS.split())

_ALLOWED: tuple[type[nodes.Node], ...] = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For),
    *(nodes.Const, nodes.Name, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.List, nodes.Tuple),
    *(nodes.CondExpr, nodes.And, nodes.Or, nodes.Not, nodes.Compare, nodes.Operand, nodes.Test),
    *(nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Neg, nodes.Pos),
    *(nodes.Concat, nodes.Filter, nodes.Call, nodes.Keyword),
)
_WRITTEN = {
    nodes.Assign: "{% set %}",
    nodes.AssignBlock: "{% set %}",
    nodes.Block: "{% block %}",
    nodes.CallBlock: "{% call %}",
    nodes.Dict: "a mapping in braces",
    nodes.Extends: "{% extends %}",
    nodes.FilterBlock: "{% filter %}",
    nodes.FromImport: "{% from %}",
    nodes.Import: "{% import %}",
    nodes.Include: "{% include %}",
    nodes.Macro: "{% macro %}",
    nodes.Pow: "**",
    nodes.With: "{% with %}",
}


class KnownFields(tuple[str, ...]):
    """Names of the fields that all examples have, with omitted contents."""

    left_out: Mapping[str, str]
    """Contents that cannot be stored, such as "bytes (d.parquet, row 1)", by field name."""
    target: str | None
    """Name of the target column, which is not a field; None if it is `target`."""

    @classmethod
    def of(cls, names: Iterable[str], left_out: Mapping[str, str], target: str | None) -> Self:
        """Create an instance from names in order, and the omitted contents."""
        made = cls(names)
        made.left_out, made.target = left_out, target
        return made

    def with_more(self, *names: str) -> Self:
        """A copy with further field names."""
        return self.of((*self, *names), self.left_out, self.target)


def left_out_part(name: str, left_out: Mapping[str, str]) -> str | None:
    """The omitted field to which a name refers, entirely or in part; None if none."""
    return next((each for each in left_out if f"{name}.".startswith(f"{each}.")), None)


def not_stored(name: str, holds: str) -> str:
    """The error message for a required field that was omitted."""
    return (
        f"field {name!r} contains {holds}, which cannot be stored; convert it to text or numbers, use "
        "another field, or exclude such rows by dataset.filter"
    )


def check_grammar(tree: nodes.Template, tests: Collection[str], path: str | None) -> None:
    """Check that a parsed template uses nothing outside the grammar.

    Raises:
        TemplateError: The template does; the message has the line and the forbidden element.
    """
    for node in tree.find_all(nodes.Node):
        if not isinstance(node, _ALLOWED):
            name = _WRITTEN.get(type(node), type(node).__name__.lower())
            _refuse(node, f"{name} is not allowed; a template can only print, branch and loop", path)
        match node:
            case nodes.Filter(name=name) if name not in FILTERS:
                _refuse(node, unknown_name("filter", name, FILTERS), path)
            case nodes.Test(name=name) if name not in tests:
                _refuse(node, unknown_name("test", name, tests), path)
            case nodes.Getattr(attr=name) if name.startswith("_"):
                _refuse(node, f".{name} is not allowed; write ['{name}'] for a field of that name", path)
            case nodes.Call(node=called):
                _check_call(called, path)
            case nodes.List() | nodes.Tuple(ctx="load") if not _is_constant(node):
                _refuse(
                    node, "a list can contain only constants; add the list as a field of the dataset", path
                )
            case nodes.For(recursive=True):
                _refuse(node, "a recursive loop is not allowed; write the loops out", path)
    _check_loop_depth(tree, 0, path)


def check_variables(
    tree: nodes.Template,
    used: Collection[str],
    allowed: Collection[str],
    path: str | None,
    *,
    shows_target: bool = False,
) -> None:
    """Check that a template uses available variables, and the target only if allowed.

    Raises:
        TemplateError: The template uses another variable; the message has the line, the variable and the
            available ones.
    """
    forbidden = set() if shows_target else {TARGET} & set(used)
    left_out = allowed.left_out if isinstance(allowed, KnownFields) else {}
    for name in sorted(set(used) - set(allowed) | forbidden):
        node = next(node for node in tree.find_all(nodes.Name) if node.name == name)
        if name in forbidden:
            _refuse(node, "the target is never shown to a model; remove {{ target }}", path)
        if name in left_out:
            _refuse(node, not_stored(name, left_out[name]), path)
        if isinstance(allowed, KnownFields) and name == allowed.target:
            _refuse(node, _never_shown(name, name, shows_target=shows_target), path)
        _refuse(node, unknown_name("variable", name, set(allowed) - {TARGET}), path)


def check_parts(
    dotted: Mapping[str, nodes.Node], allowed: Collection[str] | None, path: str | None, *, shows_target: bool
) -> None:
    """Check that no dotted name in a template is an omitted or removed part.

    Raises:
        TemplateError: A name is such a part; the message has the line and the field's contents.
    """
    if not isinstance(allowed, KnownFields):
        return
    for name, node in dotted.items():
        if name in allowed.left_out:
            _refuse(node, not_stored(name, allowed.left_out[name]), path)
        if allowed.target is not None and f"{name}.".startswith(f"{allowed.target}."):
            _refuse(node, _never_shown(allowed.target, name, shows_target=shows_target), path)


def _never_shown(target: str, name: str, *, shows_target: bool) -> str:
    """The error message for a template that names the target column or a part of it."""
    remedy = (
        "write {{ target }}"
        if shows_target
        else f"remove {{{{ {name} }}}}; if it is the input, exchange dataset.fields.input and "
        "dataset.fields.target"
    )
    return f"{target} is the target, which is never shown to a model; {remedy}"


def _check_call(called: nodes.Node, path: str | None) -> None:
    match called:
        case nodes.Getattr(attr=name) if name in METHODS:
            return
        case nodes.Getattr(attr=name):
            _refuse(called, unknown_name("method", name, METHODS), path)
        case nodes.Name(name=name):
            _refuse(called, f"{name}() is not allowed; write value | filter or value.method()", path)
    _refuse(called, "only a method of a value may be called, such as input.strip()", path)


def _is_constant(node: nodes.Expr) -> bool:
    parts = (nodes.Const, nodes.List, nodes.Tuple, nodes.Neg)
    return all(isinstance(child, parts) for child in node.find_all(nodes.Node))


def _check_loop_depth(node: nodes.Node, depth: int, path: str | None) -> None:
    for child in node.iter_child_nodes():
        is_loop = isinstance(child, nodes.For)
        if is_loop and depth == MAX_LOOP_DEPTH:
            _refuse(
                child, f"loops can be nested at most {MAX_LOOP_DEPTH} deep; prepare the data instead", path
            )
        _check_loop_depth(child, depth + is_loop, path)


def _refuse(node: nodes.Node, sentence: str, path: str | None) -> NoReturn:
    raise TemplateError(f"line {node.lineno} of the template: {sentence}", path)
