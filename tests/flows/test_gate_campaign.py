"""Candidates against a baseline, the whole way from a file to an exit code, on scripted models."""

import json
import os
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import scripted_engines
from campaign_processes import rows, store
from campaigns import one_message, status_json, winnow
from lxml import etree
from scored_campaigns import KILLS, decisions_with_kills, line_of, write_scored

import winnow as winnow_package
from winnow.algorithms.claims import NOTHING_CLAIMED, Claim
from winnow.flows.exit_codes import gate_code
from winnow.flows.reports.default_database import reading
from winnow.flows.reports.export.gate_files import begin_gate_files, gate_markdown, junit_xml
from winnow.flows.run.artifacts import progress
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.answer.model import Answer, CandidateStanding, Unscored
from winnow.tasks.queries.status import CampaignStatus

pytestmark = pytest.mark.usefixtures("plain_runs")


def write_gate(folder, names, *, baseline="knows/plain", **changes):
    """A campaign that holds the other models against one of them."""
    return write_scored(folder, names, {"name": "gate", "params": {"baseline": baseline}}, **changes)


@pytest.fixture(autouse=True)
def engines(monkeypatch):
    for name in ("knows", "slips", "guesses"):
        scripted_engines.provide(monkeypatch, name)


def test_a_candidate_that_is_no_worse_passes(tmp_path):
    write_gate(tmp_path, ["knows", "slips"])
    result = winnow(tmp_path, "gate", "campaign.yaml")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("survivor: no worse, proven\n")
    assert "baseline     knows/plain: mean " in result.stdout
    assert "no worse     slips/plain: " in result.stdout
    assert (
        "on these 120 examples the mean of slips/plain is at most 0.1 below that of knows/plain (at "
        "most 5% risk of error in any of this)"
    ) in result.stdout
    assert "winner" not in result.stdout
    assert winnow(tmp_path, "run", "campaign.yaml").returncode == 0


def test_one_that_is_worse_fails_the_gate_and_the_numbers_are_kept(tmp_path):
    write_gate(tmp_path, ["slips", "knows", "guesses"], baseline="slips/plain")
    result = winnow(tmp_path, "gate", "campaign.yaml", "--log-format", "json")
    assert result.returncode == 4, result.stderr
    for again in (("run", "campaign.yaml"), ("resume", "survivor")):
        assert winnow(tmp_path, *again).returncode == 4
    assert "survivor: decided, proven" in result.stdout
    assert "the mean of guesses/plain is more than 0.1 below that of slips/plain" in result.stdout
    statuses = rows(tmp_path, "SELECT status FROM v_leaderboard ORDER BY position")
    assert statuses[0::2] == [("baseline",), ("worse",)]
    (against,) = rows(tmp_path, "SELECT against_candidate_id, differences_delta FROM decisions LIMIT 1")
    assert against == (1, 0.05)
    last = "SELECT lower, upper FROM differences WHERE candidate_id = {} ORDER BY round_id DESC LIMIT 1"
    assert rows(tmp_path, last.format(1)) == []
    ((lower, upper),) = rows(tmp_path, last.format(3))
    assert lower <= -0.475 <= upper < 0.0
    shown = status_json(tmp_path)
    assert (shown["outcome"], shown["baseline"]) == ("decided", "slips/plain")
    assert shown["candidates"][2]["difference"]["upper"] == upper
    ended = next(line for line in result.stderr.splitlines() if '"campaign_ended"' in line)
    assert "decided, proven, against slips/plain" in ended
    storage = f"sqlite:///{tmp_path}/winnow.db"
    assert line_of(storage, "survivor").startswith("survivor: decided, proven, against slips/plain; ")
    with reading(storage) as session:
        _, page = progress(session, campaign_records.get_campaign(session, "survivor"))
    assert "decided, proven, against slips/plain" in page


