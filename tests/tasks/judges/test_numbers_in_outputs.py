"""The number that an output gives as its answer, as people and models write numbers."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge
from winnow.tasks.judges.rules.reading.numbers import NumberReader
from winnow.tasks.judges.rules.reading.typography import as_typed

ROWS = json.loads((Path(__file__).parent / "numbers_in_outputs.json").read_text())
READER = NumberReader(fractions=True)


@pytest.mark.parametrize(("output", "value"), ROWS)
def test_the_answer_of_an_output_is_read_as_the_number_it_stands_for(output, value):
    found = READER.answer(output)
    assert (None if found is None else found.value) == (None if value is None else Fraction(value))


@pytest.mark.parametrize(
    ("output", "target", "score"),
    [
        ("It is 1.2 million.", "1200000", 1.0),
        ("It is 1.2 million.", "1.2", 1.0),
        ("1,200,000", "1.2 million", 1.0),
        ("It is 1.2 billion.", "1.2 million", 0.0),
        ("大约120万人", "1200000", 1.0),
        ("25", "20-25", 1.0),
    ],
)
def test_a_word_of_scale_counts_as_one_or_as_a_unit(output, target, score):
    assert create_judge("numeric").judge(Sample(output=output, targets=[target])).score == score


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("１２．５％", "12.5%"),
        ("−5, –5 and x = – 5; 3–5", "-5, -5 and x = - 5; 3–5"),
        ("12\u202f500\u00a0km", "12500 km"),
        ("1{,}234 and 12\\,000", "1,234 and 12000"),
        ("\\$18.90 and 20\\%", "18.90 and 20%"),
        ("5², 10³, x¹⁰ and m s⁻²", "5^2, 10^3, x^{10} and m s^{-2}"),
        ("½, 2½ and 1⁄3", "1/2, 5/2 and 1/3"),
        ("42[1], 43[^a], 44† and 45【3†source】", "42, 43, 44 and 45"),
        ("42 [1].\n\n[1] Census", "42 .\n\n"),
        ("\\sqrt[3]{8}, f[1] and [1, 2]", "\\sqrt[3]{8}, f[1] and [1, 2]"),
        ("٣٫١٤ and २४", "3.14 and 24"),
        ("ﬁne ① x₁", "ﬁne ① x₁"),
    ],
)
def test_characters_of_print_are_mapped_one_by_one_and_not_by_nfkc(text, typed):
    assert as_typed(text) == typed
