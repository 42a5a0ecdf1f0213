"""Draw comparisons in full: prompts, outputs, judges' replies, stars and notes."""

import json
import os
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from html import escape

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from winnow.flows.reports.dashboard import ALLOW_LABELS_VARIABLE
from winnow.flows.reports.dashboard.db import read_session, show_errors, writable_database
from winnow.flows.reports.dashboard.widgets import ANNOTATOR, show_heading, show_passage, show_soft
from winnow.flows.reports.html.figures.labels import readable
from winnow.flows.reports.html.sections.samples import ending, judge_name, place_of
from winnow.storage.json_types import Row
from winnow.storage.queries import browse as browse_views
from winnow.storage.records.notes import STARRED
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.objectives.human.annotating import LONGEST_NOTE, UNNAMED, take_note
from winnow.tasks.text.phrases import example_name

MOST_CHARACTERS = 20_000
"""Maximum characters of each text that are read, unless whole texts are shown."""
PREVIEW = 200
"""Maximum characters of each text in a table."""
MOST_WORDS = 2_000
"""Maximum words of each output that are compared; the time grows with the product of both numbers."""


def show_comparison(campaign: CampaignRecord, comparison_id: int, *, whole: bool) -> None:
    """Draw a comparison: input, target and output side by side, then prompts, judgments and stored data.

    Args:
        campaign: The campaign of the comparison.
        comparison_id: Id of the comparison.
        whole: Whether long texts are read in full.
    """
    found = _read(campaign, comparison_id, whole=whole)
    if found is None:
        st.text(GONE)
        return
    row, judgments = found
    show_heading(heading(row), key="comparison")
    show_soft(" · ".join(facts(row)), key="comparison")
    edit_note(campaign, row)
    if row["candidate_b"]:
        _input_and_target(row, whole=whole)
        for end, column in zip(ENDS, st.columns(2), strict=True):
            with column:
                _output(row, end)
    else:
        _input_and_target(row, whole=whole, output=True)
    _readings(row)
    if row["candidate_b"] and None not in (row["text"], row["text_b"]):
        _word_diff(row["text"], row["text_b"])
    _behind(row)
    if judgments:
        st.header("Judgments")
        swapped = " Swapped: the second candidate's answer was shown first." if row["candidate_b"] else ""
        st.caption(f"Each call of a judge model.{swapped}")
        _judgments(row, judgments, _columns(len(judgments)))


def show_pair(compared: Sequence[tuple[CampaignRecord, int]], *, whole: bool) -> None:
    """Draw two comparisons on the same example: input and target, and below them both outputs.

    Args:
        compared: Campaign and id of each comparison; both comparisons score a single output.
        whole: Whether long texts are read in full.
    """
    found = [_read(campaign, comparison_id, whole=whole) for campaign, comparison_id in compared]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        st.text(GONE)
        return
    example = known[0][0]
    show_heading(f"example {_name_of(example)}", key="pair")
    _input_and_target(example, whole=whole)
    is_across = compared[0][0].id != compared[1][0].id
    sides = zip(compared, known, st.columns(2), strict=True)
    for number, ((campaign, _), (row, judgments), column) in enumerate(sides):
        side = f"-side-{number}"
        with column:
            of_campaign = f" of {campaign.name}" if is_across else ""
            show_heading(f"{row['candidate']}{of_campaign}", key=f"pair{side}")
            show_soft(" · ".join(facts(row)), key=f"pair{side}")
            _output(row, "", key=side)
            _readings(row, key=side)
            _prompts(row, [""], key=side)
            _judgments(row, judgments, [st.container() for _ in judgments], key=side)

    if all(row["text"] is not None for row, _ in known):
        _word_diff(*(row["text"] for row, _ in known))


def _word_diff(first: str, second: str) -> None:
    """Draw the differences of two outputs, with marks for words that only one of them has."""
    with st.expander("Words that differ", expanded=first != second, key="pair-diff"):
        if first == second:
            st.text("Both outputs are equal.")
            return
        cut = max(len(WORDS.findall(each)) for each in (first, second)) > MOST_WORDS
        st.caption(
            "Struck out: only in the first output. Underlined: only in the second."
            + f" The first {MOST_WORDS:,} words of each are compared." * cut
        )
        st.html(word_diff(first, second))


WORDS = re.compile(r"\s+|\w+|[^\w\s]")
"""Matches white space, a word, or one other character."""


def word_diff(first: str, second: str) -> str:
    """Two texts as an HTML paragraph: `<del>` marks words only in the first, `<ins>` only in the second."""
    before, after = (WORDS.findall(readable(each))[:MOST_WORDS] for each in (first, second))
    found = []
    for kind, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            found.append(escape("".join(before[i:j])))
            continue
        if removed := "".join(before[i:j]):
            found.append(f"<del>{escape(removed)}</del>")
        if added := "".join(after[k:m]):
            found.append(f"<ins>{escape(added)}</ins>")
    return f'<p style="white-space: pre-wrap; overflow-wrap: anywhere">{"".join(found)}</p>'


GONE = "This comparison was deleted."