def test_nobody_is_called_the_best_wherever_a_gate_is_looked_at(tmp_path):
    """Who leads is what its selector ranks by: nothing is claimed of it."""
    write_gate(tmp_path, ["slips", "knows", "guesses"], baseline="slips/plain")
    result = winnow(tmp_path, "gate", "campaign.yaml")
    assert result.returncode == 4
    lines = [line for line in result.stderr.splitlines() if line.startswith("round ")]
    assert ", 2 open against slips/plain, " in lines[0]
    assert ", 0 open against slips/plain, " in lines[-1]
    assert "best" not in result.stderr
    shown = status_json(tmp_path)
    assert [shown[name] for name in ("best", "estimate", "lower", "upper")] == [None] * 4
    assert "knows/plain scores " in dict(shown["lines"])["new examples"]
    assert rows(tmp_path, "SELECT DISTINCT best FROM v_leaderboard") == [(0,)]
    for view in ("v_campaigns", "v_rounds", "v_curve"):
        assert rows(tmp_path, f"SELECT DISTINCT best FROM {view}") == [(None,)], view
    results = winnow_package.open(f"sqlite:///{tmp_path}/winnow.db")
    campaign = results["survivor"]
    assert not campaign.leaderboard()["best"].any()
    views = [campaign.view(view) for view in ("history", "rounds", "curve")]
    for frame in (results.campaigns(), *views):
        assert len(frame) > 0
        assert frame["best"].isna().all()
    assert (campaign.answer.best, campaign.answer.listed) == (None, ())


def test_a_budget_that_is_too_small_proves_neither_and_more_of_it_goes_on(tmp_path):
    write_gate(tmp_path, ["knows", "slips"], budget=24)
    result = winnow(tmp_path, "gate", "campaign.yaml")
    assert result.returncode == 3, result.stderr
    assert "undecided at error probability 0.05 for slips/plain: the comparison budget" in result.stdout
    (listed,) = json.loads(winnow(tmp_path, "list", "--json").stdout)
    assert [listed[key] for key in ("baseline", "best", "estimate")] == ["knows/plain", None, None]
    assert winnow(tmp_path, "gate", "campaign.yaml", "--set", "stopping.budget=1000").returncode == 0


def test_any_campaign_s_file_can_be_held_against_a_candidate(tmp_path):
    path = write_gate(tmp_path, ["knows", "guesses"])
    path.write_text(
        path.read_text().replace("name: gate", "name: champion").replace("baseline:", "additions: stated #")
    )
    refused = winnow(tmp_path, "gate", "campaign.yaml")
    assert refused.returncode == 2
    assert "the file's selector is champion; name a candidate by --baseline" in one_message(refused)
    assert winnow(tmp_path, "gate", "campaign.yaml", "--baseline", "guesses/plain").returncode == 0
    statuses = rows(tmp_path, "SELECT status FROM v_leaderboard ORDER BY position")
    assert statuses in ([("no-worse",), ("baseline",)], [("better",), ("baseline",)])  # as the draws fall


def test_another_baseline_is_another_campaign_that_gate_begins(tmp_path):
    write_gate(tmp_path, ["knows", "slips"])
    assert winnow(tmp_path, "gate", "campaign.yaml").returncode == 0
    other = ("gate", "campaign.yaml", "--baseline", "slips/plain")
    refused = winnow(tmp_path, *other)
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1] == (
        "undo the change, or start a new campaign that reuses the outputs of this one: "
        "winnow gate SPEC --baseline slips/plain --fork NEW_NAME"
    )
    assert winnow(tmp_path, *other, "--fork", "other").returncode == 0


def test_a_file_without_a_sound_baseline_is_refused_in_a_sentence(tmp_path):
    write_gate(tmp_path, ["knows", "slips"], baseline="slip/plain")
    refused = winnow(tmp_path, "validate", "campaign.yaml")
    assert refused.returncode == 2
    assert "selector.params.baseline: unknown candidate 'slip/plain'; did you mean" in one_message(refused)


def test_a_gate_among_all_that_are_left_says_what_it_found(tmp_path, monkeypatch):
    spec = write_gate(tmp_path, ["slips", "guesses"], baseline="slips/plain")
    monkeypatch.chdir(tmp_path)
    store(spec)
    result = winnow(tmp_path, "resume", "--all")
    assert (result.returncode, result.stdout.count("\n")) == (4, 1), result.stderr


def test_a_campaign_killed_and_resumed_is_like_an_uninterrupted_one(tmp_path):
    stored = []
    for name, kills in (("whole", ()), ("killed", KILLS)):
        spec = write_gate(tmp_path / name, ["slips", "knows", "guesses"], baseline="slips/plain")
        stored.append(decisions_with_kills(tmp_path / name, spec, kills))
    assert stored[0] == stored[1]
    assert len(stored[0][1]) > 3


