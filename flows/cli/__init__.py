"""The commands of `winnow`; a command's module is imported when the command is used."""

import re
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from inspect import cleandoc
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand, TyperGroup

from winnow.algorithms.state.plugin_registry import object_at
from winnow.tasks.errors import SpecError, unknown_name

if TYPE_CHECKING:
    from typer._click import Command, Context, Parameter

COMMANDS = {
    "compare": "start.comparing:compare",
    "init": "start.specs:init",
    "validate": "campaigns:validate",
    "try": "start.trials:try_file",
    "schema": "start.specs:schema",
    "plan": "plan:plan",
    "run": "campaigns:run",
    "resume": "campaigns:resume",
    "rescore": "rescore:rescore",
    "import": "imports:app",
    "gate": "gating:gate",
    "schedule": "schedules:schedule",
    "label": "labels:label",
    "route": "routes:route",
    "status": "results.status:status",
    "list": "results.status:list_campaigns",
    "show": "results.status:show",
    "report": "results.status:report",
    "view": "results.dashboards:view",
    "metrics": "results.metrics:metrics",
    "query": "results.queries:query",
    "export": "results.exports:export",
    "simulate": "simulate:simulate",
    "selectors": "start.specs:selectors",
    "judges": "start.specs:judges",
    "db": "databases:app",
    "demo": "start.demo:demo",
}
"""Each command's module and function (or Typer group), in the order of the help."""


class _Commands(MutableMapping[str, "Command"]):
    """Mapping from a command's name to the command, which is created at the first look-up."""

    def __init__(self) -> None:
        self._made: dict[str, Command] = {}

    def __getitem__(self, name: str) -> "Command":
        if name not in self._made:
            self._made[name] = _command(name, COMMANDS[name])
        return self._made[name]

    def __setitem__(self, name: str, command: "Command") -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""The class of Typer's errors about a command line, for which Typer has no public name."""


class _Group(TyperGroup):
    """A group of commands whose errors name what is unknown, and the nearest known name."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Parse the arguments; usage errors get Winnow's wording."""
        with _plain_errors(ctx, args):
            return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: "Context", args: list[str]
    ) -> "tuple[str | None, Command | None, list[str]]":
        """Find the command to run; an unknown name raises a SpecError with the nearest known name."""
        if args[0] not in self.commands:
            known = self.list_commands(ctx)
            raise SpecError(unknown_name("command", args[0], known, command=f"{ctx.command_path} -h"))
        return super().resolve_command(ctx, args)


class _LazyGroup(_Group):
    """A command group that imports a command's module on use, and all modules for the help."""

    def __init__(self, **attributes: object) -> None:
        super().__init__(**attributes)  # type: ignore[arg-type]  # Typer's attributes, passed on
        self.commands = _Commands()

    def list_commands(self, ctx: object) -> list[str]:
        """See `TyperGroup`."""
        return list(COMMANDS)


_DEMANDS = (
    (re.compile(r"Input should be a valid integer.*"), "must be a whole number"),
    (re.compile(r"Input should be a valid number.*"), "must be a number"),
    (re.compile(r"Input should be greater than or equal to (\S+).*"), r"must be at least \1"),
    (re.compile(r"Input should be less than or equal to (\S+).*"), r"must be at most \1"),
    (re.compile(r"(?:Value error, )?'.*' is not one of (.*?)\.?$"), r"must be one of \1"),
)
"""Patterns of Typer's messages about a value, and their replacements."""


class _Command(TyperCommand):
    """A command whose errors name the argument or option, the mistake, and a correct form."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Parse the arguments; usage errors get Winnow's wording.

        `--set KEY VALUE` without "=" is refused, with the correct form.
        """
        for option, key, value in zip(args, args[1:], args[2:], strict=False):
            if option == "--set" and "=" not in key and not value.startswith("-"):
                written = f"{key}.{value}" if "=" in value else f"{key}={value}"
                raise SpecError(f"--set {key} {value}: write --set {written}")
        with _plain_errors(ctx, args):
            return super().parse_args(ctx, args)


