"""Losses of answers: what cannot be read is a loss of 1, and only what an engine did not give is missing."""

from dataclasses import replace

import numpy as np
import pytest
import regex

from winnow.algorithms.protocols import Batch
from winnow.algorithms.registry import create_selector
from winnow.storage.records.record_types import StoredText
from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.judges.protocol import Sample, Verdict
from winnow.tasks.judges.rules.numeric import NumericJudge
from winnow.tasks.objectives.certify.check import Autoevaluator, Certification
from winnow.tasks.objectives.certify.objective import as_losses
from winnow.tasks.objectives.certify.scoring import Scorer
from winnow.tasks.objectives.certify.split import Parts
from winnow.tasks.spec.sections.generate_config import SamplesSpec

FAILED = GenerationFailure(reason="engine_failed", detail="it died")
NUMBERED = Autoevaluator(
    model=None, template=None, sampling=None, pattern=regex.compile("(?:answer|guess): (.+)")
)


def stored(text):
    return StoredText(id=1, text=text, finish_reason="stop", input_tokens=1, output_tokens=1)


def scorer(answers, *, blocks=((1, 2),), baseline=None, samples=None):
    """Of answers by author and example: a text, None for a failure, or a list of these.

    Example 0 is the first labelled one.
    """
    blocks = np.array(blocks)
    several = {key: given if isinstance(given, list) else [given] for key, given in answers.items()}
    return Scorer(
        certification=Certification(
            spec=None,
            costs={},
            parts=Parts(labellable=np.arange(len(blocks)), blocks=blocks),
            autoevaluator=NUMBERED,
            baseline=baseline,
            samples=samples,
        ),
        judge=NumericJudge(),
        answers={
            key: [FAILED if text is None else stored(text) for text in texts]
            for key, texts in several.items()
        },
        samples={
            key: [Sample(output=text) for text in texts]
            for key, texts in several.items()
            if None not in texts
        },
    )


@pytest.mark.parametrize(
    ("text", "targets", "loss"),
    [
        ("it is 4", ["4"], 0.0),
        ("it is 5", ["4"], 1.0),
        ("dunno", ["4"], 1.0),  # an output that cannot be read
        ("it is 4", ["four"], 1.0),  # a label that cannot be read
        ("it is 4", [], 1.0),  # nobody knows
        (None, [], 1.0),
        (None, ["4"], None),
    ],
)
def test_only_a_text_that_is_missing_has_no_loss(text, targets, loss):
    assert scorer({(0, 0): text}).loss(0, 0, targets) == loss


@pytest.mark.parametrize(
    ("text", "standard", "targets", "loss"),
    [
        ("4", "4", ["4"], 0.0),
        ("5", "4", ["4"], 1.0),
        ("4", "5", ["4"], 0.0),
        ("dunno", "4", ["4"], 1.0),
        ("dunno", "5", ["4"], 0.0),  # neither is right: nothing was lost
        ("5", "dunno", ["4"], 0.0),
        ("4", "4", ["four"], 1.0),
        ("4", "4", [], 1.0),
        (None, "4", ["4"], None),
        ("4", None, ["4"], None),
    ],
)
def test_against_a_baseline_an_output_that_cannot_be_read_scores_0(text, standard, targets, loss):
    assert scorer({(0, 0): text, (1, 0): standard}, baseline=1).loss(0, 0, targets) == loss


@pytest.mark.parametrize(
    ("reduce", "texts", "targets", "loss"),
    [
        ("mean", ["4", "4", "5"], ["4"], 1 / 3),
        ("mean", ["4", "4", "dunno"], ["4"], 1 / 3),  # one that cannot be read scores 0
        ("pass@2", ["4", "5", "5"], ["4"], 1 / 3),
        ("pass@3", ["5", "4", "dunno"], ["4"], 0.0),
        ("pass^2", ["4", "4", "5"], ["4"], 2 / 3),
        ("pass^3", ["4", "4", "dunno"], ["4"], 1.0),
        ("majority", ["4", "4", "5"], ["4"], 0.0),
        ("majority", ["4", "5", "5"], ["4"], 1.0),
        ("majority", ["4", "dunno", "dunno"], ["4"], 0.0),  # who gives no answer does not vote
        ("majority", ["dunno", "dunno", "dunno"], ["4"], 1.0),
        ("mean", ["4", "4", "4"], ["four"], 1.0),  # a label that cannot be read
        ("mean", ["4", None, "4"], ["4"], None),
    ],
)
def test_several_texts_have_the_loss_of_what_their_scores_come_to(reduce, texts, targets, loss):
    found = scorer({(0, 0): texts}, samples=SamplesSpec(n=3, reduce=reduce)).loss(0, 0, targets)
    assert found == (None if loss is None else pytest.approx(loss))


