"""Write the result of `winnow gate` for a pipeline: JUnit XML, and Markdown for a pull request."""

import os.path
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from winnow.flows.reports.output import atomic_replacement
from winnow.tasks.answer.model import CandidateStanding
from winnow.tasks.answer.sentences.answer_lines import headline
from winnow.tasks.answer.sentences.gate import WORDS, difference_words
from winnow.tasks.answer.status_lines import status_lines
from winnow.tasks.queries.status import CampaignStatus
from winnow.tasks.text.printable import escaped, printable

PASSED = ("no-worse", "better")
"""Statuses of candidates that pass a gate."""


UNFINISHED = "not finished: no result for any candidate; see the output of winnow gate"
"""Sentence in the files until the gate has an answer."""


class Case(NamedTuple):
    """A JUnit test case, for one candidate."""

    name: str
    kind: str | None
    """XML element of the result: "failure" or "error"; None if the case passed."""
    type: str = ""
    text: str = ""


def begin_gate_files(subject: str, *, junit: Path | None, markdown: Path | None) -> None:
    """Write to the files that the gate has no answer yet, so that a pipeline does not use an earlier answer.

    Nothing is written to devices and pipes, because such a text cannot be replaced later.

    Args:
        subject: Path of the campaign's file, or another name of the gate.
        junit: File for the XML; None writes no XML.
        markdown: File for the summary; None writes no summary.

    Raises:
        WinnowError: If a file cannot be written.
    """
    case = Case("winnow gate", "error", "unfinished", UNFINISHED)
    texts = (
        (junit, _xml(subject, [case], UNFINISHED)),
        (markdown, f"### {escaped(subject)}: {UNFINISHED}\n"),
    )
    for path, text in texts:
        if path is None or (os.path.exists(path) and not path.is_file()):
            continue
        with atomic_replacement(path) as beside:
            beside.write_text(text, encoding="utf-8")


def write_gate_files(status: CampaignStatus, *, junit: Path | None, markdown: Path | None) -> None:
    """Write the results to the files; None writes no file.

    Raises:
        WinnowError: If a file cannot be written.
    """
    for path, text in ((junit, junit_xml), (markdown, gate_markdown)):
        if path is None:
            continue
        with atomic_replacement(path) as beside:
            beside.write_text(text(status), encoding="utf-8")


def junit_xml(status: CampaignStatus) -> str:
    """JUnit XML: a test suite with a test case for each candidate except the baseline.

    A case fails if its candidate is shown to be worse. The case is an error if nothing is shown about the
    candidate: if it is undecided or was dropped, or if all scores are 0.
    """
    answer = status.answer
    cases = [
        Case(
            each.name,
            _verdict(status, each),
            each.status,
            f"{_word(each)}: {difference_words(answer, each)}",
        )
        for each in answer.candidates
        if each.name != answer.baseline
    ]
    return _xml(status.name, cases, "\n".join([*status.headline_sentences(), *_sentences(status)]))


def _xml(subject: str, cases: Sequence[Case], output: str) -> str:
    kinds = [each.kind for each in cases]
    counts = {
        "tests": str(len(cases)),
        "failures": str(kinds.count("failure")),
        "errors": str(kinds.count("error")),
    }
    root = Element("testsuites", {"name": "winnow gate", **counts})
    suite = SubElement(root, "testsuite", {"name": printable(subject), "skipped": "0", **counts})
    for each in cases:
        case = SubElement(suite, "testcase", classname=printable(subject), name=printable(each.name))
        if each.kind is not None:
            text = printable(each.text)
            SubElement(case, each.kind, message=text, type=each.type).text = text
    SubElement(suite, "system-out").text = printable(output)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def gate_markdown(status: CampaignStatus) -> str:
    """Markdown: a heading, a table of all candidates except the baseline, and the answer's lines."""
    answer = status.answer
    heading = f"### {escaped(status.name)}: {headline(answer, status.state)}"
    sentences = " ".join(status.headline_sentences())
    rows = [
        f"| {escaped(each.name)} | {_word(each)} | {escaped(difference_words(answer, each))} |"
        for each in answer.candidates
        if each.name != answer.baseline
    ]
    items = [f"- {escaped(line)}" for line in _sentences(status)]
    return "\n".join(
        [
            heading,
            "",
            escaped(sentences),
            "",
            "| candidate | verdict | difference |",
            "|---|---|---|",
            *rows,
            "",
            *items,
            "",
        ]
    )


def _verdict(status: CampaignStatus, candidate: CandidateStanding) -> str | None:
    """Value of `Case.kind`; None if the candidate passed."""
    answer = status.answer
    if not answer.is_guaranteed or (answer.is_unsolved and not answer.allows_all_zero):
        return "error"
    if candidate.status in PASSED:
        return None
    return "failure" if candidate.status == "worse" else "error"


def _word(candidate: CandidateStanding) -> str:
    return WORDS.get(candidate.status, candidate.status)


def _sentences(status: CampaignStatus) -> list[str]:
    """Lines of the answer, without those that the table or the cases already show."""
    of_cases = set(WORDS.values())
    lines = status_lines(status.answer, status.totals)
    return [f"{word}: {said}" for word, said in lines if word not in of_cases]