@contextmanager
def _plain_errors(ctx: "Context", args: Sequence[str]) -> Iterator[None]:
    """Replace Typer's error about a command line by a SpecError with the correct form."""
    given = list(args)
    try:
        yield
    except typer.BadParameter as error:
        if error.param is None:
            raise
        raise SpecError(_sentence(error, error.param, ctx, given)) from None
    except _UsageError as error:
        if (sentence := _misplaced(str(error), ctx)) is None:
            raise
        raise SpecError(sentence) from None


def _misplaced(said: str, ctx: "Context") -> str | None:
    """The sentence for an unknown option, a missing value or too many arguments; None for other messages."""
    help_ = f"{ctx.command_path} -h"
    if match := re.match(r"No such option: ([^\s]+)", said):
        options = [each for param in ctx.command.params for each in param.opts if each.startswith("--")]
        after = "; a command's options come after it" if isinstance(ctx.command, TyperGroup) else ""
        return unknown_name("option", match[1], options, command=help_) + after
    if match := re.match(r"Option '(.*)' requires an argument", said):
        return f"{match[1]} needs a value ({help_} explains it)"
    if match := re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)$", said):
        names = [str(each.name).upper() for each in ctx.command.params if each.param_type_name == "argument"]
        takes = f"takes {' '.join(names)} and options only" if names else "takes options only"
        return f"unexpected {match[1]!r}: {ctx.command_path} {takes} ({help_} lists them)"
    return None


def _sentence(error: typer.BadParameter, param: "Parameter", ctx: "Context", args: list[str]) -> str:
    """Message about a missing or wrong argument or option, with a correct form, which Typer's lacks."""
    option = next((each for each in param.opts if each.startswith("--")), None)
    metavar = getattr(param, "metavar", None) or str(param.name).upper()
    if error.format_message().startswith("Missing "):
        if option is None:
            command = ctx.command_path
            return f"{metavar} is missing: write {command} {metavar} ({command} -h explains it)"
        help_ = (getattr(param, "help", None) or "").partition(". ")[0].rstrip(".")
        return f"{option} is missing; add {option} {metavar}" + (f" ({help_})" if help_ else "")
    message = error.message
    for theirs, ours in _DEMANDS:
        message = theirs.sub(ours, message)
    value = next((b for a, b in pairwise(args) if a in param.opts), None)
    such = f", such as {param.default}" if isinstance(param.default, int) else ""
    return f"{option or metavar}{'' if value is None else f' {value}'}: {message}{such}"


def _command(name: str, address: str) -> "Command":
    found = object_at(f"winnow.flows.cli.{address}")
    if isinstance(found, typer.Typer):
        found.info.cls = _Group
        for each in found.registered_commands:
            each.cls = _Command
            each.help = each.help or _help(each.callback)
        return typer.main.get_command(found)
    alone = typer.Typer(add_completion=False)
    alone.command(name=name, help=_help(found), cls=_Command)(found)
    return typer.main.get_command(alone)


def _help(function: object) -> str:
    # Join the lines of each paragraph, so that the terminal breaks them at its own width.
    paragraphs = cleandoc(function.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _print_version(wanted: bool) -> None:
    if wanted:
        import winnow

        typer.echo(f"winnow {winnow.__version__}")
        raise typer.Exit


app = typer.Typer(
    name="winnow",
    cls=_LazyGroup,
    help="Find the best of many language-model candidates with as few generations as possible.",
    epilog="Exit codes: 0 decided, 1 error, 2 wrong usage or invalid file, 3 undecided or waiting for "
    "people, 4 a candidate is worse than the baseline (gate), 130 interrupted, 143 ended by SIGTERM, "
    "129 ended by SIGHUP.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def main(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Find the best of many language-model candidates with as few generations as possible."""
