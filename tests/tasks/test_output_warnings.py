"""A candidate that is mute, cut off, or reads as wrong because of the harness is named, with what to do."""

import json

import pytest
from faulty_server import Fault, faulty_server
from served_campaigns import run, served_model, served_spec, write_data
from sqlalchemy import text, update
from stored_campaigns import NOW, generation, new_database, store_campaign

from winnow.storage.models import Campaign, Candidate, Example
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import generations as generation_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.record_types import NewComparison
from winnow.tasks.campaign.look import Look
from winnow.tasks.data.labels import as_options, labels_of
from winnow.tasks.queries.check_texts import findings
from winnow.tasks.queries.views import ask
from winnow.tasks.queries.warnings import from_outputs
from winnow.tasks.queries.warnings.campaign_warnings import EarlyWarnings, campaign_warnings
from winnow.tasks.queries.warnings.from_outputs import output_warnings

OUT = ["best", "eliminated", "active"]
TARGETS = ["bug", "feature", "question", "docs", "bug"]


def play(campaign, outputs, number=0, status=OUT, **fields):
    """A round in which each arm has these outputs, each a text, or a text and what else is stored of it."""
    pairs = [(arm, example) for arm, row in enumerate(outputs) for example in range(len(row))]
    round_ = campaign.plan(number, [arm for arm, _ in pairs], [example for _, example in pairs])
    said = [outputs[arm][example] for arm, example in pairs]
    texts = [each if isinstance(each, tuple) else (each, {}) for each in said]
    keys = [f"{campaign.record.name}-{number}-{position}" for position in range(len(pairs))]
    made = [
        generation(key, text=each, **more)
        for key, (each, more) in zip(keys, texts, strict=True)
        if each is not None
    ]
    with campaign.database.writing() as session:
        stored = generation_records.add_generations(session, round_.id, made, NOW)
        rows = [
            NewComparison(
                position=position,
                candidate_a_id=campaign.candidate_ids[arm],
                example_id=campaign.example_ids[example],
                generation_a_id=stored[keys[position]].id if keys[position] in stored else None,
                judge="exact",
                **{"outcome": float(said[position] == TARGETS[example])} | (fields if arm else {}),
            )
            for position, (arm, example) in enumerate(pairs)
        ]
        decision = campaign.decision(0, status=status)
        outcome_records.add_outcomes(session, round_.id, rows, decision, NOW)


@pytest.fixture
def campaign(database):
    """Three candidates on five examples with the targets of a classification."""
    stored = store_campaign(database)
    with database.writing() as session:
        for id_, target in zip(stored.example_ids, TARGETS, strict=True):
            session.execute(update(Example).where(Example.id == id_).values(targets=[target]))
    return stored


def sampling(campaign, arm, **settings):
    with campaign.database.writing() as session:
        of_it = Candidate.id == campaign.candidate_ids[arm]
        session.execute(update(Candidate).where(of_it).values(sampling=settings))


def told(campaign, *, has_ended=True):
    with campaign.database.reading() as session:
        record = campaign_records.get_campaign(session, campaign.record.name)
        return output_warnings(Look(session, record), has_ended=has_ended)


def test_outputs_that_are_as_they_should_be_are_not_warned_of(campaign):
    play(campaign, [TARGETS, [*TARGETS[1:], "docs"], TARGETS])
    assert told(campaign) == []


@pytest.mark.parametrize(
    ("output", "kind", "words"),
    [
        (("", {"output_tokens": 9}), "empty", "all be reasoning (reasoning_content)"),
        (("", {"output_tokens": 1}), "empty", "the model ends at once; check its prompt"),
        (("", {"finish_reason": "length", "output_tokens": 9}), "truncated", "raise max_tokens"),
        (("<think>x</think>bug", {}), "thoughts", "set the model's reasoning: {parser: think-tags}"),
        (("x</think>bug", {}), "thoughts", "{parser: think-tags, begins_inside: true}"),
        (("[THINK]x[/THINK]bug", {}), "thoughts", "start the server with a reasoning parser"),
        (("bu", {"finish_reason": "length"}), "truncated", "raise max_tokens"),
    ],
)
def test_a_candidate_is_named_for_what_most_of_its_outputs_are_with_what_to_do(campaign, output, kind, words):
    play(campaign, [TARGETS, [output] * 4])
    found = [each for each in told(campaign) if each.kind == kind]
    assert len(found) == 1
    assert found[0].about == ("b",)
    assert found[0].sentence.startswith("4 of 9 outputs (44.4%) ")
    assert "all 4 of b (eliminated)" in found[0].sentence
    assert words in found[0].sentence


