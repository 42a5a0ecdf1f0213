"""Extract the program from an output by the names that the tests use; run nothing.

The program consists of the Python blocks that define these names, and of the blocks that define what those
need. If a name is defined several times, the last definition counts, unless the words before it warn of it.
If a name stays undefined, all Python blocks are used, in order. Text that is not Python is used only if the
output has no Python.

Outputs are hostile. So all of this happens in the sandbox, within the limits of the program itself.

**Blocks.** Chat models are less strict than Markdown. A fence may follow a word, a list marker or a `>`, and
may close after the last character of a program. A Python fence also opens inside a block that was never
closed.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from winnow.tasks.judges.code.inside.source_names import NO_PYTHON, SourceNames, names_of

_OPENING = re.compile(r"([^`~]*)(`{3,}|~{3,})([^`]*)")
_QUOTE = re.compile(r"[ \t]*(?:>[ \t]?)+")
_MARKER = re.compile(r"[ \t]*(?:(?:[-*+>]|\d{1,9}[.)])[ \t]*)*")
_LANGUAGE = re.compile(r"[ \t]*\{?[ \t]*\.?([\w+#-]*)")

NAMES_OF_PYTHON = frozenset({"py", "py3", "python", "python2", "python3", "ipython", "ipython3"})

_MARKS = {"[BEGIN]": "```python", "[PYTHON]": "```python", "[DONE]": "```", "[/PYTHON]": "```"}
"""Lines that stand for fences in the prompts of MBPP and in the outputs of models trained on them."""

_FARTHEST = 3
"""Maximum number of columns that a closing fence may be indented beyond the opening fence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A block, or text outside of blocks."""

    language: str | None
    """Language of a block in lower case, "" if the fence names none; None for text outside of blocks."""
    text: str
    """Lines of the part, without fences and without the indentation of the opening fence."""


@dataclass(slots=True)
class _Fence:
    """An opening fence, and how it closes its block."""

    mark: str
    indent: str
    is_quoted: bool
    language: str
    before: str
    """The text before the fence on the same line."""

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


def _parts(text: str) -> Iterator[Part]:
    """Blocks of a text and the text around them, in order; empty parts are omitted."""
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
    """The fence at the end of a line; None if the line does not end in a fence."""
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


_THOUGHTS = re.compile(r"\s*<think>.*?</think>", re.DOTALL)

_WARNING = re.compile(
    r"^\W*(?:wrong|incorrect|bad|not recommended)\b"
    r"|^\W*(?:do not|don['’]t|never)\W+(?:do|use|write|copy)\b"
    r"|^\W*(?:(?:what )?to )?avoid(?: this| that)?\W*$"
    r"|\b(?:common|typical|frequent|mistake|pitfall)\W+(?:mistake|error|pitfall|to avoid)\b"
    r"|\b(?:following|below|this|next)\b.*\b(?:wrong|incorrect|buggy|broken|fails?)\b"
    r"|\b(?:should|must|does|do|would|will)(?: not|n['’]t)\W+(?:be used|use|write|work)\b",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"\b(?:correct(?:ed|ly|ion)?|fix(?:ed|es)?|instead|better|improved?|final|updated?|right|so|here)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?;]\W*\s(?=\S)")

_STATEMENT = re.compile(
    r"(?:async[ \t]+)?def[ \t]+\w+[ \t]*[(\[]|class[ \t]+\w+[ \t]*[(:\[]"
    r"|import[ \t]+\w|from[ \t]+[\w.]+[ \t]+import\b|@\w|[A-Za-z_]\w*[ \t]*(?::[^=\n]*)?=[^=]"
)
_METHOD = re.compile(r"(?:[ \t]*\n)*[ \t]+(?:@|(?:async[ \t]+)?def\b)")
_CODE_SPAN = re.compile(r"(`++)(?:(?:python|py)[ \t]+)?([^`\n]+)\1")
_PROMPTS = (">>> ", "... ")

_MOST_TRIES = 50
"""Maximum attempts to find a program in text without fences: start positions, and ends for each."""


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """Python code of the output that may belong to the program."""

    text: str
    names: SourceNames
    is_warned_of: bool = False


def program_text(output: str, prefix: str, wanted: Collection[str]) -> str:
    """Extract the program from an output.

    Args:
        output: The output, which is not blank.
        prefix: Text that the output may continue, placed before the program.
        wanted: Global names that the tests use.
    """
    if (thoughts := _THOUGHTS.match(output)) and (said := output[thoughts.end() :]).strip():
        output = said
    reader = _Reader(prefix, output)
    if not reader.blocks and _is_python(prefix + output):
        return output
    pieces = python = reader.python()
    for more in (None, reader.in_the_open, reader.others, reader.sessions, reader.spans):
        pieces = pieces if more is None else [*more(), *pieces]
        if pieces and (chosen := _chosen(pieces, wanted, reader.defined_before)) is not None:
            return _joined(chosen, pieces)
    if known := python or reader.others():
        return _joined(known, known)
    last = [block for block in reader.blocks if block.language in {"", *NAMES_OF_PYTHON}] or reader.blocks
    return last[-1].text if last else output


class _Reader:
    """Find the Python code of an output: in Python blocks first, then elsewhere."""

    def __init__(self, prefix: str, output: str) -> None:
        self._prefix = prefix
        before = _names(prefix) if prefix else None
        self.defined_before = before.defined | before.imported if before else frozenset()
        self._parts = list(_parts(output))
        self.blocks = [each for each in self._parts if each.language is not None]

    def piece(self, text: str, is_warned_of: bool = False) -> _Piece | None:
        """A text as Python code, alone or after the prefix; None if neither is Python."""
        if (names := _names(text)) is not None:
            return _Piece(text, names, is_warned_of)
        if self._prefix and (names := _names(self._prefix + text)) is not None:
            return _Piece(text, names, is_warned_of)
        return None

    def python(self) -> list[_Piece]:
        """Blocks that are Python, and whose fence names Python or no language."""
        return self._read(lambda language: not language or language in NAMES_OF_PYTHON)

    def others(self) -> list[_Piece]:
        """Blocks that are Python although their fence names another language."""
        return self._read(lambda language: bool(language) and language not in NAMES_OF_PYTHON)

    def in_the_open(self) -> list[_Piece]:
        """Python code outside of all fences, between lines of prose."""
        texts = [each.text for each in self._parts if each.language is None]
        return [piece for text in texts for piece in self._between_prose(text)]

    def sessions(self) -> list[_Piece]:
        """Input lines of interpreter sessions, as Python code."""
        typed = (_typed(each.text) for each in self._parts)
        return [piece for text in typed if text and (piece := self.piece(text))]

    def spans(self) -> list[_Piece]:
        """Code between backticks inside a line."""
        texts = [found[2] for each in self._parts for found in _CODE_SPAN.finditer(each.text)]
        return [piece for text in texts[:_MOST_TRIES] if (piece := self.piece(text + "\n"))]

    def _read(self, is_meant: Callable[[str], bool]) -> list[_Piece]:
        found: list[_Piece] = []
        before = ""
        for part in self._parts:
            if part.language is None:
                before = part.text
                continue
            if is_meant(part.language):
                is_warned_of = _warns(before) or _warns(_first_comment(part.text))
                piece = self.piece(part.text, is_warned_of)
                if piece is None and found and (longer := self._with_methods(found[-1], part.text)):
                    found[-1] = longer
                    continue
                piece = piece or self.piece(_dedented(part.text), is_warned_of)
                found += [] if piece is None else [piece]
            before = ""
        return found

    def _with_methods(self, piece: _Piece, text: str) -> _Piece | None:
        """A class extended by another block; None if the text does not contain its methods."""
        at_the_edge = [line for line in piece.text.split("\n") if line[:1].strip()]
        if "".join(at_the_edge[-1:]).startswith("class") and _METHOD.match(text):
            return self.piece(piece.text + text, piece.is_warned_of)
        return None

    def _between_prose(self, text: str) -> Iterator[_Piece]:
        lines = text.split("\n")
        if self._prefix and lines[0][:1].isspace() and (end := self._end(self._prefix, lines)):
            yield from filter(None, [self.piece("\n".join(lines[:end]) + "\n")])
            return
        at, tries = 0, 0
        while at < len(lines) and tries < _MOST_TRIES:
            margin = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
            if _STATEMENT.match(lines[at], len(margin)) is None:
                at += 1
                continue
            tries += 1
            code = _indented(lines[at:], margin)
            end = self._end("", code)
            if end and (piece := self.piece("\n".join(code[:end]) + "\n")) is not None:
                yield piece
            at += max(end, 1)

    def _end(self, before: str, lines: Sequence[str]) -> int:
        """Number of leading lines that are Python after a text; 0 if none are."""
        end = len(lines)
        first = before.count("\n")
        for _ in range(_MOST_TRIES):
            try:
                names_of(before + "\n".join(lines[:end]) + "\n")
                return end
            except SyntaxError as error:
                end = min(end - 1, max((error.lineno or 0) - 1 - first, 0))
            except NO_PYTHON:
                return 0
            while end > 0 and (not lines[end].strip() or lines[end][0] in " \t)]}"):
                end -= 1
            if end <= 0:
                return 0
        return 0


def _chosen(
    pieces: Sequence[_Piece], wanted: Collection[str], before: Collection[str]
) -> list[_Piece] | None:
    """Pieces that define the names, and pieces that those need; None if a name stays undefined.

    If no piece defines any name, and all names are defined before, the last piece is used.

    Args:
        pieces: One or more pieces.
        wanted: The names.
        before: Names that are defined before all pieces, and need not be defined again.
    """
    first = {name: _definition(name, pieces) for name in sorted(wanted)}
    waiting = [each for each in first.values() if each is not None]
    if any(each is None and name not in before for name, each in first.items()):
        unseen = [each for each in pieces if each.names.defines_unseen]
        if not unseen:
            return None
        waiting += unseen
    waiting = waiting or [pieces[-1]]
    chosen: list[_Piece] = []
    while waiting:
        piece = waiting.pop()
        if piece in chosen:
            continue
        chosen.append(piece)
        found = [_definition(name, pieces, piece) for name in sorted(piece.names.needed)]
        waiting += [each for each in found if each is not None]
        if None in found:
            waiting += [each for each in pieces if each.names.defines_unseen]
    return chosen


def _definition(name: str, pieces: Sequence[_Piece], user: _Piece | None = None) -> _Piece | None:
    """The last piece that defines a name; None if no piece defines or imports the name.

    Pieces preceded by a warning count only if all are. Pieces that import the name count only if no piece
    defines it. If `user` defines the name itself, only pieces before it count, unless it is the first.
    """
    others = [each for each in pieces if each is not user]
    if user is not None and name in user.names.defined:
        others = list(pieces[: pieces.index(user)]) or others
    defining = [each for each in others if name in each.names.defined]
    importing = [each for each in others if name in each.names.imported]
    for found in ([each for each in defining if not each.is_warned_of], defining, importing):
        if found:
            return found[-1]
    return None


def _joined(chosen: Collection[_Piece], pieces: Sequence[_Piece]) -> str:
    """Join the chosen pieces in order, each after the pieces that it needs at import."""
    ordered: list[_Piece] = []
    begun: list[_Piece] = []
    inside = [each for each in pieces if each in chosen]

    def add(piece: _Piece) -> None:
        if piece in begun:
            return
        begun.append(piece)
        for name in sorted(piece.names.at_once):
            earlier = _definition(name, inside, piece)
            if earlier is not None:
                add(earlier)
        ordered.append(piece)

    for each in inside:
        add(each)
    return "\n".join(each.text for each in ordered)


def _names(text: str) -> SourceNames | None:
    try:
        return names_of(text)
    except NO_PYTHON:
        return None


def _is_python(text: str) -> bool:
    try:
        compile(text, "program.py", "exec", dont_inherit=True)
    except NO_PYTHON:
        return False
    return True


def _warns(prose: str) -> bool:
    """Whether the last sentence before a block warns of it."""
    lines = [line for line in prose.splitlines() if line.strip()]
    if not lines:
        return False
    sentence = _SENTENCE_END.split(lines[-1].strip())[-1]
    return _WARNING.search(sentence) is not None and _CORRECTION.search(sentence) is None


def _first_comment(text: str) -> str:
    first = text.lstrip().partition("\n")[0]
    return first.lstrip("# ") if first.startswith("#") else ""


def _dedented(text: str) -> str:
    lines = text.split("\n")
    indents = [len(line) - len(line.lstrip(" \t")) for line in lines if line.strip()]
    return "\n".join(line[min(indents, default=0) :] for line in lines)


def _indented(lines: Sequence[str], margin: str) -> list[str]:
    """The first lines, up to one that lacks the margin; the margin is removed."""
    inside = takewhile(lambda line: line.startswith(margin) or not line.strip(), lines)
    return [line.removeprefix(margin) for line in inside]


def _typed(text: str) -> str:
    lines = [line.strip() for line in text.split("\n")]
    code = [line[len(_PROMPTS[0]) :] for line in lines if line.startswith(_PROMPTS)]
    return "\n".join(code) + "\n" if code else ""