def _read(campaign: CampaignRecord, comparison_id: int, *, whole: bool) -> tuple[Row, list[Row]] | None:
    """A comparison and its judgments; None if the campaign has no such comparison."""
    characters = None if whole else MOST_CHARACTERS
    with read_session() as session:
        row = browse_views.comparison(session, campaign.id, comparison_id, characters=characters)
        judgments = browse_views.judgments(session, comparison_id, characters=characters)
    return None if row is None else (row, judgments)


def _input(row: Row) -> str:
    """The example's field `input`; if it is missing or no text, all fields as JSON."""
    given = row["fields"].get("input")
    return given if isinstance(given, str) else _as_json(row["fields"])


def _target(row: Row) -> str:
    """The example's targets, one per line; as JSON if a target is no text."""
    targets = row["targets"]
    return "\n".join(targets) if all(isinstance(each, str) for each in targets) else _as_json(targets)


def _input_and_target(row: Row, *, whole: bool, output: bool = False) -> None:
    """Draw the example's input, targets and label side by side; if `output`, also the first output."""
    label = None if row["label"] is None else _as_json(row["label"])
    given = {"input": _input(row), "target": _target(row), "label": label}
    shown = {name: text for name, text in given.items() if text}
    widths = [2 if name == "input" else 1 for name in shown] + [2] * output
    columns = st.columns(widths)
    for (name, text), column in zip(shown.items(), columns, strict=False):
        with column:
            part = text if whole else text[:MOST_CHARACTERS]
            show_passage(name, part, len(text), key=f"example-{name}")
    if output:
        with columns[-1]:
            _output(row, "")


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _readings(row: Row, key: str = "") -> None:
    """Draw the part of the output that the judge read, unless it is all, and why an outcome is missing."""
    for name, label in (("answer", "read by the judge"), ("detail", "reason for no outcome")):
        if row[name] is not None and not (name == "answer" and row["answer"] == row["text"]):
            show_passage(label, row[name], row[f"{name}_length"], key=f"{name}{key}")


def listed(rows: Sequence[Row]) -> list[Row]:
    """Comparisons as rows of a table: outcome, example with input and target, outputs, candidates.

    Notes are shown only if a row has one; judge and round only if they differ between rows.
    """
    has_notes = any(row["noted"] for row in rows)
    several = {name for name in ("judge", "round") if len({row[name] for row in rows}) > 1}
    return [
        {
            **({"note": _note_cell(row)} if has_notes else {}),
            **({"outcome": _winner(row)} if row["candidate_b"] else {"score": row["outcome"]}),
            **{name: cell for name, cell in example_cells(row).items() if name != "example"},
            "output": row["text"],
            **({"output_b": row["text_b"]} if row["candidate_b"] else {}),
            "candidate": row["candidate"],
            **({"candidate_b": row["candidate_b"]} if row["candidate_b"] else {}),
            "example": _name_of(row),
            "reason": row["reason"],
            **({"judge": row["judge"]} if "judge" in several else {}),
            **({"round": row["round"] + 1} if "round" in several else {}),
        }
        for row in rows
    ]


def example_cells(row: Row) -> Row:
    """Cells with the example's name and the beginnings of its input and target."""
    return {
        "example": _name_of(row),
        "input": _unescaped(row["input"]),
        "target": _target_cell(row),
    }


def _note_cell(row: Row) -> str:
    star = STAR if row["noted"] == STARRED else ""
    return f"{star} {row['note'] or ''}".strip()


def _target_cell(row: Row) -> str | None:
    others = row["more_targets"] or 0
    return f"{row['target']} (+{others})" if others > 0 else row["target"]


def _winner(row: Row) -> str | None:
    return None if row["outcome"] is None else ending(row)


ESCAPED = re.compile(r"(?:\\u[0-9a-f]{4})+")
"""Matches escaped characters in stored JSON."""


def _unescaped(text: str | None) -> str | None:
    """Replace escapes by characters if a text is the beginning of JSON; return other texts unchanged."""
    if text is None or not text.startswith(("{", "[")):
        return text
    return ESCAPED.sub(lambda found: json.loads(f'"{found[0]}"'), text)


def _name_of(row: Row) -> str:
    return example_name(row["example"], row["example_number"])


def heading(row: Row) -> str:
    """Heading of a comparison: names of the candidates and of the example."""
    opponent = f" against {row['candidate_b']}" if row["candidate_b"] else ""
    return f"{row['candidate']}{opponent} on example {_name_of(row)}"


def facts(row: Row) -> list[str]:
    """Short texts with a comparison's outcome, round and position, judge and losses."""
    return [
        ending(row),
        place_of(row),
        f"judge {judge_name(row['judge'])}",
        *(
            f"{name.replace('_', ' ')} {row[name]:g}"
            for name in ("human_loss", "auto_loss", "unlabelled_loss", "unlabelled_missing")
            if row[name] is not None
        ),
        *([f"id {row['example']}"] if _name_of(row) != row["example"] else []),
    ]


ENDS = ("", "_b")
"""Column suffixes of the two sides of a duel."""