@pytest.mark.parametrize(
    ("settings", "output", "kind", "words"),
    [
        ({"stop": ["\n"]}, "", "empty", r"stop sequence '\n' may come first"),
        ({"stop": ["x", "\n"]}, "\nbug", "empty", r"stop sequence '\n' may come first"),
        (
            {"stop": ["###"]},
            "bug### and",
            "stop-ignored",
            "the server ignores stop_seqs; outputs are judged as a whole",
        ),
        ({"structure": ["choice", '["bug", "docs"]']}, "A bug.", "structure", "ignores structured_output"),
    ],
)
def test_settings_that_make_an_output_what_it_is_are_in_the_remedy(campaign, settings, output, kind, words):
    sampling(campaign, 1, **settings)
    if kind == "empty" and output:  # it is judged up to its stop sequences
        with campaign.database.writing() as session:
            row = session.get_one(Campaign, campaign.record.id)
            row.spec = {**row.spec, "cut_at_stop": True}
    play(campaign, [TARGETS, [output] * 4])
    (warning,) = [each for each in told(campaign) if each.kind == kind]
    assert words in warning.sentence
    assert "all 4 of b (eliminated)" in warning.sentence


def test_an_answer_within_thoughts_names_the_stop_sequence(campaign):
    with campaign.database.writing() as session:
        of_it = Candidate.id == campaign.candidate_ids[1]
        model = {"name": "m", "provider": "vllm", "reasoning": ["think-tags", True, False]}
        session.execute(update(Candidate).where(of_it).values(sampling={"stop": ["\n"]}, model=model))
    play(campaign, [TARGETS, [("", {"reasoning": "It could"})] * 4])
    (warning,) = told(campaign)
    assert warning.kind == "in-thoughts"
    assert "a stop sequence may occur in the reasoning" in warning.sentence


def test_a_model_whose_thoughts_are_nowhere_is_named_and_one_that_thought_once_is_not(campaign):
    for parser, words in (
        ("think-tags", "skip_special_tokens: false"),
        ("server", "the server returns none"),
    ):
        with campaign.database.writing() as session:
            model = {"name": "m", "provider": "openai", "reasoning": [parser, True, False]}
            session.execute(update(Candidate).values(model=model))
        if parser == "think-tags":
            play(campaign, [TARGETS, [*TARGETS[1:], "docs"]])
        (warning,) = told(campaign)
        assert warning.kind == "no-thoughts"
        assert warning.sentence.startswith(
            "no reasoning was found in any of 10 outputs of m, for which the file sets reasoning: "
        )
        assert words in warning.sentence
    play(campaign, [[], [], [("fix", {"reasoning": "x"})]], number=1)
    assert told(campaign) == []


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        (
            "the server ended the text with finish_reason 'tool_calls'",
            "the model called a tool: tell it to answer in text",
        ),
        ("the model refused: I cannot\x1b[31m", "check the prompt and what the server allows"),
    ],
)
def test_a_candidate_whose_requests_are_refused_is_named_with_the_servers_words(campaign, detail, words):
    play(campaign, [TARGETS, [None] * 4], outcome=None, reason="refused", detail=detail)
    (warning,) = told(campaign)
    assert warning.kind == "refused"
    assert warning.sentence.startswith("no output for 4 comparisons, all 4 of b (eliminated) (")
    assert words in warning.sentence
    assert "\x1b" not in warning.sentence


