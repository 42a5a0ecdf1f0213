"""Digests of the code files that a command names in its arguments.

For a Python program, they include the program's own modules that it imports. Files named in a shell command
line or in the text of `-c`, and imports of compiled files, are not detected.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from winnow.tasks.plugins.allowed_code import digests_of, digests_of_module, file_digest
from winnow.tasks.plugins.source_code import modules_within

INTERPRETER = re.compile(r"(?:python|pypy)[\d.]*(?:t|d|td|w|-dbg)?(?:\.exe)?")

FIRST_LINE = re.compile(rb"#!.*\b(?:python|pypy)")
"""First line of a script that Python runs."""

OPTION = re.compile(r"-[bBdEhiIOPqRsSuvVx?]*([mcWX])(.*)", re.DOTALL)
"""Python's options in one argument, the last of which may take a value: group 1 is that option, group 2 the
value."""

LONG_OPTION = "--check-hash-based-pycs"
"""Python's only option with two dashes whose value is a separate argument."""

WITHOUT_VARIABLES = re.compile(r"-[bBdhiOPqRsSuvVx?]*[EIX]")

SYSTEM = ("/bin", "/sbin", "/usr", "/lib", "/opt/homebrew", "/nix", os.path.realpath(sys.base_prefix))
"""Folders whose programs are identified by name only, because system updates change their content."""

LARGEST_HASHED = 64 << 20
"""Maximum bytes of a file that is hashed; a larger file is identified by its size.

A permission also identifies a larger file by the time of its last change.
"""

BESIDE = "beside it"
"""Placeholder for the digest of a module that the program may import; only the module's name is recorded."""

OF_ENVIRONMENTS = (
    "pyvenv.cfg",
    "lib*/python*/site-packages/*.pth",
    "lib*/python*/site-packages/*customize.py",
)
"""Files that Python reads at startup, next to its executable or one folder above."""


class _Part(NamedTuple):
    """An argument that names code."""

    argument: str
    digests: dict[str, str]
    searched: Path | None
    """Folder in which Python looks for modules first; None if Python does not run the code."""


def code_of_command(command: Sequence[str], folder: Path) -> dict[str, str]:
    """SHA-256 of the files that a command names and of Python modules that these import.

    Keys are an argument, or an argument and a module.
    """
    return _digests(_parts(command, folder))


def code_that_runs(command: Sequence[str], folder: Path) -> dict[str, str]:
    """Like `code_to_allow`, but only for a command's program and its first file argument, the script.

    Later arguments may name data files that the program itself writes.
    """
    part = next((part for part in _parts(command, folder) if part.digests), None)
    arguments = dict.fromkeys([command[0], *([part.argument] if part else [])])
    found = {} if part is None else dict(part.digests)
    for argument in arguments:
        found |= _places_and_interpreters(argument, folder)
    return found


def code_to_allow(command: Sequence[str], folder: Path) -> dict[str, str]:
    """Digests of everything that can change which code a command runs.

    In addition to `code_of_command`, that includes the names of all modules in the folder that Python
    searches first, because such a module can replace one of a library without any change to the program. A
    module with the name of a standard library's module is included with its digest. For a program in the
    folder, the target of a symbolic link and the interpreter in its first line are included.
    """
    parts = list(_parts(command, folder))
    found = _digests(parts)
    for argument in command:
        found |= _places_and_interpreters(argument, folder)
    for argument, _, searched in parts:
        if searched is None:
            continue
        for name in sorted(modules_within(searched)):
            digests = digests_of_module(name, searched) if name in sys.stdlib_module_names else {}
            for each, digest in {name: BESIDE, **digests}.items():
                found.setdefault(f"{argument}:{each}", digest)
    return found


def _places_and_interpreters(argument: str, folder: Path, seen: Sequence[str] = ()) -> dict[str, str]:
    """Digests of what a program in the folder depends on, such as its link's target and its interpreters.

    Args:
        argument: The program, as written in the command or in the first line of a script.
        folder: The working folder.
        seen: Scripts that lead to this interpreter; they are not examined again.
    """
    path = folder / argument
    if not _is_file(path) or not Path(os.path.abspath(path)).is_relative_to(folder.resolve()):
        return {}
    found = {f"{argument} is": str(path.resolve())} if path.is_symlink() else {}
    if (about := path.stat()).st_size > LARGEST_HASHED:
        found[f"{argument} changed"] = str(about.st_ctime_ns)
    if _is_python(argument, folder):
        for place in (path.parent, path.parent.parent):
            files = (each for name in OF_ENVIRONMENTS for each in sorted(place.glob(name)))
            found |= {f"{argument}: {os.path.relpath(each, folder)}": file_digest(each) for each in files}
    for word in _first_line(path):
        if word == argument or word in seen or not _is_file(folder / word):
            continue
        if not _is_known_by_name(word, folder / word, folder):
            found |= _of_file(word, folder / word).digests
        found |= _places_and_interpreters(word, folder, (*seen, argument))
    return found


