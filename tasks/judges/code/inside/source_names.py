"""Global names that Python source defines and needs, determined without running it."""

import ast
import builtins
import symtable
from collections.abc import Iterator
from dataclasses import dataclass

NO_PYTHON = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError)
"""Exceptions of `compile` and related functions for text that is not Python."""

_BUILT_IN = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__"}
_WRITTEN_LATE = frozenset({"exec", "globals", "setattr", "vars"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceNames:
    """Module-level names of one source."""

    defined: frozenset[str]
    """Names that the source assigns, or defines as a function or class."""
    imported: frozenset[str]
    """Names that the source only imports."""
    needed: frozenset[str]
    """Names that the source uses without binding them, or before it binds them; without built-in names."""
    at_once: frozenset[str]
    """Needed names that are used at import, not only in the bodies of functions."""
    defines_unseen: bool
    """Whether the source may define names invisibly, by `import *`, `exec`, `globals()` and the like."""


def names_of(source: str) -> SourceNames:
    """Global names that a source defines, imports and needs.

    Raises:
        SyntaxError, ValueError, OverflowError, RecursionError, MemoryError: If the source is not Python.
    """
    tree = ast.parse(source)
    compile(tree, "program.py", "exec", dont_inherit=True)
    table = symtable.symtable(source, "program.py", "exec")
    bound = {each.get_name(): each for each in table.get_symbols() if _is_bound(each)}
    declared, used = _global_names(table)
    at_once = _used_unbound(tree) - _BUILT_IN
    defined = {name for name, each in bound.items() if _is_more_than_imported(each)} | declared
    imported = bound.keys() - defined
    return SourceNames(
        defined=frozenset(defined),
        imported=frozenset(imported),
        needed=frozenset(used - _BUILT_IN - defined - imported | at_once),
        at_once=frozenset(at_once),
        defines_unseen=_defines_unseen(tree),
    )


def _is_bound(symbol: symtable.Symbol) -> bool:
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()


def _is_more_than_imported(symbol: symtable.Symbol) -> bool:
    return symbol.is_namespace() or not symbol.is_imported()


def _global_names(module: symtable.SymbolTable) -> tuple[set[str], set[str]]:
    """Global names that functions and classes assign, and global names used anywhere."""
    assigned: set[str] = set()
    used = {each.get_name() for each in module.get_symbols() if each.is_referenced()}
    waiting = list(module.get_children())
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        for each in table.get_symbols():
            if each.is_global():
                assigned |= {each.get_name()} if each.is_assigned() else set()
                used |= {each.get_name()} if each.is_referenced() else set()
    return assigned, used


def _used_unbound(tree: ast.Module) -> set[str]:
    """Names that statements use at import before any statement has bound them."""
    bound: set[str] = set()
    found: set[str] = set()
    for statement in tree.body:
        nodes = list(_run_at_once(statement))
        stored = {name for node in nodes for name in _stored(node)}
        loaded = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            loaded.add(statement.target.id)
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr):
            loops = [each.target for each in nodes if isinstance(each, ast.comprehension)]
            own = {each.id for loop in loops for each in ast.walk(loop) if isinstance(each, ast.Name)}
        else:
            own = stored - {getattr(statement, "name", None)}
        found |= loaded - own - bound
        bound |= stored
    return found


def _run_at_once(statement: ast.stmt) -> Iterator[ast.AST]:
    """Nodes of a statement without the bodies of its functions."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += [*getattr(node, "decorator_list", ()), *node.args.defaults]
            waiting += [each for each in node.args.kw_defaults if each is not None]
        else:
            waiting += ast.iter_child_nodes(node)


def _stored(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0]
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name


def _defines_unseen(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(each.name == "*" for each in node.names):
            return True
        if isinstance(node, ast.Name) and node.id in _WRITTEN_LATE:
            return True
    return False