@pytest.mark.parametrize(
    ("outputs", "fields", "kind", "sentence"),
    [
        (
            [f"The category is: {each}." for each in TARGETS],
            {},
            "zero-holds-target",
            "b (eliminated) scored 0 on all 5 outputs, and 5 of them contain the target: example 'e0' got "
            "'The category is: bug.', its target is 'bug'; set the judge's extract, or use judge contains",
        ),
        (
            [f"{each.title()}." for each in TARGETS],
            {},
            "zero-holds-target",
            "b (eliminated) scored 0 on all 5 outputs, and 5 of them contain the target: example 'e0' got "
            "'Bug.', its target is 'bug'; use judge normalised, which ignores case and punctuation",
        ),
        (
            ["How can I help?"] * 5,
            {},
            "zero-all-equal",
            "b (eliminated) scored 0 on all 5 outputs, and wrote the same output each time: example 'e0' got "
            "'How can I help?', its target is 'bug'; check whether the prompt shows the input",
        ),
        (
            ["Sure", "Well", "Hm", "No", "So"],
            {"no_answer": True},
            "zero-unread",
            "b (eliminated) scored 0 on all 5 outputs, and the judge could read none of them: example 'e0' "
            "got 'Sure', its target is 'bug'; set the judge's extract, or state in the prompt how to answer",
        ),
        (
            ["Sure", "Well", "Hm", "No", "So"],
            {"no_answer": True, "outcome": None, "reason": "no_answer"},
            "zero-unread",
            "b (eliminated) got no score on all 5 outputs, and the judge could read none of them: example "
            "'e0' got 'Sure', its target is 'bug'; set the judge's extract, or state in the prompt how "
            "to answer",
        ),
    ],
)
def test_scores_that_are_all_0_are_looked_at_for_a_cause_that_is_not_the_model(
    campaign, outputs, fields, kind, sentence
):
    play(campaign, [TARGETS, outputs], **fields)
    (warning,) = told(campaign)
    assert (warning.kind, warning.about, warning.sentence) == (kind, ("b",), sentence)


def test_programs_that_do_not_parse_are_told_as_unread(campaign):
    play(campaign, [TARGETS, ["def f(:", "def g(:"]], answer="the program: SyntaxError: invalid syntax")
    (warning,) = told(campaign)
    assert warning.kind == "zero-unread"
    assert "the judge could read none of them: example 'e0' got 'def f(:'" in warning.sentence


@pytest.mark.parametrize(
    "outputs",
    [
        ["feature", "question", "docs", "bug", "docs"],  # wrong answers, no cause shows
        ["a debugger", "features", "x", "y", "z"],  # no target as a word
    ],
)
def test_a_model_that_is_wrong_is_not_explained_away(campaign, outputs):
    play(campaign, [TARGETS, outputs])
    assert told(campaign) == []


@pytest.mark.parametrize(
    ("said", "target", "holds"),
    [
        ("The category is: bug.", "bug", True),
        ("**Bug**", "bug", True),
        ("debugger", "bug", False),
        ("\\boxed{4}", "4", True),
        ("It is 4.", "4", True),
        ("It is 4.5", "4", False),
        ("1,234", "234", False),
        ("-4", "4", False),
        ("14", "4", False),
        ("Answer: B", "B", True),
        ("a cat", "A", False),
        ("正确答案是北京。", "北京", True),
        ("Это который", "кот", False),
        ("Это кот.", "Кот", True),
        ("", "bug", False),
        ("bug", "", False),
    ],
)
def test_a_target_is_held_as_a_word_or_a_number_of_its_own(said, target, holds):
    assert from_outputs._holds(said, target) is holds


def test_targets_that_cannot_be_read_are_no_fault_of_an_output(campaign):
    play(campaign, [TARGETS, ["Sure"] * 5], outcome=None, reason="unreadable_target")
    assert told(campaign) == []


def test_a_hostile_output_is_shown_in_one_safe_short_line(campaign):
    play(campaign, [TARGETS, [f"\x1b[2J\n{each}\r\n" + "x " * 500 for each in TARGETS]])
    (warning,) = told(campaign)
    assert warning.sentence.isprintable()
    assert len(warning.sentence) < 300


def test_a_few_faults_among_many_outputs_are_not_worth_a_line(database):
    wide = store_campaign(database, names=[f"c{number}" for number in range(20)])
    outputs = [["v", "w", "y", "z", "w"] for _ in range(20)]
    outputs[3][2] = ""
    play(wide, outputs, status=["active"] * 20)
    assert [each.kind for each in told(wide)] == []


def test_what_all_candidates_do_is_told_of_all(campaign):
    play(campaign, [["<think>a</think>bug"] * 2] * 3)
    warning, *_ = told(campaign)
    assert warning.sentence.startswith(
        "6 of 6 outputs (100.0%) contain the model's reasoning and are judged with it, all 2 of b "
        "(eliminated), all 2 of a, all 2 of c: set the model's reasoning"
    )


def judged_by(campaign, **judge):
    with campaign.database.writing() as session:
        row = session.get_one(Campaign, campaign.record.id)
        row.spec = {**row.spec, "judge": judge}


CODE_PART = [{"type": "code"}, {"type": "choice"}]


