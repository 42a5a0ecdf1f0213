"""The program within what a model said: a block between fences, or the whole text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_OPENING = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*")
_PYTHON = frozenset({"", "py", "python", "python3", "{python}", "{.python}"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of text between two fences, or after one that is not closed."""

    language: str
    """The language, in lower case; "" where none is named."""
    text: str

    def defines(self, name: str) -> bool:
        """Whether a line at its left edge defines or assigns a name."""
        pattern = rf"^(?:(?:async[ \t]+)?def|class)[ \t]+{re.escape(name)}\b|^{re.escape(name)}[ \t]*[:=]"
        return re.search(pattern, self.text, re.MULTILINE) is not None


def program_of(output: str, entry_point: str | None) -> str | None:
    """The program in an output; None where there is none.

    Of several blocks of Python, it is the last that defines `entry_point`, and where none does or there is no
    entry point the last; blocks of other languages count only where there are no others.
    """
    blocks = [block for block in fenced_blocks(output) if block.text.strip()]
    if not blocks:
        return output if output.strip() else None
    python = [block for block in blocks if block.language in _PYTHON] or blocks
    defining = [block for block in python if entry_point is not None and block.defines(entry_point)]
    return (defining or python)[-1].text


def fenced_blocks(text: str) -> Iterator[Block]:
    """The blocks between fences, as Markdown has them, in their order."""
    opening: re.Match[str] | None = None
    lines: list[str] = []
    for line in text.split("\n"):
        if opening is None:
            opening, lines = _OPENING.fullmatch(line.rstrip("\r")), []
        elif _closes(line, opening[2]):
            yield _block(opening, lines)
            opening = None
        else:
            lines.append(line)
    if opening is not None:
        yield _block(opening, lines)


def _closes(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and bare == fence[0] * len(bare)


def _block(opening: re.Match[str], lines: list[str]) -> Block:
    indent = opening[1]
    text = "\n".join(line.removeprefix(indent) for line in lines)
    return Block(language=opening[3].lower(), text=text + "\n")
