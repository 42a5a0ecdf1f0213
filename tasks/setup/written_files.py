"""Write the values of a campaign's file as text, from a command or a program."""

import json
import reprlib
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from pathlib import PurePath

import yaml
from pydantic import BaseModel

from winnow.storage.json_types import JsonObject
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.yaml_file import CURLY, FLOAT

WIDE = 10**6
"""Line width that prevents line breaks."""
FLOW_WIDTH = 110
"""Maximum line width of a mapping in flow style, in characters."""


def as_in_a_file(value: object) -> object:
    """Convert tuples to lists, paths to text and NumPy's to Python's numbers.

    A campaign's file can contain the result.
    """
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_unset=True)
    if isinstance(value, Mapping):
        return {key: as_in_a_file(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_in_a_file(each) for each in value]
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    return str(value) if isinstance(value, PurePath) else value


def written_changes(changes: Mapping[str, object]) -> list[str]:
    """New values by dotted key, in the form `key=value` of the command line."""
    if not isinstance(changes, Mapping):
        raise SpecError(
            f"changes is {reprlib.repr(changes)}; give new values by dotted key, such as "
            "{'stopping.budget': 400}"
        )
    return [f"{key}={json.dumps(as_in_a_file(value), default=str)}" for key, value in changes.items()]


class _Writer(yaml.SafeDumper):
    """Writes YAML, with block style for texts of several lines.

    Texts that would be read as something else get quotes.
    """


_Writer.add_implicit_resolver(*FLOAT)  # a text that reads as a number gets quotes


def _text(writer: yaml.SafeDumper, text: str) -> yaml.Node:
    is_block = "\n" in text and all(c.isprintable() or c == "\n" for c in text) and not text.startswith(" ")
    style = "|" if is_block and not any(line.endswith(" ") for line in text.split("\n")) else None
    if CURLY.fullmatch(text):
        style = '"'
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Writer.add_representer(str, _text)


def campaign_text(values: JsonObject, comment: Sequence[str] = ()) -> str:
    """A campaign's values as YAML; short values are on one line.

    Args:
        values: The values; reading the text gives equal ones.
        comment: Comment lines before the values.
    """
    lines = [f"# {line}".rstrip() for line in comment]
    for key, value in values.items():
        if isinstance(value, list):
            lines.append(f"{key}:")
            lines += [f"  {line}" for each in value for line in _entry(each)]
        else:
            lines.append(f"{key}: {_in_one_line(value)}")
    return "\n".join(lines) + "\n"


def _entry(value: object) -> list[str]:
    """Lines of one list entry."""
    if not _has_lines(value) and len(line := f"- {_in_one_line(value)}") <= FLOW_WIDTH:
        return [line]
    text = yaml.dump([value], Dumper=_Writer, sort_keys=False, allow_unicode=True, width=WIDE)
    return text.rstrip("\n").split("\n") if not text.endswith("\n\n") else text[:-1].split("\n")


def _has_lines(value: object) -> bool:
    values = value.values() if isinstance(value, dict) else [value]
    return any(isinstance(each, str) and "\n" in each for each in values)


def _in_one_line(value: object) -> str:
    text: str = yaml.dump(
        value,
        Dumper=_Writer,
        default_flow_style=True,
        sort_keys=False,
        allow_unicode=True,
        width=WIDE,
    )
    return text.removesuffix("\n").removesuffix("\n...")
