"""Which engines an answer says may write other texts in a run that is made again."""

from contextlib import closing
from dataclasses import replace

import pytest
from stored_campaigns import new_database, store_campaign

from winnow.tasks.answer.status_lines import repeat_lines
from winnow.tasks.answer.unit_costs import RunningCost, running_words, unsteady_engines
from winnow.tasks.campaign.look import Look
from winnow.tasks.engines.known_providers import NO_SEED

LOW, HIGH = "vllm 0.32.0 NVIDIA H100 bfloat16", "vllm 0.32.0 cpu float32"
PLAIN, WARM = "transformers 5.19.0 cpu float32", {"generate_configs": [{"name": "w", "temperature": 0.7}]}
GPU = "transformers 5.17.0 NVIDIA H100 80GB HBM3 float32"
INVARIANT, SERVER, OTHER = f"{LOW} batch-invariant", "openai vllm/0.9 m", "sleepy 2"


def unsteady(tmp_path, engines, **spec):
    """Those of a campaign that was begun with one engine and ended with another one."""
    with closing(new_database(tmp_path / "winnow.db")) as database:
        stored = store_campaign(database)
        for number, engine in enumerate(engines):
            stored.texts(stored.plan(number, [0, 1], [number, number]), engine=engine)
        record = replace(stored.record, spec={"models": [{"name": "m"}, {"name": "silent"}], **spec})
        with database.reading() as session:
            return unsteady_engines(Look(session, record))


@pytest.mark.parametrize(
    ("engines", "spec", "found"),
    [
        ([HIGH, HIGH], {"lookahead": 4}, ()),
        ([INVARIANT, INVARIANT], {"lookahead": 4}, ()),
        ([LOW, LOW], {}, (LOW,)),
        ([GPU, GPU], {}, (GPU,)),
        ([GPU, GPU], {"streaming": False}, ()),
        ([LOW, HIGH], {"lookahead": 4}, (LOW,)),
        ([HIGH, LOW], {}, (LOW,)),
        ([LOW, LOW], {"streaming": False, "lookahead": 4}, ()),
        ([SERVER, SERVER], {"streaming": False}, (SERVER,)),
        ([PLAIN, PLAIN], {"text_rules": 1, **WARM}, ()),
        # Campaigns that were begun before draw along cumulated probabilities, which rounding moves.
        ([PLAIN, PLAIN], WARM, (PLAIN,)),
        ([PLAIN, PLAIN], {"streaming": False, **WARM}, ()),
        ([PLAIN, PLAIN], {"generate_configs": [{"name": "g", "temperature": 0}]}, ()),
        ([HIGH, HIGH], WARM, ()),
        ([OTHER, OTHER], {}, ()),
        ([OTHER, OTHER], {"lookahead": 4}, (OTHER,)),
        ([OTHER, OTHER], {"streaming": False, "lookahead": 4}, ()),
    ],
)
def test_texts_that_depend_on_what_is_beside_them_are_told_unless_the_calls_are_fixed(
    tmp_path, engines, spec, found
):
    assert unsteady(tmp_path, engines, **spec) == found


def unsteady_said(*engines):
    ((_, said),) = repeat_lines(engines)
    return said


def test_what_is_said_names_the_engine_and_promises_no_more_than_the_stored_texts():
    assert repeat_lines(()) == []
    ((word, said),) = repeat_lines((LOW,))
    assert (word, said) == (
        "repeatable",
        f"not exactly: outputs of {LOW} can depend on what else is generated at the same time. Stored "
        "outputs always give this answer; if the campaign runs again, or is killed and resumed, outputs "
        "can differ",
    )
    assert f": outputs of {LOW}, {SERVER} can depend on what" in repeat_lines((LOW, SERVER))[0][1]
    seedless = f"openai m {NO_SEED}"
    assert unsteady_said(seedless).endswith(
        f". {seedless} gets no seed, so outputs drawn at a temperature differ each time"
    )
    many = repeat_lines([f"openai {number}" for number in range(60)])[0][1]
    assert ": outputs of openai 0, openai 1, openai 2, openai 3, openai 4 and 55 more can" in many


def test_a_price_that_no_number_holds_is_said():
    costs = [RunningCost(name="a", seconds=1234.5, tokens=3.0, price=float("inf"))]
    said = running_words(costs, is_of_program=False)
    assert "a 1,234 s of engine time, 3 tokens, price inf;" in said


def test_no_engine_moves_a_terminals_cursor():
    [(_, said)] = repeat_lines(["command echo '\x1b[2J\n'", "http http://h/\x1b]0;x\x07"])
    assert said.isprintable()