@pytest.mark.parametrize(
    ("judge", "output", "kinds"),
    [
        ({"type": "choice"}, "<think>x</think>bug", []),
        ({"type": "choice"}, "x</think>bug", []),
        ({"type": "numeric"}, "<thinking>x</thinking>bug", []),
        ({"type": "math"}, "<think>x", []),
        ({"type": "code"}, "<think>x</think>bug", []),
        ({"type": "all", "judges": CODE_PART}, "<think>x</think>bug", []),
        ({"type": "code"}, "x</think>bug", ["thoughts"]),
        ({"type": "choice"}, "[THINK]x[/THINK]bug", ["thoughts"]),
        ({"type": "choice", "extract": "x"}, "<think>x</think>bug", ["thoughts"]),
        ({"type": "all", "judges": [*CODE_PART, {"type": "exact"}]}, "<think>x</think>bug", ["thoughts"]),
    ],
)
def test_thoughts_that_the_judge_passes_over_are_not_said_to_be_judged(campaign, judge, output, kinds):
    judged_by(campaign, **judge)
    play(campaign, [TARGETS, [output] * 4], outcome=1.0)
    assert [each.kind for each in told(campaign)] == kinds


@pytest.mark.parametrize(
    ("empty", "words"),
    [
        ({7: 2}, "2 of 60 outputs (3.3%) are empty, 2 of 5 of c7: "),
        ({1: 1, 7: 2, 9: 2}, "5 of 60 outputs (8.3%) are empty, 2 of 5 of c7, 2 of 5 of c9: "),
        ({1: 1, 3: 1, 7: 1}, "3 of 60 outputs (5.0%) are empty, 1 of 5 of c1, 1 of 5 of c3, 1 of 5 of c7: "),
        ({1: 1, 3: 1, 5: 1, 7: 1}, "4 of 60 outputs (6.7%) are empty: "),
    ],
)
def test_few_candidates_that_have_nearly_all_of_a_fault_are_named(database, empty, words):
    wide = store_campaign(database, names=[f"c{number}" for number in range(12)])
    outputs = [["v", "w", "y", "z", "w"] for _ in range(12)]
    for arm, n in empty.items():
        outputs[arm][:n] = [""] * n
    play(wide, outputs, status=["active"] * 12)
    (warning,) = told(wide)
    assert warning.sentence.startswith(words)


def test_each_candidate_with_a_large_share_of_a_fault_is_named_with_its_numbers(database):
    """One with half of its outputs empty is not said to have nearly all of them empty."""
    wide = store_campaign(database, names=[f"c{number}" for number in range(12)])
    outputs = [["v", "w", "y", "z"] for _ in range(12)]
    outputs[3], outputs[8][:2] = [""] * 4, ["", ""]
    play(wide, outputs, status=["active"] * 12)
    (warning,) = told(wide)
    assert warning.sentence.startswith("6 of 48 outputs (12.5%) are empty, all 4 of c3, 2 of 4 of c8: ")


@pytest.mark.parametrize(
    ("outputs", "more"),
    [(["", ""], ""), (["", "", "hm"], "1 more of 8 outputs (12.5%) has no answer that the judge can read")],
)
def test_empty_outputs_are_not_told_of_again_as_outputs_without_an_answer(campaign, outputs, more):
    play(campaign, [TARGETS, outputs], no_answer=True)
    found = warned(campaign.database, campaign.record)
    assert found["empty"].startswith(f"2 of {5 + len(outputs)} outputs")
    assert found.get("no-answer", "").partition(" and is ")[0] == more


LABELS = ["bug", "docs", "bug", "docs", "bug"]


@pytest.fixture
def labelled(campaign):
    """The same on examples of two labels."""
    with campaign.database.writing() as session:
        for id_, target in zip(campaign.example_ids, LABELS, strict=True):
            session.execute(update(Example).where(Example.id == id_).values(targets=[target]))
    return campaign


def test_where_targets_are_few_labels_a_choice_among_them_is_advised(labelled):
    play(labelled, [LABELS, [f"The category is: {each}." for each in LABELS]], outcome=0.0)
    (warning,) = [each for each in told(labelled) if "b" in each.about]
    assert warning.sentence.endswith(
        "set the judge's extract, or use judge: {type: choice, options: [bug, docs]}"
    )
    judged_by(labelled, type="choice")
    (warning,) = [each for each in told(labelled) if "b" in each.about]
    assert warning.sentence.endswith("; set the judge's extract")


EITHER = "It could be bug, or Docs."