def test_a_pipeline_is_given_a_test_report_and_a_pull_request_a_summary(tmp_path):
    write_gate(tmp_path, ["slips", "knows", "guesses"], baseline="slips/plain")
    files = ("--junit", "gate.xml", "--markdown", "gate.md")
    assert winnow(tmp_path, "gate", "campaign.yaml", *files).returncode == 4
    assert broken_rules((tmp_path / "gate.xml").read_text()) == []
    suites = ElementTree.parse(tmp_path / "gate.xml").getroot()
    (suite,) = suites
    assert {name: suite.get(name) for name in ("name", "tests", "failures", "errors", "skipped")} == {
        "name": "survivor",
        "tests": "2",
        "failures": "1",
        "errors": "0",
        "skipped": "0",
    }
    found = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert found == {"knows/plain": [], "guesses/plain": ["failure"]}
    (failure,) = suite.iter("failure")
    assert failure.get("message").startswith("worse: -0.")
    assert "confidence: on these 120 examples" in suite.findtext("system-out")
    summary = (tmp_path / "gate.md").read_text()
    assert summary.startswith("### survivor: decided, proven\n")
    assert [line.split(" | ")[1] for line in summary.splitlines() if line.startswith("| ")] == [
        "verdict",
        "no worse",
        "worse",
    ]


@pytest.mark.parametrize("setting", ["stopping.budget=none at all", "models={broken"])
def test_no_file_of_an_earlier_run_passes_where_this_one_ends_in_an_error(tmp_path, setting):
    write_gate(tmp_path, ["knows", "slips"])
    files = ("--junit", "gate.xml", "--markdown", "gate.md")
    assert winnow(tmp_path, "gate", "campaign.yaml", *files).returncode == 0
    assert winnow(tmp_path, "gate", "campaign.yaml", *files, "--set", setting).returncode == 2
    report, summary = (tmp_path / "gate.xml").read_text(), (tmp_path / "gate.md").read_text()
    assert broken_rules(report) == []
    (case,) = ElementTree.fromstring(report).iter("testcase")
    assert [child.tag for child in case] == ["error"]
    assert "not finished" in case[0].get("message")
    assert "campaign.yaml: not finished" in summary.replace("\\", "")
    assert "no worse" not in report + summary


def test_while_a_gate_runs_its_files_say_that_it_is_not_finished(tmp_path, monkeypatch):
    """So they do where it is killed."""
    write_gate(tmp_path, ["knows", "slips"])
    (tmp_path / "gate.xml").write_text("<?xml passed")
    seen = []

    def killed(*_, **__):
        seen.append((tmp_path / "gate.xml").read_text())
        raise MemoryError

    monkeypatch.setattr("winnow.flows.run.launch.run_stored_campaign", killed)
    assert winnow(tmp_path, "gate", "campaign.yaml", "--junit", "gate.xml").returncode == 1
    assert seen == [(tmp_path / "gate.xml").read_text()]
    assert "not finished" in seen[0]


def test_a_pipe_is_given_the_report_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    begin_gate_files(
        "campaign.yaml", junit=tmp_path / "pipe", markdown=None
    )  # else it would wait for a reader


def test_files_for_pipelines_say_who_asked_the_same_before(tmp_path):
    write_gate(tmp_path, ["slips", "knows"], baseline="slips/plain")
    files = ("--junit", "gate.xml", "--markdown", "gate.md")
    assert winnow(tmp_path, "gate", "campaign.yaml", *files).returncode == 0
    again = ("--fork", "again", "--set", "seed=99")
    assert winnow(tmp_path, "gate", "campaign.yaml", *files, *again).returncode == 0
    for name in ("gate.xml", "gate.md"):
        assert "the same question before, with other draws or another test: survivor" in (
            tmp_path / name
        ).read_text().replace("\\", "")


def status_like(name, *candidates):
    """A gate that ran out of its budget, with these candidates beside the baseline."""
    answer = Answer(
        objective="best-mean",
        outcome="undecided",
        claim=NOTHING_CLAIMED,
        reason="budget",
        best=None,
        candidates=(
            CandidateStanding(name="base", status="baseline"),
            *(CandidateStanding(name=each, status=status) for each, status in candidates),
        ),
        n_examples=10,
        delta=0.05,
        baseline="base",
    )
    return CampaignStatus(
        name=name,
        objective="best-mean",
        state="ended",
        answer=answer,
        budget=None,
        budgets=(),
        stopped_by=None,
        totals={"answered": 4, "rounds": 1, "grid": 30},
        warnings=(),
        holder=None,
    )