@pytest.mark.parametrize("targets", [[], ["7"], ["no number"]])
@pytest.mark.parametrize("text", ["7", "8", "", None])
def test_a_baseline_is_never_below_itself(text, targets):
    assert scorer({(1, 0): text}, baseline=1).loss(1, 0, targets) == 0.0


def test_several_texts_are_held_against_as_many_of_the_baseline():
    answers = {(0, 0): ["4", "5", "5"], (1, 0): ["4", "4", "5"], (None, 0): "answer: 5"}
    found = scorer(answers, baseline=1, blocks=[[0]], samples=SamplesSpec(n=3))
    assert found.loss(0, 0, ["4"]) == pytest.approx(1 / 3)
    assert found.auto_loss(0, 0) == 0.0  # by what the autoevaluator says, the candidate is the better one
    assert found.unlabelled(0, 0).mean == 0.0


@pytest.mark.parametrize(
    ("said", "loss"),
    [
        ("answer: 4", 0.0),
        ("answer: 5", 1.0),
        ("I cannot say", 1.0),  # no answer is found in it
        ("answer: four", 1.0),  # one is found that the judge cannot read
        (None, None),
    ],
)
def test_an_autoevaluator_that_cannot_be_read_is_a_loss_of_1_on_every_kind_of_example(said, loss):
    found = scorer({(None, 0): said, (0, 0): "4"}, blocks=[[0]])
    assert found.auto_loss(0, 0) == loss
    assert found.unlabelled(0, 0).mean == loss
    assert found.unlabelled(0, 0).missing == (1.0 if loss is None else 0.0)


def test_what_the_autoevaluator_leaves_unread_needs_no_output_of_the_candidate():
    assert scorer({(None, 0): "I cannot say", (0, 0): None}).auto_loss(0, 0) == 1.0


def test_losses_of_a_block_are_missing_one_by_one():
    answers = {(None, 1): "answer: 1", (0, 1): "2", (None, 2): None, (0, 2): "2"}
    answers |= {(None, 3): "answer: 3", (0, 3): "3", (None, 4): "answer: 4", (0, 4): None}
    block = scorer(answers, blocks=[[1, 2, 3, 4]]).unlabelled(0, 0)
    assert (block.mean, block.missing) == (0.5, 0.5)


def test_without_unlabelled_examples_nothing_is_missing():
    block = scorer({}, blocks=np.empty((1, 0), dtype=int)).unlabelled(0, 0)
    assert (block.mean, block.missing) == (None, None)


def told_losses(seed, *, unread, n_labels=120, per_label=9):
    """The losses of a candidate that is right but once in 50, by an autoevaluator that is often not read."""
    rng = np.random.default_rng(seed)
    size = n_labels * (1 + per_label)
    right = rng.random(size) < 0.98
    said = np.where(rng.random(size) < unread, "I cannot say", "answer: 4")
    answers = {(0, each): "4" if right[each] else "5" for each in range(size)}
    answers |= {(None, each): str(said[each]) for each in range(size)}
    found = scorer(answers, blocks=np.arange(n_labels, size).reshape(n_labels, per_label))
    rows = []
    for example in range(n_labels):
        block = found.unlabelled(0, example)
        rows.append((found.loss(0, example, ["4"]), found.auto_loss(0, example), block.mean, block.missing))
    return as_losses(rows)


def is_certified(losses):
    selector = create_selector("r-autoeval", n_arms=1, n_examples=len(losses), alpha=0.25, delta=0.1)
    selector.tell(Batch(np.zeros(len(losses), dtype=int), np.arange(len(losses))), losses)
    return bool(selector.certified[0])


def test_an_autoevaluator_that_cannot_be_read_now_and_then_costs_no_certificate():
    losses = [told_losses(seed, unread=0.08) for seed in range(8)]
    assert sum(map(is_certified, losses)) == 8
    # Had each of these answers, and the block that it is in, counted as missing, none would be.
    for each in losses:
        each[each[:, 1] == 1.0, 1] = np.nan
        each[each[:, 2] > 0.0, 2] = np.nan
    assert sum(map(is_certified, losses)) == 0


def test_a_judge_that_gave_no_score_is_a_loss_of_one_on_either_side():
    """Of a baseline it would be a loss of 0: the best that a candidate can have, for nothing."""

    class OnlyReadable:
        def judge(self, sample):
            return (
                Verdict.unscored("invalid_score")
                if sample.output == "unread"
                else Verdict.scored(True, sample.output)
            )

    for mine, standard in (("7", "unread"), ("unread", "7"), ("unread", "unread")):
        given = scorer({(0, 0): mine, (1, 0): standard}, baseline=1)
        assert replace(given, judge=OnlyReadable()).loss(0, 0, ["7"]) == 1.0
