"""Select sample comparisons for a page, and format each as a heading, facts and texts."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from winnow.flows.reports.html.figures.labels import readable
from winnow.flows.reports.html.model import Passage, Sample, SampleGroup
from winnow.storage.json_types import Row
from winnow.storage.objectives import traits_of
from winnow.storage.queries import samples as sample_views
from winnow.tasks.campaign.look import Look
from winnow.tasks.text.phrases import example_name

MOST_SAMPLES = 5
"""Maximum number of samples of each kind."""
MOST_CHARACTERS = 2_000
"""Maximum number of characters shown of each text."""

LABELS = {"input": "input", "text": "output", "text_b": "output"}
"""Column -> its label on the page, for texts shown side by side."""
PASSAGES = {
    "prompt": "prompt",
    "prompt_b": "prompt",
    "answer": "read by the judge",
    "detail": "detail",
}
"""Column -> its label on the page, for further texts; in duels, a candidate's name is appended."""


def sample_groups(look: Look, titles: Mapping[str, str], *, best: str | None) -> list[SampleGroup]:
    """Up to `MOST_SAMPLES` comparisons of each kind, each shown once; kinds without comparisons are left out.

    Args:
        look: The campaign's current state.
        titles: Kind of `storage`'s view of samples -> its heading.
        best: Name of the best candidate, from which samples are taken, except unscored ones; None to take
            them from all candidates.
    """
    found, shown = [], set[tuple[object, object]]()
    for kind, title in titles.items():
        of_best = best if kind != sample_views.UNSCORED else None
        rows = sample_views.samples(
            look.session,
            look.record.id,
            kind,
            candidate=of_best,
            most=MOST_SAMPLES,
            characters=MOST_CHARACTERS,
            are_duels=traits_of(look.record.objective).compares_pairs,
        )
        new = [row for row in rows if (row["round"], row["position"]) not in shown]
        shown |= {(row["round"], row["position"]) for row in new}
        found.append((title, of_best, new))
    several_judges = len({row["judge"] for *_, rows in found for row in rows}) > 1
    return [
        SampleGroup(
            title=f"{title}: {of_best}" if of_best else title,
            samples=[_sample(row, of_best, with_judge=several_judges) for row in rows],
        )
        for title, of_best, rows in found
        if rows
    ]


def _sample(row: Row, candidate: str | None, *, with_judge: bool) -> Sample:
    """Format a comparison; its heading omits the candidate if the group's heading names it."""
    opponent = f" against {row['candidate_b']}" if row["candidate_b"] else ""
    example = f"example {example_name(row['example'], row['example_number'])}"
    is_named = candidate == row["candidate"] and not opponent
    return Sample(
        heading=readable(example if is_named else f"{row['candidate']}{opponent} on {example}"),
        mark=_mark(row),
        facts=[*_ending(row), place_of(row), *([f"judge {judge_name(row['judge'])}"] if with_judge else [])],
        side_by_side=[
            *_passages(row, ("input",)),
            *_targets(row),
            *_passages(row, ("text", "text_b")),
        ],
        passages=_passages(row, tuple(PASSAGES)),
    )


def place_of(row: Row) -> str:
    """Round and position of a comparison as text, counted from 1; the database counts from 0."""
    return f"round {row['round'] + 1}, position {row['position'] + 1}"


def judge_name(judge: str) -> str:
    """A judge's stored name without the digest of its parameters."""
    return DIGEST.sub("", judge)


DIGEST = re.compile(r":[0-9a-f]{12}$")
"""Matches the digest at the end of a judge's name if its parameters are not the defaults."""


def _mark(row: Row) -> Literal["right", "wrong"] | None:
    """Value of `Sample.mark`: "right" for a loss of 0, "wrong" for a loss of 1.

    For certify, the human loss counts. None for pairs, without targets, and for other or unknown losses.
    """
    lost = None if row["outcome"] is None else 1.0 - row["outcome"]
    if row["human_loss"] is not None:
        lost = row["human_loss"]
    if not row["targets"] or row["candidate_b"] is not None or lost not in (0.0, 1.0):
        return None
    return "wrong" if lost else "right"


def _ending(row: Row) -> Sequence[str]:
    loss = [] if row["human_loss"] is None or row["outcome"] is None else [f"loss {row['human_loss']:g}"]
    return [readable(ending(row)), *loss]


def ending(row: Row) -> str:
    """Clause on the outcome of a comparison, or on the reason why there is no outcome."""
    outcome = row["outcome"]
    if outcome is None:
        return f"no outcome: {row['reason']}"
    if not row["candidate_b"]:
        return f"score {outcome:g}"
    if outcome == 0.5:
        return "a tie"
    share = max(outcome, 1.0 - outcome)
    preferred = row["candidate"] if outcome > 0.5 else row["candidate_b"]
    return f"{preferred} preferred" + ("" if share == 1.0 else f" by {share:g}")


def _passages(row: Row, names: Sequence[str]) -> list[Passage]:
    return [
        Passage(
            label=_label(row, name),
            text=readable(row[name]),
            shown=len(row[name]),
            length=row[f"{name}_length"],
        )
        for name in names
        if row[name] is not None and not _is_repeated(row, name)
    ]


def _is_repeated(row: Row, name: str) -> bool:
    """Whether this text equals one that is already shown: the first prompt, or the output."""
    same = {"prompt_b": "prompt", "answer": "text"}.get(name)
    return same is not None and row[name] == row[same]


def _targets(row: Row) -> list[Passage]:
    """A passage with the accepted targets, one per line; empty without targets."""
    if not row["targets"]:
        return []
    whole = "\n".join(map(str, row["targets"]))
    shown = whole[:MOST_CHARACTERS]
    label = "target" if len(row["targets"]) == 1 else "targets"
    return [Passage(label=label, text=readable(shown), shown=len(shown), length=len(whole))]


def _label(row: Row, name: str) -> str:
    label = {**LABELS, **PASSAGES}[name]
    if row["candidate_b"] is None or name in ("input", "answer", "detail"):
        return label
    whose = row["candidate_b"] if name.endswith("_b") else row["candidate"]
    return readable(f"{label} of {whose}")
