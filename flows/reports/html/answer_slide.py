"""The slide that holds the answer, and what all slides say of the campaign."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from plotly.graph_objects import Figure

from winnow.flows.reports.html.figures.labels import as_label
from winnow.flows.reports.html.figures.theme import themes
from winnow.flows.reports.summary import hanging
from winnow.tasks.answer.sentences.answer_lines import headline
from winnow.tasks.answer.sentences.clauses import Line
from winnow.tasks.answer.status_lines import status_lines
from winnow.tasks.queries.status import CampaignStatus
from winnow.tasks.text.phrases import amount

WIDTH, HEIGHT = 1600, 900
"""Of a slide in pixels."""
FONT_SIZE = 20
TOP, LEFT, WORDS = 160, 50, 220
"""Pixels: where what is below the title begins, where words do, and sentences."""
LINE_HEIGHT = 1.35
"""Of the size of its letters."""
LETTER_WIDTH = 0.53
"""Mean width of a letter, of its size, on the generous side."""
SIZES = (26, 24, 22, 20, 18, 16, 14, 12, 11)
"""Of letters; the first at which the answer fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSlide:
    """The texts of a slide with a campaign's answer."""

    title: str
    caption: str
    """The campaign, the moment of its answer, and its numbers of examples and comparisons."""
    lines: Sequence[Line]

    @classmethod
    def of(cls, status: CampaignStatus, decided_at: dt.datetime) -> "AnswerSlide":
        """The slide of a campaign whose last decision was made at this moment."""
        return cls(
            title=headline(status.answer, status.state),
            caption=_caption(status, decided_at),
            lines=status_lines(status.answer, status.totals),
        )

    def figure(self) -> Figure:
        """The slide: a word and its sentence below the other, as large as fits."""
        size, told = next(
            (each for each in map(self._broken, SIZES) if _fits(*each)), self._broken(SIZES[-1])
        )
        figure, row = titled(Figure(), self.title, self.caption), 0
        figure.update_layout(margin={"l": 0, "r": 0, "t": 0, "b": 0})
        figure.update_xaxes(visible=False).update_yaxes(visible=False)
        for (word, _), lines in zip(self.lines, told, strict=True):
            for text, left in ((word, LEFT), ("<br>".join(map(as_label, lines)), WORDS)):
                figure.add_annotation(
                    text=text,
                    x=left / WIDTH,
                    y=1.0 - (TOP + row * size * LINE_HEIGHT) / HEIGHT,
                    xref="paper",
                    yref="paper",
                    xanchor="left",
                    yanchor="top",
                    align="left",
                    showarrow=False,
                    font={"size": size},
                )
            row += len(lines)
        return figure

    def _broken(self, size: int) -> tuple[int, list[list[str]]]:
        """A size of letters, and each sentence as the lines that it then takes.

        A word that is longer than a line is broken anywhere: nobody can scroll a picture.
        """
        letters = int((WIDTH - WORDS - LEFT) / (size * LETTER_WIDTH))
        return size, [
            [part for line in hanging("", sentence, letters) for part in wrap(line, letters) or [""]]
            for _, sentence in self.lines
        ]


def _caption(status: CampaignStatus, decided_at: dt.datetime) -> str:
    n, all_ = status.answer.n_examples, status.totals["examples"]
    examples = f"n = {amount(all_)} examples"
    if status.answer.held_out is not None:  # selection did not see them
        examples = f"n = {amount(n)} examples and {amount(all_ - n)} held out"
    answered = amount(status.totals["answered"])
    return f"{status.name}, {decided_at:%Y-%m-%d}, {examples}, {answered} comparisons"


def titled(slide: Figure, title: str, caption: str) -> Figure:
    """The figure itself, of the size of a slide, with a title and a caption below it."""
    return slide.update_layout(
        template=themes()["light"],
        title={
            "text": as_label(title),
            "font": {"size": 34},
            "subtitle": {"text": as_label(caption), "font": {"size": 18}},
            "x": 0.03,
            "y": 0.95,
            "yanchor": "top",
        },
        font={"size": FONT_SIZE},
        margin={"l": 50, "r": 60, "t": 150, "b": 50},
        paper_bgcolor="white",
        width=WIDTH,
        height=HEIGHT,
    )


def _fits(size: int, told: Sequence[Sequence[str]]) -> bool:
    return TOP + sum(map(len, told)) * size * LINE_HEIGHT <= HEIGHT - LEFT
