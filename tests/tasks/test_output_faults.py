"""What is judged of an output, and what is read from it as wrong: a table of outputs for each."""

import json

import pytest

from winnow.tasks.campaign.outputs import Output, Settings, can_begin, faults_of, judged_text
from winnow.tasks.engines.chat import Reasoning
from winnow.tasks.engines.protocol import Structure

TAGS = Reasoning("think-tags", True, False)
KEPT = Reasoning("think-tags", False, False)
KEPT_INSIDE = Reasoning("think-tags", False, True)
SERVER = Reasoning("server", True, False)


@pytest.mark.parametrize(
    ("text", "stop", "reasoning", "judged"),
    [
        ("right### and more", ("###",), None, "right"),
        ("right###", ("###",), None, "right"),
        ("right", ("###",), None, "right"),
        ("right\n\nQ: next", ("Q:", "\n\n"), None, "right"),
        ("\nright", ("\n",), None, ""),
        ("a END b", ("END b", "EN"), None, "a "),  # the first that is complete
        ("abc", ("bc", "abc"), None, "a"),  # of two that end together, the first named
        ("a\nb</think>c\nd", ("\n",), TAGS, "a"),  # no thoughts: the parser has taken those away
        ("<think>a\nb</think>c\nd", ("\n",), KEPT, "<think>a\nb</think>c"),
        ("<think>a\nb", ("\n",), KEPT, "<think>a\nb"),
        ("a\nb</think>c\nd", ("\n",), KEPT_INSIDE, "a\nb</think>c"),
        ("a\nb", ("\n",), KEPT_INSIDE, "a\nb"),
        ("a\nb", ("\n",), KEPT, "a"),
        ("a\nb", ("\n",), SERVER, "a"),
        ("正确###答案", ("###",), None, "正确"),
        ("a\nb", (), None, "a\nb"),
    ],
)
def test_what_comes_after_a_stop_sequence_is_not_judged_and_thoughts_are_not_cut(
    text, stop, reasoning, judged
):
    assert judged_text(text, Settings(stop, reasoning)) == judged


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("right", []),
        ("<think>It could be wrong.</think>\n\nright", ["thoughts"]),
        ("It could be wrong.</think>right", ["thoughts"]),
        ("\n<think>\nIt", ["thoughts"]),
        ("<THINK>a</THINK>b", ["thoughts"]),
        ("[THINK]a[/THINK]b", ["thoughts"]),
        ("◁think▷a◁/think▷b", ["thoughts"]),
        ("<seed:think>a</seed:think>b", ["thoughts"]),
        ("<|channel|>analysis<|message|>a<|channel|>final<|message|>b", ["thoughts"]),
        ("analysisWe need B.assistantfinalB", ["thoughts"]),
        ("analysis of the word assistantship", []),
        ("<thought>a</thought>b", ["thoughts"]),
        ("<thinking>a</thinking>b", ["thoughts"]),
        ("The answer is in <reasoning>a</reasoning>.", []),  # as prompts ask for it
        ("I think the answer is <b>4</b>.", []),
        ("", ["empty"]),
        (" \n\t", ["empty"]),
    ],
)
def test_thoughts_are_known_by_the_tags_of_models_and_what_is_blank_is_empty(text, faults):
    assert faults_of(Output(text, None, "stop"), Settings()) == faults


@pytest.mark.parametrize(
    ("output", "settings", "faults"),
    [
        (Output("right", "It could be wrong.", "stop"), Settings(reasoning=TAGS), []),
        (Output("", "It could", "stop"), Settings(("\n",), TAGS), ["in-thoughts"]),
        (Output("", "It could", "stop"), Settings(reasoning=SERVER), ["in-thoughts"]),
        (Output("", " ", "stop"), Settings(reasoning=SERVER), ["empty"]),
        (Output("<think>a", None, "stop"), Settings(reasoning=KEPT), ["in-thoughts"]),
        (Output("<think>a", None, "length"), Settings(reasoning=KEPT), []),
        (Output("<think>a</think>b", None, "stop"), Settings(reasoning=KEPT), []),
        (Output("a</think>b", None, "stop"), Settings(reasoning=SERVER), ["thoughts"]),
        (Output("a### b", None, "stop"), Settings(("###",)), ["stop-ignored"]),
        (Output("a###\n", None, "stop"), Settings(("###",)), ["stop-kept"]),
        (Output("\na", None, "stop"), Settings(("\n",)), ["empty", "stop-ignored"]),
    ],
)
def test_a_fault_is_of_an_output_under_the_settings_of_its_candidate(output, settings, faults):
    assert faults_of(output, settings) == faults


SCHEMA = Structure("json_schema", json.dumps({"type": "object", "required": ["a"]}))
LIST = Structure("json_schema", json.dumps({"type": "array"}))
CHOICE = Structure("choice", json.dumps(["yes", "no"]))
PATTERN = Structure("regex", r"[0-9]{3}-[0-9]+")


@pytest.mark.parametrize(
    ("structure", "text", "can"),
    [
        *((SCHEMA, '{"a": [1, -2.5e-3, "x\\n\\u00e9", true, null]}'[:n], True) for n in range(48)),
        (SCHEMA, ' {"a": 1}\n', True),
        (SCHEMA, 'Sure! {"a": 1}', False),
        (SCHEMA, '{"a": 1} Anything else?', False),
        (SCHEMA, '```json\n{"a": 1}\n```', False),
        (SCHEMA, '{"b": 1}', False),
        (SCHEMA, "{'a': 1}", False),
        (SCHEMA, '{"a": 1 "b"', False),
        (SCHEMA, "42", False),
        (SCHEMA, "[1]", False),
        (LIST, "[1, 2", True),
        (LIST, "one, two", False),
        (LIST, "[" * 100_000, True),
        (CHOICE, "ye", True),
        (CHOICE, "no", True),
        (CHOICE, "nope", False),
        (PATTERN, "12", True),
        (PATTERN, "123-4", True),
        (PATTERN, "abc", False),
        (PATTERN, "1234", False),
        (Structure("regex", "(?P<a"), "abc", True),  # of another dialect
        (Structure("grammar", 'root ::= "x"'), "y", True),
    ],
)
def test_what_cannot_be_the_beginning_of_a_structure_shows_that_the_server_ignored_it(structure, text, can):
    assert can_begin(text, structure) is can


def test_settings_are_read_from_a_stored_candidate():
    model = {"name": "m", "reasoning": list(TAGS)}
    sampling = {"stop": ["###"], "structure": ["choice", '["a", "b"]']}
    expected = Settings(("###",), TAGS, Structure("choice", '["a", "b"]'))
    assert Settings.from_record(model, sampling) == expected
    assert Settings.from_record({}, {}) == Settings()
