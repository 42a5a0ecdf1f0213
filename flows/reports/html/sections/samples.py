"""Comparisons to read: which ones, and each as a heading, facts and texts."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from winnow.flows.reports.html.figures.labels import readable
from winnow.flows.reports.html.model import Passage, Sample, SampleGroup
from winnow.storage.json_types import Row
from winnow.storage.objectives import traits_of
from winnow.storage.queries import samples as sample_views
from winnow.tasks.campaign.look import Look

MOST_SAMPLES = 5
"""Of each kind."""
MOST_CHARACTERS = 2_000
"""Of each text."""

PASSAGES = {
    "prompt": "prompt",
    "text": "text",
    "prompt_b": "prompt",
    "text_b": "text",
    "answer": "read by the judge",
    "detail": "detail",
}
"""Column -> what it is called on the page; those of a duel's second candidate carry its name."""


def sample_groups(look: Look, titles: Mapping[str, str], *, best: str | None) -> list[SampleGroup]:
    """A few comparisons of each kind that there are.

    Args:
        look: The campaign as it is now.
        titles: Kind, one of `samples`, -> its heading; of the best candidate where there is one,
            but for the unscored, which may be anyone's.
        best: Its name, if any.
    """
    groups = []
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
        if rows:
            heading = f"{title}: {of_best}" if of_best else title
            groups.append(SampleGroup(title=heading, samples=[_sample(row) for row in rows]))
    return groups


def _sample(row: Row) -> Sample:
    rival = f" against {row['candidate_b']}" if row["candidate_b"] else ""
    return Sample(
        heading=readable(f"{row['candidate']}{rival} on example {row['example']}"),
        mark=_mark(row),
        facts=[*_ending(row), place_of(row), f"judge {judge_name(row['judge'])}"],
        passages=_passages(row),
    )


def place_of(row: Row) -> str:
    """The round and position at which a comparison was planned, counted from 1; both are stored from 0."""
    return f"round {row['round'] + 1}, position {row['position'] + 1}"


def judge_name(judge: str) -> str:
    """A judge's name without the digest of its parameters."""
    return DIGEST.sub("", judge)


DIGEST = re.compile(r":[0-9a-f]{12}$")
"""Matches the digest behind the name of a judge whose parameters are not the usual ones."""


def _mark(row: Row) -> Literal["right", "wrong"] | None:
    """The mark of an answer to an example with targets: right at full score, wrong at no score, else None."""
    lost = None if row["outcome"] is None else 1.0 - row["outcome"]
    if row["human_loss"] is not None:
        lost = row["human_loss"]
    if not row["targets"] or row["candidate_b"] is not None or lost not in (0.0, 1.0):
        return None
    return "wrong" if lost else "right"


def _ending(row: Row) -> Sequence[str]:
    if row["outcome"] is None:
        return [f"no outcome: {readable(row['reason'])}"]
    if row["candidate_b"] is not None:
        return [_preferred(row)]
    loss = [] if row["human_loss"] is None else [f"loss {row['human_loss']:g}"]
    return [f"score {row['outcome']:g}", *loss]


def _preferred(row: Row) -> str:
    if row["outcome"] == 0.5:
        return "a tie"
    preferred = row["candidate"] if row["outcome"] > 0.5 else row["candidate_b"]
    share = max(row["outcome"], 1.0 - row["outcome"])
    return readable(f"{preferred} preferred" if share == 1.0 else f"{preferred} preferred by {share:g}")


def _passages(row: Row) -> list[Passage]:
    texts = [
        Passage(
            label=_called(row, name),
            text=readable(row[name]),
            shown=len(row[name]),
            length=row[f"{name}_length"],
        )
        for name in PASSAGES
        # Two candidates may have been given the same prompt.
        if row[name] is not None and not (name == "prompt_b" and row["prompt_b"] == row["prompt"])
    ]
    return [*texts, *_targets(row)]


def _targets(row: Row) -> list[Passage]:
    """The answers that are accepted, a line each."""
    if not row["targets"]:
        return []
    whole = "\n".join(map(str, row["targets"]))
    shown = whole[:MOST_CHARACTERS]
    label = "target" if len(row["targets"]) == 1 else "targets"
    return [Passage(label=label, text=readable(shown), shown=len(shown), length=len(whole))]


def _called(row: Row, name: str) -> str:
    if row["candidate_b"] is None or name in ("answer", "detail"):
        return PASSAGES[name]
    whose = row["candidate_b"] if name.endswith("_b") else row["candidate"]
    return readable(f"{PASSAGES[name]} of {whose}")
