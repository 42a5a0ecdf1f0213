"""Campaigns that certify from end to end: labels in portions, kills, baselines, refusals, evidence."""

import io
import itertools
import json
import math
import re
import sys

import campaign_processes as processes
import certify_campaigns as certify
import pytest
import scripted_engines
import yaml
from campaign_processes import Kill, rows
from campaigns import one_message, status_json, winnow
from certify_campaigns import CANDIDATES, wanted, write_certify, write_labels
from duel_campaigns import asked_texts, stored_texts
from tiny_models import save_tiny_llama
from waiting import PATIENCE_S

from winnow.algorithms.certify.config import rule_for
from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.objectives.certify import objective

pytestmark = pytest.mark.usefixtures("plain_runs")

ENOUGH = 30
"""Processes after which a campaign that does not end is stuck."""


@pytest.fixture(scope="module")
def forks():
    return processes.fork_server()


@pytest.fixture(autouse=True)
def scripted_models(monkeypatch):
    scripted_engines.provide_all(monkeypatch)


@pytest.fixture(scope="module")
def finished(plain_runs, tmp_path_factory):
    """A campaign whose labels were all in its dataset."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        scripted_engines.provide_all(patch)
        write_certify(folder, labelled=certify.N_EXAMPLES)
        assert ran(folder) == 0
    return folder


@pytest.fixture(scope="module")
def told_at_once(plain_runs, tmp_path_factory):
    """The history of a campaign that waited for labels, and was then given all there are."""
    folder = tmp_path_factory.mktemp("told-at-once")
    with pytest.MonkeyPatch.context() as patch:
        scripted_engines.provide_all(patch)
        write_certify(folder)
        assert ran(folder) == 3
        done(folder, "label", "survivor", str(write_labels(folder, certify.all_keys())))
        assert winnow(folder, "resume", "survivor").returncode == 0
    return certify.history(folder)


def ran(folder, *arguments):
    """The exit code of a run without a traceback."""
    result = winnow(folder, "run", "campaign.yaml", *arguments)
    assert "Traceback" not in result.stderr
    return result.returncode


def done(folder, *arguments):
    """What a command that succeeds prints."""
    result = winnow(folder, *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def asked(folder, view):
    return json.loads(done(folder, "query", "survivor", view, "--json"))


def prepared(folder, **changes):
    write_certify(folder, **changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return processes.store(folder / "campaign.yaml")


def test_the_cheapest_certified_candidate_is_the_answer_with_its_labels_and_the_plain_estimate(finished):
    found = status_json(finished)
    assert (found["outcome"], found["reason"], found["best"]) == ("winner", "certified", "medium/plain")
    assert found["is_guaranteed"]
    assert found["certificate"]["labels_used"] == certify.USED < certify.BUDGET
    assert rows(finished, "SELECT status FROM v_leaderboard ORDER BY position") == [
        ("certified",),
        ("certified",),
        ("refuted",),
    ]
    assert list(found["certificate"]["costs"].items()) == [
        (name, 3.0 - n) for n, name in enumerate(CANDIDATES)
    ]
    told = done(finished, "status", "survivor")
    assert "medium/plain, the cheapest candidate that was shown to have a risk of at most 0.15" in told
    assert "higher risk is at most 0.1" in told
    assert "would choose medium/plain" in told


def test_labels_in_portions_lead_to_what_labels_at_hand_lead_to_and_the_run_waits_in_between(
    tmp_path, told_at_once
):
    portions = tmp_path
    write_certify(portions)
    assert ran(portions) == 3
    waits = 0
    while status_json(portions)["state"] == "waiting":
        waits += 1
        keys = wanted(portions)
        assert status_json(portions)["certificate"]["waits_for"] == keys
        assert (status_json(portions)["sure"] == "nothing is claimed") == (
            status_json(portions)["best"] is None
        )
        assert [row["id"] for row in asked(portions, "labels") if row["state"] == "wanted"] == sorted(
            keys, key=lambda key: int(key[1:])
        )
        again = winnow(portions, "resume", "survivor")
        assert again.returncode == 3
        assert "winnow label survivor [FILE]" in again.stdout
        assert "winnow resume survivor" in again.stdout
        done(portions, "label", "survivor", str(write_labels(portions, keys)))
        code = winnow(portions, "resume", "survivor").returncode
    assert code == 0
    assert waits == status_json(portions)["certificate"]["labels_used"] // certify.BATCH_SIZE
    assert certify.history(portions) == told_at_once


def test_a_campaign_goes_on_betting_by_the_rule_with_which_it_began(tmp_path):
    started, chosen = tmp_path / "started", tmp_path / "chosen"
    for folder in (started, chosen):
        folder.mkdir()
    write_certify(started, selector={"name": "r-autoeval-plus"})
    write_certify(chosen, selector={"name": "r-autoeval-plus", "params": {"betting": "up"}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objective, "rule_for", lambda betting, n_labels: "up")  # an earlier release's
        assert ran(started) == 3
    assert ran(chosen) == 3
    for folder in (started, chosen):
        done(folder, "label", "survivor", str(write_labels(folder, certify.all_keys())))
    done(started, "resume", "survivor")
    assert ran(chosen) == 0
    assert certify.history(started) == certify.history(chosen)
    assert asked(started, "e-values") == asked(chosen, "e-values")
    assert ran(started) == 0  # its file is still that of the stored campaign
    assert "is sound" in done(started, "db", "check")
    ((stored,),) = rows(started, "SELECT spec FROM campaigns")
    assert (json.loads(stored)["betting_rule"], rule_for("auto", certify.BUDGET)) == ("up", "star")


def test_a_spent_label_budget_is_not_raised_and_what_is_said_instead_works(tmp_path):
    write_certify(tmp_path, labelled=certify.N_EXAMPLES, stopping={"budget": 16, "delta": 0.1})
    assert ran(tmp_path) == 3
    told = status_json(tmp_path)
    assert told["outcome"] == "none"
    said = done(tmp_path, "status", "survivor")
    assert "winnow run SPEC --fork NEW_NAME --set stopping.budget=MORE" in said
    raised = winnow(tmp_path, "run", "campaign.yaml", "--set", "stopping.budget=32")
    assert raised.returncode == 2
    assert "stopping.budget: 16 -> 32" in raised.stderr
    assert ran(tmp_path, "--fork", "again", "--set", f"stopping.budget={certify.BUDGET}") == 0
    assert "after seeing" not in done(tmp_path, "status", "again")  # the same test, with more labels
    text = (tmp_path / "campaign.yaml").read_text()
    (tmp_path / "campaign.yaml").write_text(text.replace("{{ input }}=", "{{ input }} ="))
    ran(tmp_path, "--fork", "mended", "--set", f"stopping.budget={certify.BUDGET}")
    mended = done(tmp_path, "status", "mended")
    assert "nothing in this campaign was chosen after seeing an earlier campaign's results" in mended
    assert "campaign again, with other candidates or another test, has outcomes on" in mended


def write_tuned(folder, path, **changes):
    """A campaign that scores the candidates of another one on the examples that this had no labels of."""
    lines = (folder / "data.jsonl").read_text().splitlines()
    tuned = [{**json.loads(line), "target": certify.truth(n)} for n, line in enumerate(lines) if n >= 80]
    (folder / "tuned.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in tuned))
    spec = yaml.safe_load(path.read_text())
    del spec["certify"]
    spec |= {"name": "tuned", "objective": "best-mean", **changes}
    spec["dataset"]["path"] = "tuned.jsonl"
    (folder / "tuned.yaml").write_text(yaml.safe_dump(spec))


@pytest.mark.parametrize(("selector", "read"), [("r-autoeval-plus", True), ("r-eval", False)])
def test_held_out_examples_that_an_autoevaluator_answered_elsewhere_are_not_fresh(tmp_path, selector, read):
    path = write_certify(tmp_path, labelled=80, selector={"name": selector})
    assert ran(tmp_path) == 0
    stopping = {"budget": 480, "delta": 0.05}
    write_tuned(tmp_path, path, selector={"name": "champion"}, stopping=stopping, holdout=0.5)
    done(tmp_path, "run", "tuned.yaml")
    earlier = json.loads(done(tmp_path, "status", "tuned", "--json"))["earlier"]
    assert (earlier is not None) == read
    if earlier is not None:
        assert earlier["campaign"] == "survivor"
        assert 0 < earlier["examples"] <= earlier["of"]


@pytest.mark.parametrize("selector", ["r-autoeval-plus", "r-eval"])
def test_candidates_may_have_been_chosen_by_what_the_autoevaluator_alone_answers_here(tmp_path, selector):
    path = write_certify(tmp_path, labelled=80, selector={"name": selector})
    write_tuned(tmp_path, path, selector={"name": "row-mean"}, stopping={"budget": 480})
    done(tmp_path, "run", "tuned.yaml")
    assert ran(tmp_path) == 0
    found = status_json(tmp_path)
    if selector == "r-eval":  # it was told nothing of the examples without a label
        assert found["earlier"] is None
        return
    labels, said = found["certificate"]["labels_used"], done(tmp_path, "status", "survivor")
    assert found["earlier"] == {"campaign": "tuned", "examples": 2 * labels, "of": 3 * labels}
    assert f"campaign tuned, with other candidates or another test, has outcomes on {2 * labels} of" in said
    assert (
        "nothing in this campaign was chosen after seeing an earlier campaign's results on these labels"
        in said
    )


def test_validate_counts_labels_that_the_database_has(tmp_path):
    write_certify(tmp_path)
    assert "80 of 240 examples can be labelled (0 are), " in done(tmp_path, "validate", "campaign.yaml")
    ran(tmp_path)
    done(tmp_path, "label", "survivor", str(write_labels(tmp_path, wanted(tmp_path)[:7])))
    for command in ("validate", "plan"):
        told = " ".join(done(tmp_path, command, "campaign.yaml").split())
        assert "80 of 240 examples can be labelled (7 are), " in told
    done(tmp_path, "label", "survivor", str(write_labels(tmp_path, certify.all_keys())))
    assert "80 of 240 examples can be labelled (80 are), " in done(tmp_path, "validate", "campaign.yaml")


def test_half_the_labels_of_a_round_are_not_enough(tmp_path):
    write_certify(tmp_path)
    ran(tmp_path)
    keys = wanted(tmp_path)
    told = done(tmp_path, "label", "survivor", str(write_labels(tmp_path, keys[:4])))
    assert f"waits for {len(keys) - 4} more labels" in told
    assert winnow(tmp_path, "resume", "survivor").returncode == 3
    assert rows(tmp_path, "SELECT count(*) FROM generations") == [(0,)]


def test_a_campaign_killed_while_labels_arrive_is_like_an_uninterrupted_one(forks, told_at_once, tmp_path):
    storage = prepared(tmp_path)
    kills = 0
    for attempt in range(ENOUGH):
        before = stored_texts(tmp_path)
        # Of three boundaries each comes once before and once after a kill, again and again.
        kill = Kill(commit=5 + attempt % 3, after=attempt % 2 == 1)
        process = certify.begin(forks, tmp_path, storage, kill)
        process.join(PATIENCE_S)
        asked_now = asked_texts(tmp_path)
        assert len(asked_now) == len(set(asked_now))
        assert not set(asked_now) & set(before)
        if process.exitcode == 0:
            if not wanted(tmp_path):
                break
            first = not rows(tmp_path, "SELECT 1 FROM labels")
            keys = wanted(tmp_path) if first else certify.all_keys()
            done(tmp_path, "label", "survivor", str(write_labels(tmp_path, keys)))
        else:
            assert process.exitcode == -9
            kills += 1
    assert kills >= 6
    assert certify.history(tmp_path) == told_at_once


def test_labels_typed_in_are_stored_one_by_one(tmp_path, monkeypatch):
    write_certify(tmp_path)
    ran(tmp_path)
    keys = wanted(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{certify.truth(int(keys[0][1:]))}\n\nnonsense\n"))
    told = done(tmp_path, "label", "survivor")
    assert f"[1/{len(keys)}] example {keys[0]}" in told
    stored = rows(
        tmp_path, "SELECT e.key, l.targets, l.source FROM labels l JOIN examples e ON e.id = l.example_id"
    )
    assert sorted(stored) == sorted(
        [
            (keys[0], json.dumps([certify.truth(int(keys[0][1:]))]), "terminal"),
            (keys[2], json.dumps(["nonsense"]), "terminal"),
        ]
    )


def test_who_labels_is_kept_however_labels_are_given(tmp_path):
    write_certify(tmp_path)
    ran(tmp_path)
    first, second, third = wanted(tmp_path)[:3]
    done(tmp_path, "label", "survivor", str(write_labels(tmp_path, [first])), "--as", "Ann")
    done(tmp_path, "label", "survivor", "--skip", second, "--as", "Bea")
    done(tmp_path, "label", "survivor", "--skip", third)
    stored = dict(
        rows(tmp_path, "SELECT e.key, l.source FROM labels l JOIN examples e ON e.id = l.example_id")
    )
    assert stored == {first: "Ann", second: "Bea", third: "terminal"}
    for options, said in (
        (("--as", " "), "give the annotator's name, 1 to"),
        (("--correct",), "--correct needs labels to store: add FILE or --skip KEY"),
    ):
        refused = winnow(tmp_path, "label", "survivor", *options)
        assert refused.returncode in (1, 2)
        assert said in refused.stderr


def test_what_somebody_else_labelled_meanwhile_is_said_and_the_next_is_asked(tmp_path, monkeypatch):
    write_certify(tmp_path)
    ran(tmp_path)
    first, second = wanted(tmp_path)[:2]
    sheet = tmp_path / "others.csv"
    sheet.write_text(f"id,target\n{first},theirs\n")
    said = []

    def typed(shown):
        if not said:  # while this person thinks
            monkeypatch.undo()
            done(tmp_path, "label", "survivor", str(sheet))
            monkeypatch.setattr("builtins.input", typed)
        said.append(shown)
        if len(said) > 2:
            raise EOFError
        return "mine"

    monkeypatch.setattr("builtins.input", typed)
    told = done(tmp_path, "label", "survivor")
    assert f"the label of example '{first}' is already 'theirs', from others.csv" in told
    stored = rows(tmp_path, "SELECT e.key, l.targets FROM labels l JOIN examples e ON e.id = l.example_id")
    assert sorted(stored) == sorted([(first, '["theirs"]'), (second, '["mine"]')])


def test_a_label_may_be_corrected_until_it_was_used(tmp_path):
    write_certify(tmp_path)
    ran(tmp_path)
    keys = wanted(tmp_path)
    wrong = tmp_path / "wrong.csv"
    wrong.write_text(f"id,target\n{keys[0]},zzz\n{keys[1]},\n")
    assert "1 new label, 1 row has no target yet" in done(tmp_path, "label", "survivor", str(wrong))
    right = write_labels(tmp_path, keys)
    before = rows(tmp_path, "SELECT * FROM labels")
    refused = winnow(tmp_path, "label", "survivor", str(right))
    assert refused.returncode == 1
    assert f"the label of example '{keys[0]}' is already 'zzz', from wrong.csv" in refused.stderr
    assert rows(tmp_path, "SELECT * FROM labels") == before
    told = done(tmp_path, "label", "survivor", str(right), "--correct")
    assert f"{len(keys) - 1} new labels, 1 changed" in told
    assert winnow(tmp_path, "resume", "survivor").returncode == 3
    refused = winnow(tmp_path, "label", "survivor", str(wrong), "--correct")
    assert refused.returncode == 1
    assert f"line 2: the label of example '{keys[0]}' was used in a stored comparison" in refused.stderr
    assert f"{len(keys)} were there already" in done(tmp_path, "label", "survivor", str(right))


def test_an_example_that_no_human_can_answer_holds_nothing_up_and_counts_as_a_loss(tmp_path):
    write_certify(tmp_path)
    ran(tmp_path)
    first, second, *others = wanted(tmp_path)
    assert "1 new label, 1 of them for examples that no human can answer" in done(
        tmp_path, "label", "survivor", "--skip", first
    )
    file = tmp_path / "labels.csv"
    truths = "".join(f"{key},{certify.truth(int(key[1:]))},\n" for key in others)
    file.write_text(f"id,target,skip\n{second},,yes\n{truths},,\n,,\n")  # as spreadsheets leave it
    told = done(tmp_path, "label", "survivor", str(file))
    assert "9 new labels, 1 of them for examples that no human can answer" in told
    assert winnow(tmp_path, "resume", "survivor").returncode == 3
    found = {row["example"]: row for row in asked(tmp_path, "comparisons")}
    for key in (first, second):
        assert (found[key]["human_loss"], found[key]["reason"]) == (1.0, "no_target")
        assert found[key]["detail"] == "no human can answer the example, which counts as a loss of 1"
        assert found[key]["auto_loss"] is not None
    states = {row["id"]: row["state"] for row in asked(tmp_path, "labels")}
    assert {states[first], states[second]} == {"skipped"}
    assert {states[key] for key in others} == {"used"}
    assert "skipped      2 labels of the 10 used mark their examples as unanswerable" in done(
        tmp_path, "status", "survivor"
    )
    assert status_json(tmp_path)["certificate"]["incomplete"] == 0


def test_a_file_and_what_nobody_can_answer_are_stored_together_or_not_at_all(tmp_path):
    write_certify(tmp_path)
    ran(tmp_path)
    first, second = wanted(tmp_path)[:2]
    file = write_labels(tmp_path, [first])
    refused = winnow(tmp_path, "label", "survivor", str(file), "--skip", first)
    assert refused.returncode == 1
    assert f"--skip: the label of example '{first}' is " in refused.stderr
    assert first in wanted(tmp_path)
    told = done(tmp_path, "label", "survivor", str(file), "--skip", second)
    assert f"{file} and --skip: 2 new labels, 1 of them for examples that no human can answer" in told


def test_rows_of_labels_that_were_exported_are_taken_for_what_they_are(tmp_path):
    write_certify(tmp_path)
    ran(tmp_path)
    several, one = wanted(tmp_path)[:2]
    listed = tmp_path / "several.jsonl"
    told = [{"id": several, "target": ["a", "zz"]}, {"id": one, "target": '["a", "b"]'}]
    listed.write_text("".join(json.dumps(each) + "\n" for each in told))
    done(tmp_path, "label", "survivor", str(listed))
    found = {row["id"]: row["target"] for row in asked(tmp_path, "labels")}
    assert (found[several], found[one]) == ('["a", "zz"]', '["a", "b"]')
    table = tmp_path / "labels.csv"
    table.write_text(winnow(tmp_path, "query", "survivor", "labels", "--format", "csv").stdout)
    assert "0 new labels, 2 were there already" in done(tmp_path, "label", "survivor", str(table))


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_what_nobody_can_answer_is_exported_as_such(tmp_path, form):
    write_certify(tmp_path)
    ran(tmp_path)
    key = wanted(tmp_path)[0]
    done(tmp_path, "label", "survivor", "--skip", key)
    sheet = tmp_path / f"labels.{form}"
    sheet.write_text(winnow(tmp_path, "query", "survivor", "labels", "--format", form).stdout)
    assert "0 new labels, 1 was there already" in done(tmp_path, "label", "survivor", str(sheet))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_certify(elsewhere)
    ran(elsewhere)
    assert "1 new label, 1 of them for examples that no human can answer" in done(
        elsewhere, "label", "survivor", str(sheet)
    )


def test_a_campaign_that_has_ended_is_not_to_be_resumed_for_labels(tmp_path):
    write_certify(tmp_path, labelled=certify.N_EXAMPLES)
    assert winnow(tmp_path, "run", "campaign.yaml").returncode == 0
    told = done(tmp_path, "label", "survivor", str(write_labels(tmp_path, ["e0"])))
    assert (
        "survivor has ended and waits for no labels; its labels remain available to other campaigns" in told
    )
    assert "resume" not in told


def test_a_skipped_example_may_be_answered_until_it_was_used(tmp_path):
    write_certify(tmp_path)
    ran(tmp_path)
    key, other = wanted(tmp_path)[:2]
    done(tmp_path, "label", "survivor", "--skip", key, "--skip", other)
    file = write_labels(tmp_path, [key])
    refused = winnow(tmp_path, "label", "survivor", str(file))
    assert f"the label of example '{key}' is already marked as unanswerable" in refused.stderr
    assert "0 new labels, 1 changed" in done(tmp_path, "label", "survivor", str(file), "--correct")
    assert "1 was there already" in done(tmp_path, "label", "survivor", "--skip", other)


def test_what_cannot_be_read_is_a_loss_of_1_and_nothing_is_missing(tmp_path):
    grader = {"model": certify.model("grader", "grader"), "prompt": "What is {{ input }}?"}
    write_certify(
        tmp_path,
        labelled=certify.N_EXAMPLES,
        certify={
            "autoevaluator": {**grader, "extract": "[a-f]"},
            "costs": {"large/plain": 3, "medium/plain": 2},
        },
        judge={"type": "exact", "extract": "[a-gx]"},
        models=[certify.model("medium", "slips"), certify.model("large", "mumbles")],
    )
    ran(tmp_path)
    found = asked(tmp_path, "comparisons")
    unread = [row for row in found if row["text"] == "?"]
    assert unread
    for row in unread:
        assert (row["human_loss"], row["auto_loss"]) == (1.0, 1.0)
    for row in found:
        if scripted_engines.letter(row["example"], wrong_in=10) in ("g", "x"):
            assert row["auto_loss"] == 1.0
        assert row["unlabelled_missing"] == 0.0
    assert status_json(tmp_path)["certificate"]["incomplete"] == 0
    assert "every loss is known\n" in done(tmp_path, "status", "survivor")


def test_comparisons_without_an_outcome_are_counted_where_every_loss_is_known(tmp_path):
    write_certify(tmp_path, labelled=certify.N_EXAMPLES, judge={"type": "python", "path": "mine.py:score"})
    fails = "    if sample.output == 'a':\n        raise ValueError('no')\n"
    (tmp_path / "mine.py").write_text(
        f"def score(sample):\n{fails}    return sample.output in sample.targets\n"
    )
    result = winnow(tmp_path, "run", "campaign.yaml", "--trust")
    assert result.returncode in (0, 3), result.stderr
    found = asked(tmp_path, "comparisons")
    without = [row for row in found if row["outcome"] is None]
    assert 0 < len(without) < len(found)
    assert {row["human_loss"] for row in without} == {1.0}
    told = (
        f"every loss is known, also of the {len(without)} of {len(found)} comparisons that have no outcome; "
    )
    assert told in result.stdout


LABELS_REFUSED = {
    "skip that says neither": ('{"id": "e1", "target": null, "skip": "maybe"}', "write true or false"),
    "both a target and skip": ('{"id": "e1", "target": "a", "skip": true}', "has both a target and skip"),
    "an unknown example": ('{"id": "e9999", "target": "a"}', "line 1: the dataset has no example 'e9999'"),
    "no id": ('{"target": "a"}', "line 1: there is no column 'id'"),
    "no target": ('{"id": "e1"}', "line 1: there is no column 'target'"),
    "a target that is none": ('{"id": "e1", "target": true}', "is not a label"),
    "a label twice": ('{"id": "e1", "target": "a"}\n{"id": "e1", "target": "b"}', "line 1 and line 2"),
    "a target of the dataset": ('{"id": "e0", "target": "b"}', "is 'a' in the dataset; remove"),
}


@pytest.mark.parametrize("case", LABELS_REFUSED)
def test_labels_that_make_no_sense_are_refused_in_one_sentence_and_none_is_stored(tmp_path, case):
    text, message = LABELS_REFUSED[case]
    prepared(tmp_path, labelled=1)
    (tmp_path / "labels.jsonl").write_text(text + '\n{"id": "e7", "target": "a"}\n')
    result = winnow(tmp_path, "label", "survivor", "labels.jsonl")
    assert result.returncode in (1, 2)
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("winnow: labels.jsonl, line 1")
    assert message in line
    assert rows(tmp_path, "SELECT 1 FROM labels") == []


def test_labels_of_a_spreadsheet_that_puts_semicolons_between_columns_are_told_what_to_do(tmp_path):
    prepared(tmp_path, labelled=1)
    (tmp_path / "labels.csv").write_text("id;target\ne7;a\n")
    said = one_message(winnow(tmp_path, "label", "survivor", "labels.csv"))
    assert said == (
        "labels.csv, line 2: there is no column 'id'; its columns are separated by semicolons: save it with "
        "commas between them"
    )


def test_losses_are_a_drop_against_the_baseline_where_one_is_named(tmp_path):
    write_certify(
        tmp_path,
        labelled=certify.N_EXAMPLES,
        certify={"alpha": None, "drop": 0.2, "baseline": "medium/plain"},
        stopping={"budget": 40, "delta": 0.1},
    )
    told = winnow(tmp_path, "run", "campaign.yaml")
    assert "labels, certified medium/plain, the baseline itself, " in told.stderr
    assert "survivor: the baseline itself\n" in told.stdout
    found = asked(tmp_path, "comparisons")
    right = {(row["candidate"], row["example"]): row["outcome"] for row in found}
    for row in found:
        slips = 0.0 if int(row["example"][1:]) % 40 == 0 else 1.0
        assert row["human_loss"] == max(0.0, slips - right[row["candidate"], row["example"]])
    assert {row["human_loss"] for row in found if row["candidate"] == "large/plain"} == {0.0}
    assert {row["human_loss"] for row in found if row["candidate"] == "small/plain"} == {0.0, 1.0}
    assert "a mean drop of at most 0.2 below medium/plain" in done(tmp_path, "status", "survivor")


def test_the_three_losses_are_those_of_the_answers(finished):
    blocks = rows(finished, "SELECT count(*) FROM generations WHERE model = 'grader'")
    assert blocks == [(3 * certify.USED,)]
    for row in asked(finished, "comparisons"):
        number = int(row["example"][1:])
        wrong_in = {"large/plain": 0, "medium/plain": 40, "small/plain": 2}[row["candidate"]]
        said = scripted_engines.letter(str(number), wrong_in=wrong_in)
        graded = scripted_engines.letter(str(number), wrong_in=10)
        assert row["human_loss"] == float(said != certify.truth(number)) == 1.0 - row["outcome"]
        assert row["auto_loss"] == float(said != graded)
        assert row["unlabelled_loss"] in (0.0, 0.5, 1.0)


class Refuses(scripted_engines.ScriptedEngine):
    """Gives a text on one example in five alone."""

    def generate(self, requests):
        answers = super().generate(requests)
        asked = [int(re.search(r"\d+", each.prompt)[0]) for each in requests]
        refused = GenerationFailure(reason="refused", detail="not this: one")
        return [given if n % 5 == 0 else refused for n, given in zip(asked, answers, strict=True)]


@pytest.mark.parametrize(
    ("who", "told"),
    [("slips", "baseline: refused"), ("grader", "autoevaluator: refused"), ("knows", "refused")],
)
def test_whose_missing_texts_had_a_candidate_dropped_is_said(tmp_path, monkeypatch, who, told):
    monkeypatch.setattr(scripted_engines, f"start_{who}", lambda *_: Refuses(lambda prompt: "a"))
    certify = {"alpha": None, "drop": 0.2, "baseline": "medium/plain"}
    write_certify(tmp_path, labelled=240, certify=certify)
    assert ran(tmp_path) == 3
    said = done(tmp_path, "status", "survivor")
    assert re.search(rf"dropped      large/plain: \d+ of its 10 comparisons lack a loss \({told}\); ", said)


def test_none_certified_is_said_plainly_and_is_no_answer(tmp_path):
    write_certify(
        tmp_path,
        labelled=certify.N_EXAMPLES,
        models=[certify.model("small", "guesses"), certify.model("medium", "guesses")],
        certify={"costs": {"small/plain": 1, "medium/plain": 2}},
    )
    assert ran(tmp_path) == 3
    found = status_json(tmp_path)
    assert (found["outcome"], found["reason"], found["best"]) == ("none", "none-certified", None)
    told = done(tmp_path, "status", "survivor")
    assert "certified    none: a risk of at most 0.15 was not shown for any candidate" in told
    assert "the plain mean of human losses would certify no candidate" in told


def test_the_replayed_evidence_agrees_with_what_was_decided(finished):
    path = asked(finished, "e-values")
    peaks = {name: max(row["e_value"] for row in path if row["candidate"] == name) for name in CANDIDATES}
    assert [peaks[name] >= 10.0 for name in CANDIDATES] == [True, True, False]
    assert {row["needed"] for row in path} == {10.0}
    assert all(math.isclose(row["e_value"], math.exp(row["log_e_value"])) for row in path)
    counts = {row["candidate"]: row["scored"] for row in asked(finished, "leaderboard")}
    assert counts == {name: max(r["labels"] for r in path if r["candidate"] == name) for name in CANDIDATES}
    shares = asked(finished, "weights")
    for name in CANDIDATES:
        own = [row for row in shares if row["candidate"] == name]
        assert [row["rho"] for row in own] == [pytest.approx(n / 9) for n in range(10)]
        assert sum(row["weight"] for row in own) == pytest.approx(1.0)
    best = [row["candidate"] for row in asked(finished, "leaderboard") if row["best"]]
    assert best == ["medium/plain"]
    told = done(finished, "report", "survivor")
    for heading in (
        "Certificates",
        "Risks",
        "E-values against labels; a candidate must reach 1/delta = 10 once",
    ):
        assert heading in told
    table = told.partition(heading)[2].partition("Weights")[0]
    for name, own in itertools.groupby(path, key=lambda row: row["candidate"]):
        *_, end = own
        [line] = [each for each in table.splitlines() if name in each]
        assert line.rstrip(" |").endswith(f"{end['e_value']:.3g} at {end['labels']}")


@pytest.mark.parametrize(("selector", "labels"), [("r-eval", 60), ("eval", 60)])
def test_without_an_autoevaluator_human_labels_alone_decide(tmp_path, selector, labels):
    write_certify(
        tmp_path,
        labelled=certify.N_EXAMPLES,
        certify={"autoevaluator": None},
        selector={"name": selector},
    )
    assert ran(tmp_path) == 0
    assert rows(tmp_path, "SELECT 1 FROM comparisons WHERE auto_loss IS NOT NULL") == []
    assert status_json(tmp_path)["is_guaranteed"] == (selector == "r-eval")
    assert ("heuristic" in done(tmp_path, "status", "survivor")) == (selector == "eval")
    done(tmp_path, "report", "survivor")


REFUSED = {
    "no section": ({"certify_": None}, "objective: certify needs a section certify"),
    "no risk": ({"certify": {"alpha": None}}, "certify: give exactly one of alpha"),
    "two risks": (
        {"certify": {"drop": 0.1, "baseline": "small/plain"}},
        "certify: give exactly one of alpha",
    ),
    "a drop from nobody": ({"certify": {"alpha": None, "drop": 0.1}}, "certify: drop and baseline"),
    "an unknown baseline": (
        {"certify": {"alpha": None, "drop": 0.1, "baseline": "smal/plain"}},
        "certify.baseline: unknown candidate 'smal/plain'",
    ),
    "a risk of one": ({"certify": {"alpha": 1.0}}, "certify.alpha: "),
    "no cost": ({"certify": {"cost": None}}, "certify.cost: is missing"),
    "costs of nothing": ({"certify": {"cost": "size"}}, "certify: costs is only for"),
    "a candidate without a cost": (
        {"certify": {"costs": {"small/plain": 1, "large/plain": 2}}},
        "certify.costs: no cost for medium/plain",
    ),
    "too many labels": ({"certify": {"labellable": 81}}, "certify.labellable: the dataset has 240 examples"),
    "too few examples": (
        {"certify": {"unlabelled_per_label": 240}},
        "certify.unlabelled_per_label: the dataset has 240 examples",
    ),
    "no autoevaluator": ({"certify": {"autoevaluator": None}}, "selector.name: r-autoeval-plus uses"),
    "an autoevaluator of another model's name": (
        {"certify": {"autoevaluator": {"model": certify.model("small", "grader"), "prompt": "?"}}},
        "certify.autoevaluator.model.name: the name 'small' is another model's",
    ),
    "a prompt of no field": (
        {"certify": {"autoevaluator": {"model": certify.model("grader", "grader"), "prompt": "{{ x }}"}}},
        "certify.autoevaluator.prompt: ",
    ),
    "no delta": ({"stopping": {"budget": 10}}, "stopping: certify needs delta"),
    "an epsilon": (
        {"stopping": {"budget": 10, "delta": 0.1, "epsilon": 0.1}},
        "stopping: epsilon does not apply",
    ),
    "a selector of benchmarks": (
        {"selector": {"name": "ucb-e"}, "certify": {"autoevaluator": None}},
        "selector.name: ucb-e is a selector for best-mean, not for certify",
    ),
    "alpha in the wrong place": (
        {"selector": {"name": "r-eval", "params": {"alpha": 0.1}}},
        "selector.params.alpha: ",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_campaign_that_makes_no_sense_is_refused_in_one_sentence(tmp_path, case):
    changes, message = REFUSED[case]
    path = write_certify(tmp_path, **{key: value for key, value in changes.items() if key != "certify_"})
    if "certify_" in changes:
        text = path.read_text()
        start, end = text.index("\ncertify:"), text.index("\nselector:")
        path.write_text(text[:start] + text[end:])
    result = winnow(tmp_path, "run", "campaign.yaml")
    assert result.returncode == 2
    (line,) = result.stderr.strip().splitlines()
    assert message in line
    assert line.partition("campaign.yaml:")[2].partition(":")[0].isdigit()
    assert not (tmp_path / "winnow.db").exists()


def test_a_budget_cannot_be_raised_in_sight_of_the_losses(tmp_path, finished):
    prepared(tmp_path, labelled=certify.N_EXAMPLES)
    result = winnow(tmp_path, "run", "campaign.yaml", "--set", "stopping.budget=61")
    assert result.returncode == 2
    assert "stopping.budget: 60 -> 61" in result.stderr


def test_other_campaigns_take_no_labels(tmp_path):
    processes.store(processes.write_campaign(tmp_path))
    result = winnow(tmp_path, "label", "survivor")
    assert result.returncode == 1
    assert (
        "'survivor' is a best-mean campaign without a human judge, and uses no labels; name "
        "a certify campaign, or one with judge: {type: human}"
    ) in result.stderr
    assert winnow(tmp_path, "query", "survivor", "e-values").returncode == 2


def test_an_autoevaluator_that_cannot_be_loaded_leaves_its_losses_unknown_and_says_why(tmp_path):
    write_certify(
        tmp_path,
        labelled=certify.N_EXAMPLES,
        certify={"autoevaluator": {"model": certify.model("broken", "transformers"), "prompt": "?"}},
    )
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    result = winnow(tmp_path, "run", "campaign.yaml", "--set", "certify.autoevaluator.model.model=broken")
    assert result.returncode == 3, result.stderr
    assert "comparisons lack a loss, which counts at its worst" in result.stdout
    why = "lack a loss (autoevaluator: load_failed); the interval of its risk is"
    assert f"large/plain: 10 of its 10 comparisons {why}" in result.stdout
    for row in asked(tmp_path, "comparisons"):
        assert (row["outcome"], row["auto_loss"], row["unlabelled_loss"]) == (1.0, None, None)
        assert row["unlabelled_missing"] == 1.0
        assert row["detail"].startswith("autoevaluator: load_failed: ")


@pytest.mark.parametrize("selector", ["eval", "autoeval"])
def test_losses_that_a_plain_mean_lacks_are_said_to_be_left_out_of_it(tmp_path, selector):
    write_certify(tmp_path, labelled=certify.N_EXAMPLES, selector={"name": selector})
    (tmp_path / "small" / "config.json").write_text("{}")
    text = (tmp_path / "campaign.yaml").read_text().replace("provider: guesses", "provider: transformers")
    (tmp_path / "campaign.yaml").write_text(text)
    result = winnow(tmp_path, "run", "campaign.yaml")
    assert result.returncode == 0, result.stderr
    lacking = [row for row in asked(tmp_path, "comparisons") if row["human_loss"] is None]
    assert {row["candidate"] for row in lacking} == {"small/plain"}
    assert f"{len(lacking)} of " in result.stdout
    assert "comparisons lack a loss, which is left out of every mean; " in result.stdout
    assert "counts at its worst" not in result.stdout


def test_what_no_human_can_answer_is_no_loss_of_the_baseline_itself(tmp_path):
    write_certify(tmp_path, certify={"alpha": None, "drop": 0.2, "baseline": "large/plain"})
    ran(tmp_path)
    skipped = wanted(tmp_path)[0]
    done(tmp_path, "label", "survivor", str(write_labels(tmp_path, wanted(tmp_path)[1:])), "--skip", skipped)
    ran(tmp_path)
    found = {row["candidate"]: row for row in asked(tmp_path, "comparisons") if row["example"] == skipped}
    own = found["large/plain"]
    assert (own["human_loss"], own["reason"], own["detail"]) == (0.0, "no_target", None)
    said = "whatever a candidate answers, except for large/plain, whose drop below itself is 0"
    assert said in done(tmp_path, "status", "survivor")


def test_labels_and_inputs_of_any_kind_are_shown_without_moving_the_cursor(tmp_path, monkeypatch):
    write_certify(tmp_path)
    data = [json.dumps({"id": f"e{n}", "input": f"\x1b[31m{n}", "target": None}) for n in range(30)]
    (tmp_path / "data.jsonl").write_text("\n".join(data) + "\n")
    ran(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("\x1b[2Ja\n"))
    assert "\x1b" not in done(tmp_path, "label", "survivor")
    assert "\x1b" not in done(tmp_path, "query", "survivor", "labels")


def test_init_writes_a_certificate_that_lacks_only_models_and_data(tmp_path):
    done(tmp_path, "init", "--objective", "certify")
    for seed, name in enumerate(("small", "large", "grader")):
        save_tiny_llama(tmp_path / "path" / "to" / name, seed=seed, hidden=64 if name == "large" else 32)
    lines = [json.dumps({"id": n, "input": f"{n}+1", "target": None if n else "1"}) for n in range(10)]
    (tmp_path / "data.jsonl").write_text("\n".join(lines) + "\n")
    told = done(tmp_path, "validate", "campaign.yaml")
    assert "tested from the most expensive on: large/direct" in told
    assert "1 of 10 examples can be labelled (1 are)" in told


def test_prompts_make_the_cost_where_they_are_what_costs(tmp_path):
    write_certify(
        tmp_path,
        certify={"cost": "prompt-length", "costs": None},
        models=[certify.model("large", "knows")],
        prompts=[
            {"name": "short", "template": "{{ input }}"},
            {"name": "long", "template": "Say {{ input }}"},
        ],
    )
    assert "large/long (6.54167), large/short (2.54167)" in done(tmp_path, "validate", "campaign.yaml")


def test_certifying_selectors_are_not_simulated_on_tables_of_scores(tmp_path):
    (tmp_path / "scores.csv").write_text("candidate,e0,e1\na,1,0\nb,0,1\n")
    result = winnow(tmp_path, "simulate", "scores.csv", "--selector", "r-eval", "--out", "simulated")
    assert result.returncode == 2
    assert "r-eval is for certify campaigns" in result.stderr


def test_one_candidate_alone_is_certified(tmp_path):
    models = [certify.model("large", "knows")]
    section = {"costs": {"large/plain": 3}}
    write_certify(tmp_path, labelled=certify.N_EXAMPLES, models=models, certify=section)
    assert ran(tmp_path) == 0
    found = status_json(tmp_path)
    assert (found["outcome"], found["best"]) == ("winner", "large/plain")
    assert "certified    large/plain" in done(tmp_path, "report", "survivor")


def test_a_campaign_that_certifies_none_is_refused(tmp_path):
    write_certify(tmp_path, labelled=certify.N_EXAMPLES, exclude=[{"prompt": "plain"}])
    result = winnow(tmp_path, "validate", "campaign.yaml")
    assert result.returncode == 2
    assert "at least one candidate to certify is needed, but the campaign has 0" in result.stderr
