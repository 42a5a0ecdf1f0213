"""The result of `winnow gate` for a pipeline: JUnit XML, and Markdown for a pull request."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from winnow.flows.reports.output import in_place_of
from winnow.tasks.answer.model import CandidateStanding
from winnow.tasks.answer.sentences.answer_lines import headline
from winnow.tasks.answer.sentences.gate import WORDS, difference_words
from winnow.tasks.answer.status_lines import status_lines
from winnow.tasks.queries.status import CampaignStatus
from winnow.tasks.text.printable import escaped, printable

PASSED = ("no-worse", "better")
"""Statuses of candidates that pass a gate."""


UNFINISHED = "not finished: no result for any candidate; see the output of winnow gate"
"""Content of the files until the gate has an answer."""


class Case(NamedTuple):
    """A JUnit test case: its subject and its content.

    The kind is failure or error; None if the case passed.
    """

    name: str
    kind: str | None
    type: str = ""
    said: str = ""


def begin_gate_files(subject: str, *, junit: Path | None, markdown: Path | None) -> None:
    """Write to the given files that the gate has no answer yet, so that an earlier answer is not used.

    Args:
        subject: The command or function, in words.
        junit: File for the XML; devices and pipes are left out, because text written to them cannot be
            replaced.
        markdown: The same for the summary.

    Raises:
        WinnowError: If a file cannot be written.
    """
    case = Case("winnow gate", "error", "unfinished", UNFINISHED)
    texts = (
        (junit, _xml(subject, [case], UNFINISHED)),
        (markdown, f"### {escaped(subject)}: {UNFINISHED}\n"),
    )
    for path, text in texts:
        if path is None or (path.exists() and not path.is_file()):
            continue
        with in_place_of(path) as beside:
            beside.write_text(text, encoding="utf-8")


def write_gate_files(status: CampaignStatus, *, junit: Path | None, markdown: Path | None) -> None:
    """Write the results to the given files.

    Raises:
        WinnowError: If a file cannot be written.
    """
    for path, text in ((junit, junit_xml), (markdown, gate_markdown)):
        if path is None:
            continue
        with in_place_of(path) as beside:
            beside.write_text(text(status), encoding="utf-8")


def junit_xml(status: CampaignStatus) -> str:
    """A test suite with a test case for each candidate except the baseline.

    A case fails if its candidate is shown to be worse. If nothing is shown about it, because it is open or
    was dropped, or because all scores are 0, the case is an error: a test that could not be decided did not
    pass.
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
    told = status.headline_sentences()
    return _xml(status.name, cases, "\n".join([*told, *_sentences(status)]))


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
            said = printable(each.said)
            SubElement(case, each.kind, message=said, type=each.type).text = said
    SubElement(suite, "system-out").text = printable(output)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def gate_markdown(status: CampaignStatus) -> str:
    """A heading, a table of all candidates except the baseline, and the sentences on confidence."""
    answer = status.answer
    heading = f"### {escaped(status.name)}: {headline(answer, status.state)}"
    told = " ".join(status.headline_sentences())
    rows = [
        f"| {escaped(each.name)} | {_word(each)} | {escaped(difference_words(answer, each))} |"
        for each in answer.candidates
        if each.name != answer.baseline
    ]
    said = [f"- {escaped(line)}" for line in _sentences(status)]
    return "\n".join(
        [
            heading,
            "",
            escaped(told),
            "",
            "| candidate | verdict | difference |",
            "|---|---|---|",
            *rows,
            "",
            *said,
            "",
        ]
    )


def _verdict(status: CampaignStatus, candidate: CandidateStanding) -> str | None:
    """The XML element inside a test case; None if the case passed."""
    answer = status.answer
    if not answer.is_guaranteed or (answer.is_unsolved and not answer.allows_all_zero):
        return "error"
    if candidate.status in PASSED:
        return None
    return "failure" if candidate.status == "worse" else "error"


def _word(candidate: CandidateStanding) -> str:
    return WORDS.get(candidate.status, candidate.status)


def _sentences(status: CampaignStatus) -> list[str]:
    """The answer's lines without those that the cases repeat."""
    of_cases = set(WORDS.values())
    lines = status_lines(status.answer, status.totals)
    return [f"{word}: {said}" for word, said in lines if word not in of_cases]