@pytest.mark.parametrize(
    ("judge", "outputs", "kinds"),
    [
        ({"type": "contains"}, [EITHER] * 5, ["several-labels"]),
        (
            {"type": "any", "judges": [{"type": "contains"}, {"type": "exact"}]},
            [EITHER] * 5,
            ["several-labels"],
        ),
        ({"type": "contains"}, [EITHER, EITHER, "bug", "docs", "bug"], []),
        ({"type": "contains"}, ["It is a bug in debugging.", "docs", "bug", "docs", "bug"], []),
        ({"type": "contains", "match": "all"}, [EITHER] * 5, []),
        ({"type": "normalised"}, [EITHER] * 5, []),
    ],
)
def test_outputs_that_name_several_labels_are_told_under_judge_contains(labelled, judge, outputs, kinds):
    judged_by(labelled, **judge)
    play(labelled, [LABELS, outputs], outcome=1.0)
    found = told(labelled)
    assert [each.kind for each in found] == kinds
    for warning in found:
        assert warning.about == ("b",)
        assert warning.sentence == (
            "5 of 10 outputs (50.0%) contain several labels at once, all 5 of b (eliminated), and judge "
            "contains accepts any of them: use judge: {type: choice, options: [bug, docs]}"
        )


def test_targets_that_are_no_labels_are_not_told_apart(campaign):
    judged_by(campaign, type="contains")
    play(campaign, [TARGETS, ["bug or docs"] * 5], outcome=1.0)
    assert told(campaign) == []


@pytest.mark.parametrize(
    ("text", "targets", "several"),
    [
        ("a feature request", ["feature request"], False),
        ("a feature request, or a bug", ["feature request"], True),
        ("bug, feature", ["bug", "feature"], False),
        ("neither", ["bug"], False),
    ],
)
def test_a_label_within_another_is_not_named(text, targets, several):
    labels = ["bug", "feature", "feature request"]
    assert from_outputs._holds_several(text, targets, labels) is several


@pytest.mark.parametrize(
    ("targets", "labels", "shown"),
    [
        ([["bug"], ["docs"]] * 2, ["bug", "docs"], "[bug, docs]"),
        ([["yes"], ["No"], ["it's"], [" yes "]] * 2, ["yes", "No", "it's"], "['yes', 'No', 'it''s']"),
        ([["bug"], ["docs"], ["bug"]], [], "[]"),
        ([["bug"]] * 9, [], "[]"),
        ([[str(n)] for n in range(21)] * 9, [], "[]"),
        ([["x" * 41], ["y"]] * 9, [], "[]"),
        ([[], []], [], "[]"),
    ],
)
def test_labels_are_few_short_different_targets(targets, labels, shown):
    assert labels_of(targets) == labels
    assert as_options(labels) == shown


def test_a_suspect_is_named_while_the_campaign_runs_before_it_is_eliminated_and_once(campaign):
    early = EarlyWarnings()

    def new(status):
        found = early.new(campaign.database, campaign.record, comparisons=10, stop=False, statuses=status)
        return [each.kind for each in found]

    play(campaign, [TARGETS, [f"It is {each}" for each in TARGETS[:3]]], status=["active"] * 3)
    assert new(["active"] * 3) == []  # three zeros are few
    campaign_round = campaign.plan(1, [1], [3])
    with campaign.database.writing() as session:
        made = [generation("fourth", text=f"It is {TARGETS[3]}")]
        stored = generation_records.add_generations(session, campaign_round.id, made, NOW)
        row = NewComparison(
            position=0,
            candidate_a_id=campaign.candidate_ids[1],
            example_id=campaign.example_ids[3],
            generation_a_id=stored["fourth"].id,
            judge="exact",
            outcome=0.0,
        )
        outcome_records.add_outcomes(session, campaign_round.id, [row], campaign.decision(0), NOW)
    assert new(["active"] * 3) == ["zero-holds-target"]
    assert new(["active", "eliminated", "active"]) == []


def test_a_large_campaign_is_looked_at_in_part_and_says_so(campaign, monkeypatch):
    monkeypatch.setattr(from_outputs, "MOST_LOOKED_AT", 6)
    play(campaign, [TARGETS, [""] * 5, TARGETS])
    (warning,) = told(campaign)
    assert warning.sentence.startswith("2 of 6 inspected outputs (33.3%) are empty, all 2 of b (elim")
    with campaign.database.reading() as session:
        rows = list(ask(Look(session, campaign.record), "coverage"))
    assert rows[1]["flagged"] == "2 empty (of the first 2 inspected)"


