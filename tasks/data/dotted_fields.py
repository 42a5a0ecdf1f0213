"""Fields of templates whose own names have dots: `answers.text` is the column of that name before anything.

To jinja2, it is the attribute `text` of the variable `answers`.
"""

from collections.abc import Collection

import jinja2
from jinja2 import nodes
from jinja2.runtime import Context
from jinja2.utils import missing
from jinja2.visitor import NodeTransformer

FIELD, IS_FIELD = "the field of a name", "is there a field of a name"
"""Names of the filters below; no template can write these names."""


@jinja2.pass_context
def _field(context: Context, name: str) -> object:
    return context.resolve(name)


@jinja2.pass_context
def _is_field(context: Context, name: str) -> bool:
    return context.resolve_or_missing(name) is not missing


FILTERS = {FIELD: _field, IS_FIELD: _is_field}


def chains(tree: nodes.Template, free: Collection[str]) -> dict[str, nodes.Getattr]:
    """The dotted names of a template, such as `answers.text`, each with a node; `free` are its variables."""
    found = ((_chain(node), node) for node in tree.find_all(nodes.Getattr))
    return {name: node for name, node in found if name is not None and name.partition(".")[0] in free}


def needed_fields(tree: nodes.Template, free: Collection[str]) -> set[str]:
    """The fields that an expression cannot do without; `row` is the whole row, `is defined` needs none."""
    tests = [node.node for node in tree.find_all(nodes.Test) if node.name in ("defined", "undefined")]
    asked = {name for node in tests if (name := _chain(node)) is not None}
    used = {*free, *chains(tree, free)} - asked
    return {name.removeprefix("row.") for name in used - {"row"}}


def name_dotted_fields(
    tree: nodes.Template, free: Collection[str], known: Collection[str] | None
) -> set[str]:
    """Have a template use fields whose names have dots.

    Args:
        tree: The template, which is changed.
        free: Its variables.
        known: Names of all fields; None where they are known only when it is rendered.

    Returns:
        Those that it uses, as far as they are known.
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
    """A name with dots as a template writes it; None where the node is something else."""
    if isinstance(node, nodes.Name):
        return node.name
    if not isinstance(node, nodes.Getattr):
        return None
    inner = _chain(node.node)
    return None if inner is None else f"{inner}.{node.attr}"
