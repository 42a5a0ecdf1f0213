"""Split an output into Markdown code blocks and the text around them.

Chat models are less strict than Markdown. A fence may follow a word, a list marker or a `>`, and may close
after the last character of a program. A Python fence also opens inside a block that was never closed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_OPENING = re.compile(r"([^`~]*)(`{3,}|~{3,})([^`]*)")
_QUOTE = re.compile(r"[ \t]*(?:>[ \t]?)+")
_MARKER = re.compile(r"[ \t]*(?:(?:[-*+>]|\d{1,9}[.)])[ \t]*)*")
_LANGUAGE = re.compile(r"[ \t]*\{?[ \t]*\.?([\w+#-]*)")

NAMES_OF_PYTHON = frozenset({"py", "py3", "python", "python2", "python3", "ipython", "ipython3"})

_MARKS = {"[BEGIN]": "```python", "[PYTHON]": "```python", "[DONE]": "```", "[/PYTHON]": "```"}
"""Lines that replace fences in the prompts of MBPP and in the outputs of models trained on them."""

_FARTHEST = 3
"""Maximum number of columns by which a closing fence is indented deeper than the opening one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A block, or text outside of blocks."""

    language: str | None
    """The language of a block, in lower case, "" if none is named; None for text outside of blocks."""
    text: str
    """Its lines, without fences and without the indentation of the opening fence."""


@dataclass(slots=True)
class _Fence:
    """An opening fence."""

    mark: str
    indent: str
    is_quoted: bool
    language: str
    before: str
    """The words before it on the same line."""

    @property
    def is_of_python(self) -> bool:
        return self.language in NAMES_OF_PYTHON

    def content(self, line: str) -> str:
        """A line of the block without quote marks and indentation."""
        if self.is_quoted and (quote := _QUOTE.match(line)):
            line = line[quote.end() :]
        return line.removeprefix(self.indent)

    def closes(self, content: str) -> bool:
        bare = content.strip()
        depth = len(content.expandtabs()) - len(content.expandtabs().lstrip())
        return len(bare) >= len(self.mark) and bare == self.mark[0] * len(bare) and depth <= _FARTHEST

    def closes_behind(self, content: str) -> bool:
        bare = content.strip()
        return bare != self.mark and bare.endswith(self.mark) and bare.count(self.mark[0]) == len(self.mark)

    def gives_way_to(self, other: "_Fence", content: str) -> bool:
        """Whether another opening fence inside the block starts a new block."""
        return other.is_of_python and (not self.is_of_python or not content[:1].isspace())


def parts(text: str) -> Iterator[Part]:
    """The blocks of a text and the text around them, in order; empty parts are omitted."""
    fence: _Fence | None = None
    lines: list[str] = []
    for written in text.split("\n"):
        line = _MARKS.get(written.strip(), written)
        if fence is None:
            if (fence := _opened(line)) is None:
                lines.append(line)
                continue
            yield from _part(None, [*lines, fence.before])
            lines = []
            continue
        content = fence.content(line)
        if fence.closes(content):
            yield from _part(fence.language, lines)
            fence, lines = None, []
        elif fence.closes_behind(content):
            yield from _part(fence.language, [*lines, content.rstrip()[: -len(fence.mark)]])
            fence, lines = None, []
        elif (inner := _opened(line)) is not None and fence.gives_way_to(inner, content):
            yield from _part(fence.language if fence.is_of_python else None, [*lines, inner.before])
            fence, lines = inner, []
        else:
            lines.append(content)
    yield from _part(None if fence is None else fence.language, lines)


def _opened(line: str) -> _Fence | None:
    """The fence at the end of a line; None if there is none."""
    found = _OPENING.fullmatch(line.rstrip())
    if found is None:
        return None
    before, mark, info = found.groups()
    language = named[1].lower() if (named := _LANGUAGE.match(info)) else ""
    quote = _QUOTE.match(before)
    rest = before[quote.end() :] if quote else before
    is_first = _MARKER.fullmatch(before) is not None
    if not is_first and language not in NAMES_OF_PYTHON:
        return None
    indent = "" if rest.strip() else rest
    return _Fence(mark, indent, quote is not None, language, "" if is_first else before)


def _part(language: str | None, lines: list[str]) -> Iterator[Part]:
    text = "\n".join(lines)
    if text.strip():
        yield Part(language=language, text=text + "\n")