def test_coverage_counts_the_faults_of_each_candidate(campaign):
    play(campaign, [TARGETS, ["", "", "<think>a</think>bug"]])
    with campaign.database.reading() as session:
        rows = list(ask(Look(session, campaign.record), "coverage"))
    assert [(row["candidate"], row["flagged"]) for row in rows] == [("a", None), ("b", "2 empty, 1 thoughts")]


def test_duels_are_looked_at_from_both_sides(database):
    duels = store_campaign(database, objective="best-duel")
    round_ = duels.plan(0, [[0, 1]] * 3, [0, 1, 2])
    rows = duels.duels(round_, [(1.0, [])] * 3)
    with database.writing() as session:
        ids = ", ".join(str(row.generation_b_id) for row in rows)
        session.execute(text(f"UPDATE generations SET text = '' WHERE id IN ({ids})"))
        outcome_records.add_outcomes(session, round_.id, rows, duels.decision(0), NOW)
    (warning,) = told(duels)
    assert (warning.kind, warning.about) == ("empty", ("b",))


@pytest.fixture
def serving(tmp_path, monkeypatch):
    """A folder with data, and a database in it."""
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    database = new_database(tmp_path / "results.db")
    yield database
    database.close()


STOPS = {"generate_configs": [{"name": "g", "stop_seqs": ["###"]}], "judge": {"type": "exact"}}


def letter(call):
    """The right letter, and more behind a stop sequence that was to end it."""
    number = call.prompt[0] if call.prompt[0] in "012345" else "0"
    return f"{'abcdef'[int(number)]}###a and more"


def scores(database, name):
    with database.reading() as session:
        rows = session.execute(
            text("SELECT outcome, text FROM v_comparisons WHERE campaign = :name"), {"name": name}
        )
        return {(outcome, "###" in said) for outcome, said in rows}


def warned(database, record):
    with database.reading() as session:
        record = campaign_records.get_campaign(session, record.name)
        return {each.kind: each.sentence for each in campaign_warnings(Look(session, record), has_ended=True)}


def test_a_server_that_ignores_stop_is_judged_up_to_it_and_what_is_stored_stays_whole(serving):
    with faulty_server(reply=letter) as server:
        record = run(serving, served_spec(served_model(server.url), **STOPS))
    assert scores(serving, "letters") == {(1.0, True)}
    assert "outputs are judged up to the stop sequence" in warned(serving, record)["stop-ignored"]
    with serving.reading() as session:
        assert list(findings(session)) == []


def test_a_campaign_that_began_when_outputs_were_judged_whole_goes_on_so(serving):
    with faulty_server(reply=letter) as server:
        spec = served_spec(served_model(server.url), **STOPS)
        record = run(serving, spec, rounds=0)
        assert record.spec["cut_at_stop"] is True
        with serving.writing() as session:
            row = session.get_one(Campaign, record.id)
            row.spec = {key: value for key, value in row.spec.items() if key != "cut_at_stop"}
        record = run(serving, spec)
    assert "cut_at_stop" not in record.spec
    assert scores(serving, "letters") == {(0.0, True)}
    assert "outputs are judged as a whole" in warned(serving, record)["stop-ignored"]


def test_of_several_texts_a_majority_votes_by_what_is_judged(serving):
    keys = {
        "samples": {"n": 2, "reduce": "majority"},
        "generate_configs": [{**STOPS["generate_configs"][0], "temperature": 1.0}],
    }
    with faulty_server(reply=letter) as server:
        run(serving, served_spec(served_model(server.url), **{**STOPS, **keys}))
    assert {outcome for outcome, _ in scores(serving, "letters")} == {1.0}
    with serving.reading() as session:
        assert list(findings(session)) == []


def test_a_campaign_without_stop_sequences_is_defined_as_before(serving):
    with faulty_server() as server:
        record = run(serving, served_spec(served_model(server.url)), rounds=0)
    assert "cut_at_stop" not in record.spec


def test_an_answer_that_is_all_in_reasoning_content_is_told_as_empty(serving):
    def thinking(call):
        message = {"role": "assistant", "content": None, "reasoning_content": "The answer is: a"}
        usage = {"prompt_tokens": 1, "completion_tokens": 9}
        body = {"choices": [{"finish_reason": "stop", "message": message}], "usage": usage}
        return Fault(body=json.dumps(body).encode())

    with faulty_server(thinking) as server:
        record = run(serving, served_spec(served_model(server.url, chat=True)))
    told = warned(serving, record)["empty"]
    assert told.startswith(
        "12 of 12 outputs (100.0%) are empty, all 6 of one/p0, all 6 of one/p1: their tokens may "
    )