def test_what_is_not_shown_does_not_pass_and_hostile_names_break_no_file():
    status = status_like("open-<&>*|\x00", ("b|<b>", "active"), ("c", "dropped"))
    assert broken_rules(junit_xml(status)) == []
    suite = ElementTree.fromstring(junit_xml(status))[0]
    assert [[child.tag for child in case] for case in suite.iter("testcase")] == [["error"], ["error"]]
    assert (suite.get("errors"), suite.get("name")) == ("2", "open-<&>*|·")
    assert r"| b\|\<b\> | open | nothing is known |" in gate_markdown(status)


@pytest.mark.parametrize(
    ("outcome", "statuses", "heading"),
    [
        ("undecided", ("active", "active"), "### open: undecided\n"),
        ("undecided", ("active", "worse"), "### open: undecided\n"),
        ("failed", ("dropped", "dropped"), "### open: failed\n"),
        ("decided", ("no-worse", "dropped"), "### open: no worse, except 1 dropped, proven\n"),
    ],
)
def test_the_summary_is_headed_as_the_answer_is(outcome, statuses, heading):
    status = status_like("open", *zip("bc", statuses, strict=True))
    claim = Claim(kind="proven", delta=0.05) if outcome == "decided" else NOTHING_CLAIMED
    lost = tuple(
        Unscored(name=name, told=1, unscored=1, reason=None)
        for name, each in zip("bc", statuses, strict=True)
        if each == "dropped"
    )
    answer = replace(status.answer, outcome=outcome, claim=claim, dropped=lost)
    assert gate_markdown(replace(status, answer=answer)).startswith(heading)


@pytest.mark.parametrize(
    ("outcome", "statuses", "code", "ends"),
    [
        ("failed", ("dropped",), 1, 3),
        ("failed", ("dropped", "dropped"), 1, 3),
        ("undecided", ("dropped", "active"), 3, 3),
        (None, ("active", "active"), 1, 1),
        (None, ("active", "active"), 130, 130),
    ],
)
def test_a_gate_that_shows_nothing_ends_alike_however_many_were_dropped(outcome, statuses, code, ends):
    status = status_like("open", *zip("bc", statuses, strict=False))
    assert gate_code(replace(status, answer=replace(status.answer, outcome=outcome)), code) == ends


def broken_rules(xml):
    """What a file of JUnit's breaks of the schema beside this file, and of what no schema can say."""
    schema = etree.XMLSchema(etree.parse(Path(__file__).with_name("junit.xsd")))
    schema.validate(etree.fromstring(xml.encode()))
    root = ElementTree.fromstring(xml)
    held = {"tests": "testcase", "failures": "failure", "errors": "error"}
    wrong = [
        f"{each.tag} counts {each.get(name)} {name}"
        for each in (root, *root)
        for name, tag in held.items()
        if each.get(name) != str(len(list(each.iter(tag))))
    ]
    return [*(error.message for error in schema.error_log), *wrong]


@pytest.mark.parametrize(
    ("written", "instead", "told"),
    [
        ('tests="2"', "", "The attribute 'tests' is required"),
        ('tests="2"', 'tests="3"', "testsuites counts 3 tests"),
        ("<error ", "<skipped/><error ", "This element is not expected"),
        ('classname="open"', "", "The attribute 'classname' is required"),
        ('name="c"', 'name="b"', "Duplicate key-sequence"),
        ('type="dropped"', 'type=""', "underruns the allowed minimum length"),
    ],
)
def test_a_report_that_pipelines_cannot_read_is_told_from_one_that_they_can(written, instead, told):
    xml = junit_xml(status_like("open", ("b", "active"), ("c", "dropped")))
    assert written in xml
    assert told in "\n".join(broken_rules(xml.replace(written, instead)))


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    write_gate(tmp_path, ["knows", "slips"])
    result = winnow(tmp_path, "gate", "campaign.yaml", "--junit", "nowhere/gate.xml")
    assert result.returncode == 1
    assert result.stderr.endswith(
        "winnow: nowhere/gate.xml cannot be written: there is no folder nowhere; name another file\n"
    )
    assert not (tmp_path / "winnow.db").exists()  # it is said before anything is run


def test_an_unknown_baseline_names_the_option_and_the_nearest_candidate(tmp_path):
    write_gate(tmp_path, ["knows", "slips"])
    said = one_message(winnow(tmp_path, "gate", "campaign.yaml", "--baseline", "knwos/plain"))
    assert said.startswith("--baseline: unknown candidate 'knwos/plain'; did you mean 'knows/plain'?")