def _first_line(path: Path) -> list[str]:
    """Words after `#!` in the first line of a script, as the kernel separates them."""
    try:
        with path.open("rb") as file:
            line = file.readline(1_000)
    except OSError:
        return []
    words = re.split(r"[ \t]+", os.fsdecode(line[2:].rstrip(b"\n"))) if line.startswith(b"#!") else []
    return [word for each in words if each for word in dict.fromkeys((each, each.rstrip("\r")))]


def _is_python(argument: str, folder: Path) -> bool:
    """Whether an argument is a Python interpreter, by its name or that of its link's target."""
    names = [Path(argument).name, *([(folder / argument).resolve().name] if os.sep in argument else [])]
    return any(INTERPRETER.fullmatch(each) for each in names)


def ignores_variables(command: Sequence[str]) -> bool:
    """Whether the command runs Python with -E, -I or -X, which override environment variables."""
    if INTERPRETER.fullmatch(Path(command[0]).name) is None:
        return False
    return any(WITHOUT_VARIABLES.match(each) for each in _options(command[1:]))


def _digests(parts: Iterable[_Part]) -> dict[str, str]:
    return {name: digest for part in parts for name, digest in part.digests.items()}


def _options(arguments: Sequence[str]) -> Iterator[str]:
    """Python's own options at the start of the arguments, without the program's own options."""
    waiting = iter(arguments)
    for argument in waiting:
        if not argument.startswith("-"):
            return
        yield argument
        if argument == LONG_OPTION:
            next(waiting, None)
        elif found := OPTION.fullmatch(argument):
            if found[1] in "mc":
                return
            if not found[2]:
                next(waiting, None)


def _parts(command: Sequence[str], folder: Path) -> Iterator[_Part]:
    program = command[0] if os.sep in command[0] else shutil.which(command[0])
    if program is not None and not _is_known_by_name(command[0], folder / program, folder):
        yield _of_file(command[0], folder / program)
    # Whether a Python interpreter named before runs the argument, or the option's value.
    is_next_run = was_python = False
    option = None
    for before, argument in pairwise(command):
        is_next_run |= _is_python(before, folder)
        value_of, option = option, None
        if value_of == "m":
            yield _of_module(argument, argument, folder, is_run=was_python)
            was_python = False
        elif argument == LONG_OPTION:
            option = argument
        elif found := OPTION.fullmatch(argument):
            option = found[1] if not found[2] else None
            if found[1] == "m" and found[2]:
                yield _of_module(argument, found[2], folder, is_run=is_next_run)
            was_python = is_next_run
            is_next_run &= found[1] not in "mc"
        path = folder / argument.partition("=")[2] if argument.startswith("-") else folder / argument
        is_run = is_next_run and not argument.startswith("-") and value_of is None
        is_next_run &= not is_run
        if is_run and _is_folder(path):
            yield _of_module(argument, "__main__", path, is_run=True)
        elif _is_file(path):
            yield _of_file(argument, path, is_python=is_run)


def _of_module(argument: str, name: str, folder: Path, *, is_run: bool) -> _Part:
    found = folder.resolve()
    digests = {f"{argument}:{each}": digest for each, digest in digests_of_module(name, found).items()}
    return _Part(argument, digests, found if digests or is_run else None)


def _of_file(argument: str, path: Path, *, is_python: bool = False) -> _Part:
    if not _is_file(path):
        return _Part(argument, {}, None)
    if is_python or path.suffix == ".py" or _begins_as_python(path):
        file = path.resolve()
        digests = {f"{argument}:{name}": digest for name, digest in digests_of(file).items()}
        return _Part(argument, digests, file.parent)
    if (size := path.stat().st_size) > LARGEST_HASHED:
        return _Part(argument, {argument: sha256(f"{size} bytes".encode()).hexdigest()}, None)
    return _Part(argument, {argument: file_digest(path)}, None)


def _begins_as_python(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return FIRST_LINE.match(file.readline(1_000)) is not None
    except OSError:
        return False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _is_known_by_name(named: str, program: Path, folder: Path) -> bool:
    """Whether a program is identified by its name: the system's, or a Python outside the folder."""
    real, here = program.resolve(), folder.resolve()
    for each in SYSTEM:  # the working folder may itself be in a system folder
        if real.is_relative_to(each) and not (real.is_relative_to(here) and here.is_relative_to(each)):
            return True
    is_found = os.sep not in named and not real.is_relative_to(here)
    return INTERPRETER.fullmatch(real.name) is not None and (
        is_found or real.is_relative_to(os.path.realpath(sys.prefix))
    )
