"""Whichever letter is the key: an output that chooses it is right, in the words of today's chat models.

`choice_sentences.json` holds outputs; <X> stands for the letter that is chosen, <Y> for another one.
"""

import json
from functools import cache
from pathlib import Path

import pytest

from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge

LETTERS = "ABCDEFGHIJ"
SENTENCES = json.loads((Path(__file__).parent / "choice_sentences.json").read_text())


@cache
def judge():
    return create_judge("choice", options=list(LETTERS))


def verdict(sentence, letter):
    other = LETTERS[(LETTERS.index(letter) + 3) % len(LETTERS)]
    return judge().judge(
        Sample(output=sentence.replace("<X>", letter).replace("<Y>", other), targets=[letter])
    )


@pytest.mark.parametrize("sentence", SENTENCES["chosen"])
def test_a_letter_that_is_chosen_is_read_whichever_it_is(sentence):
    verdicts = {letter: verdict(sentence, letter) for letter in LETTERS}
    assert {letter: each.answer for letter, each in verdicts.items()} == {each: each for each in LETTERS}
    assert {each.score for each in verdicts.values()} == {1.0}


@pytest.mark.parametrize("sentence", SENTENCES["undecided"])
def test_an_output_that_settles_on_nothing_chooses_no_letter(sentence):
    for letter in LETTERS:
        found = verdict(sentence, letter)
        assert (found.score, found.answer, found.no_answer) == (0.0, None, True), letter


def test_the_table_has_sentences_enough_in_several_scripts():
    chosen = set(SENTENCES["chosen"])
    assert len(chosen) >= 60
    assert sum(not sentence.isascii() for sentence in chosen) >= 30