def _behind(row: Row) -> None:
    """Draw the prompts and the stored example of a comparison."""
    ends = ENDS if row["candidate_b"] else ENDS[:1]
    _prompts(row, [end for end in ends if not (end and row["prompt_b"] == row["prompt"])])
    with st.expander("Example as stored", key="example-as-stored"):
        example = {"fields": row["fields"], "targets": row["targets"], "label": row["label"]}
        text = _as_json(example)
        show_passage("fields, targets and label", text, len(text), key="example")


def _prompts(row: Row, ends: Sequence[str], *, key: str = "") -> None:
    if any(row[f"prompt{end}"] is not None for end in ends):
        with st.expander("Prompt" if len(ends) == 1 else "Prompts", key=f"prompts{key}"):
            for end in ends:
                _passage(row, "prompt", end, key=key)


PASSAGES = {"prompt": "prompt", "reasoning": "reasoning", "text": "output"}


def _output(row: Row, end: str, *, key: str = "") -> None:
    """Draw the output of one side of a comparison, its reasoning, and its model, engine and cost."""
    if row[f"text{end}"] is None:
        show_soft(f"{row[f'candidate{end}']}: no output", key=f"none{end}{key}")
        return
    _passage(row, "text", end, key=key)
    _passage(row, "reasoning", end, key=key)
    show_soft(_origin(row, end), key=f"made{end}{key}")


def _passage(row: Row, name: str, end: str, *, key: str) -> None:
    text = row[f"{name}{end}"]
    if text is not None:  # most models return no reasoning
        candidate = f"of {row[f'candidate{end}']}" if row["candidate_b"] else ""
        label = f"{PASSAGES[name]} {candidate}".strip()
        show_passage(label, text, row[f"{name}{end}_length"], key=f"{name}{end}{key}")


def _origin(row: Row, end: str) -> str:
    return (
        f"{row[f'model{end}']} on {row[f'engine{end}']}, {row[f'input_tokens{end}']} tokens in, "
        f"{row[f'output_tokens{end}']} out, {row[f'seconds{end}']:.3g} s, "
        f"ended by {row[f'finish_reason{end}']}"
    )


def _judgments(
    row: Row, judgments: Sequence[Row], places: Sequence[DeltaGenerator], *, key: str = ""
) -> None:
    """Draw each call of a judge model in its own place."""
    for place, judgment in zip(places, judgments, strict=True):
        with place, st.container(border=True):
            show_soft(judgment_line(row, judgment), key=f"judgment-{judgment['number']}{key}")
            for name, label in (("reply", "reply"), ("prompt", "prompt of the judge")):
                if judgment[name] is not None:
                    show_passage(
                        label,
                        judgment[name],
                        judgment[f"{name}_length"],
                        key=f"judge-{name}-{judgment['number']}{key}",
                    )


def _columns(count: int) -> list[DeltaGenerator]:
    """Places for judgments, two side by side, because they usually are the two orders of one question."""
    return [column for _ in range(0, count, 2) for column in st.columns(2)][:count]


def judgment_line(row: Row, judgment: Row) -> str:
    """A judge's call as one line: metric, judge, order of the answers, attempt and verdict."""
    again = f", attempt {judgment['attempt'] + 1}" if judgment["attempt"] else ""
    verdict = (
        f"no verdict: {judgment['reason']}"
        if judgment["verdict"] is None
        else ending({**row, "outcome": judgment["verdict"]})
    )
    order = f", {judgment['presentation_order']}" if row["candidate_b"] else ""
    metric = f"metric {judgment['metric']}, " if judgment["metric"] else ""
    return f"{metric}{judgment['judge']}{order}{again}: {verdict}"


STAR = "\N{BLACK STAR}"


def edit_note(campaign: CampaignRecord, row: Row) -> None:
    """Show a comparison's star and note; if the page allows labels, as controls.

    Args:
        campaign: The campaign of the comparison.
        row: The comparison; without an output, no controls are shown.
    """
    is_starred, text = row["noted"] == STARRED, row["note"] or ""
    if not os.environ.get(ALLOW_LABELS_VARIABLE):
        if is_starred or text:
            show_soft(f"{STAR if is_starred else 'note:'} {text}".strip(), key="note")
        return
    if row["text"] is None:
        return
    comparison = row["id"]

    def store(*, starred: bool, note: str) -> None:
        with show_errors(), writable_database() as database:
            annotator = st.session_state.get(ANNOTATOR) or UNNAMED
            take_note(database, comparison, is_starred=starred, text=note, annotator=annotator)

    def turn() -> None:
        store(starred=not is_starred, note=text)

    def write() -> None:
        store(starred=is_starred, note=st.session_state[f"note-{comparison}"])

    star, note = st.columns([1, 4], vertical_alignment="bottom")
    star.button(
        f"{STAR} Starred" if is_starred else "\N{WHITE STAR} Star",
        key=f"star-{comparison}",
        shortcut="s",
        on_click=turn,
        width="stretch",
    )
    note.text_input(
        "Note",
        value=text,
        key=f"note-{comparison}",
        max_chars=LONGEST_NOTE,
        on_change=write,
        placeholder="visible to all readers of this database",
    )
