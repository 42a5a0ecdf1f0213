"""Campaigns that people judge from end to end: they wait, are labelled, are killed, and go on."""

import io
import os
import pty
import shutil
import signal
import sys

import campaign_processes as processes
import people_campaigns as people
import pytest
import scripted_engines
from campaign_processes import rows
from campaigns import one_message, status_json, winnow
from certify_campaigns import model, truth
from people_campaigns import judged_to_the_end, labelled_elsewhere, tasks, write_people

pytestmark = pytest.mark.usefixtures("plain_runs")

ANSWERED = (
    "SELECT k.key, a.verdict, a.reason, a.annotator, a.source FROM annotations a "
    "JOIN annotation_tasks k ON k.id = a.task_id"
)


@pytest.fixture(autouse=True)
def scripted_models(monkeypatch):
    scripted_engines.provide_all(monkeypatch)


@pytest.fixture(scope="module")
def waiting(plain_runs, tmp_path_factory):
    """By objective, the folder of a campaign that waits for its first judgments."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        scripted_engines.provide_all(patch)
        for objective in people.BY_OBJECTIVE:
            found[objective] = tmp_path_factory.mktemp(objective)
            write_people(found[objective], objective)
            result = winnow(found[objective], "run", "campaign.yaml")
            assert result.returncode == 3, result.stderr
            assert "winnow label survivor [FILE]" in result.stdout
    return found


@pytest.fixture
def duels(waiting, tmp_path):
    """A campaign of duels that waits, for one test alone."""
    return shutil.copytree(waiting["best-duel"], tmp_path / "duels")


@pytest.fixture
def ratings(waiting, tmp_path):
    return shutil.copytree(waiting["best-mean"], tmp_path / "ratings")


def resumed(folder):
    return winnow(folder, "resume", "survivor", "--trust").returncode


def typed(folder, monkeypatch, *lines, who="Ann"):
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    result = winnow(folder, "label", "survivor", "--as", who)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("objective", people.BY_OBJECTIVE)
def test_a_campaign_waits_for_people_and_ends_once_they_have_judged(waiting, tmp_path, objective):
    folder = shutil.copytree(waiting[objective], tmp_path / objective)
    before = status_json(folder)
    assert (before["outcome"], before["state"]) == ("waiting", "waiting")
    assert before["people"] == {"annotators": 0, "wanted": len(tasks(folder))}
    # Whoever resumes too early is told again, and nothing is generated.
    assert winnow(folder, "resume", "survivor").returncode == 3
    assert status_json(folder)["totals"]["generations"] == before["totals"]["generations"]
    assert judged_to_the_end(folder) > 1
    found = status_json(folder)
    assert (found["outcome"], found["best"], found["is_guaranteed"]) == ("winner", "medium/plain", True)
    assert "a judgment by an annotator (one person)" in winnow(folder, "status", "survivor").stdout
    assert {row["state"] for row in tasks(folder)} == {"used"}


@pytest.mark.parametrize("objective", people.BY_OBJECTIVE)
def test_a_round_that_is_killed_asks_people_for_the_same_and_ends_the_same(
    prefect_api, waiting, tmp_path, objective
):
    whole = shutil.copytree(waiting[objective], tmp_path / "whole")
    judged_to_the_end(whole)
    killed = tmp_path / "killed"
    killed.mkdir()
    where = {"group_size": 8, "max_loaded": 2, "log_folder": f"{killed}/logs"}
    write_people(killed, objective, storage=f"sqlite:///{killed}/winnow.db", execution=where)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(killed)
        storage = processes.store(killed / "campaign.yaml")
    forks = processes.fork_server()
    for commit in (4, 3):  # while texts are made, and before tasks are stored
        assert people.killed_at(forks, killed, storage, commit) == -signal.SIGKILL
    assert resumed(killed) == 3
    path = labelled_elsewhere(killed)
    assert winnow(killed, "label", "survivor", str(path), "--as", "Ann").returncode == 0
    # As the round that was judged is about to be recorded.
    assert people.killed_at(forks, killed, storage, 2) == -signal.SIGKILL
    assert resumed(killed) == 3
    judged_to_the_end(killed, "--trust")
    assert processes.history(killed) == processes.history(whole)
    assert sorted(rows(killed, ANSWERED)) == sorted(rows(whole, ANSWERED))


def test_a_person_at_a_terminal_rates_goes_back_skips_and_quits(ratings, monkeypatch):
    wanted = [row for row in tasks(ratings) if row["state"] == "wanted"]
    said = typed(ratings, monkeypatch, "3", "b", "1", "no", "s", "u", "q")
    assert f"[{len(wanted)} left]" in said
    assert "1 wrong  2 half right  3 right  u unclear  s skip  b back  q quit" in said
    assert "(Ann said: right)" in said
    assert "'no' is not one of the keys" in said
    assert "plain" not in said.split("survivor waits")[0]  # of which candidate it is
    found = {key: rest for key, *rest in rows(ratings, ANSWERED)}
    assert sorted(map(str, found.values())) == sorted(
        map(str, ([0.0, None, "Ann", "terminal"], [None, "unclear", "Ann", "terminal"]))
    )
    more = f"{len(wanted) - 2} more" if len(wanted) > 2 else "no"  # as the draws fall
    assert f"survivor waits for {more} judgment" in said


def test_what_is_preferred_counts_for_its_candidate_wherever_it_was_shown(duels):
    shown = {row["id"]: row for row in tasks(duels)}
    assert winnow(duels, "label", "survivor", str(labelled_elsewhere(duels)), "--as", "Ann").returncode == 0
    found = rows(
        duels,
        "SELECT k.key, k.presentation_order, v.verdict, g.text FROM annotation_tasks k "
        "JOIN annotations v ON v.task_id = k.id JOIN generations g ON g.id = k.generation_a_id",
    )
    assert {order for _, order, _, _ in found} == {"original", "swapped"}
    for key, order, verdict, text_a in found:
        row = shown[key[:16]]
        assert row["first" if order == "original" else "second"] == text_a
        assert verdict == float(text_a == truth(int(row["input"])))


def test_of_two_people_each_gets_another_task_and_a_late_answer_is_refused(duels, monkeypatch):
    from winnow.storage.engine.database import open_database
    from winnow.storage.records import campaigns as campaign_records
    from winnow.tasks.errors import WinnowError
    from winnow.tasks.objectives.human import annotating

    database = open_database(f"sqlite:///{duels}/winnow.db")
    with database.reading() as session:
        campaign = campaign_records.get_campaign(session, "survivor")
    first = annotating.next_question(database, campaign, "Ann")
    other = annotating.next_question(database, campaign, "Ben")
    assert first.key != other.key
    assert annotating.next_question(database, campaign, "Ann").key == first.key
    say = dict(source="terminal")
    annotating.answer(database, campaign, first.key, first.choices[0], annotator="Ann", **say)
    with pytest.raises(WinnowError, match="already exists, from Ann"):
        annotating.answer(database, campaign, first.key, first.choices[1], annotator="Ben", **say)
    with pytest.raises(WinnowError, match=r"Ann has judged example .* in the meantime"):
        annotating.answer(
            database, campaign, first.key, first.choices[1], annotator="Ben", may_change=True, **say
        )
    assert len(rows(duels, ANSWERED)) == 1
    # Who leaves gives back what they were shown; whoever stays away for long loses it.
    annotating.release(database, campaign, "Ben")
    assert annotating.next_question(database, campaign, "Cem").key == other.key
    monkeypatch.setattr(annotating, "HOLD", -annotating.HOLD)
    assert annotating.next_question(database, campaign, "Dot").key == other.key
    with pytest.raises(WinnowError, match="give the annotator's name"):
        annotating.next_question(database, campaign, " ")


def test_who_finds_every_task_with_others_is_told_so(ratings, monkeypatch):
    from winnow.storage.engine.database import open_database
    from winnow.storage.records import campaigns as campaign_records
    from winnow.tasks.objectives.human import annotating

    database = open_database(f"sqlite:///{ratings}/winnow.db")
    with database.reading() as session:
        campaign = campaign_records.get_campaign(session, "survivor")
    wanted = [row for row in tasks(ratings) if row["state"] == "wanted"]
    for number in range(len(wanted)):
        assert annotating.next_question(database, campaign, f"P{number}") is not None
    database.close()
    said = typed(ratings, monkeypatch)
    assert "the remaining items are open in other annotators' sessions, for up to 10 minutes each" in said
    assert "winnow query survivor labels --storage sqlite:///winnow.db lists " in said


def test_what_was_answered_and_gone_back_to_is_not_said_to_be_skipped(ratings, monkeypatch):
    n = len([row for row in tasks(ratings) if row["state"] == "wanted"])
    said = typed(ratings, monkeypatch, *["3"] * (n - 1), *(["b", "s"] if n > 1 else []), "3")
    assert "skipped items are shown again" not in said
    assert "open in other" not in said
    assert "survivor waits for no judgments" in said


def test_who_says_nothing_as_their_name_and_a_file_that_is_not_there_are_refused(ratings):
    assert "give the annotator's name" in one_message(winnow(ratings, "label", "survivor", "--as", ""))
    missing = one_message(winnow(ratings, "label", "survivor", "none.csv"))
    assert "there is no file none.csv" in missing
    assert "dataset.path" not in missing


def test_a_file_is_taken_whole_or_not_at_all(ratings):
    path = labelled_elsewhere(ratings, annotator="Ben")
    lines = path.read_text().splitlines()
    broken = ratings / "broken.csv"

    def refused(*lines):
        broken.write_text("\n".join(lines) + "\n")
        result = winnow(ratings, "label", "survivor", str(broken))
        assert rows(ratings, ANSWERED) == []
        return one_message(result)

    unknown = refused(*lines, "0123456789abcdef,right,")
    assert "has no task with the id" in unknown
    assert "copy the id from winnow query survivor labels --storage sqlite:///winnow.db" in unknown
    assert "there is no column 'verdict'" in refused("id,score", "0123456789abcdef,1")
    assert "there is no column 'id'; its columns are separated by semicolons: save it with commas" in refused(
        "id;verdict", "0123456789abcdef;right"
    )
    assert "occurs twice" in refused(*lines, lines[1])
    assert "is not the id of a task" in refused(lines[0], "0,right,")
    key = lines[1].split(",")[0]
    said = refused(lines[0], f"{key},great,")
    assert f"{broken}, line 2: 'great'" in said
    assert "'great' is not a verdict; write one of wrong, half right, right, unclear" in said
    said = refused(lines[0], f"{key},right,{'n' * 101}")
    assert f"{broken}, line 2: give the annotator's name" in said
    path.write_text("\n".join([*lines, ",,", ",,"]))  # as spreadsheets leave them
    result = winnow(ratings, "label", "survivor", str(path))
    assert "no verdict yet" not in result.stdout
    assert f"{len(lines) - 1} new judgments" in result.stdout
    assert {row[3:] for row in rows(ratings, ANSWERED)} == {("Ben", "done.csv")}


def test_a_judgment_changes_only_with_correct_and_only_until_it_counts(ratings):
    path = labelled_elsewhere(ratings)
    key = path.read_text().splitlines()[1].split(",")[0]
    done = winnow(ratings, "label", "survivor", str(path), "--as", "Ann")
    assert done.returncode == 0, done.stderr
    other = ratings / "other.csv"
    other.write_text(f"id,verdict\n{key},half right\n")
    assert (
        "from Ann (done.csv), and is kept; remove the row, or use --correct if the new judgment is right"
    ) in one_message(winnow(ratings, "label", "survivor", str(other)))
    changed = winnow(ratings, "label", "survivor", str(other), "--correct", "--as", "Ann")
    assert "0 new judgments, 1 changed" in changed.stdout
    assert winnow(ratings, "resume", "survivor").returncode == 3
    other.write_text(f"id,verdict\n{key},right\n")
    late = one_message(winnow(ratings, "label", "survivor", str(other), "--correct", "--as", "Ann"))
    assert "was used in a stored comparison and cannot change" in late


def test_unclear_outputs_have_no_score_and_a_loss_of_1(waiting, tmp_path):
    for objective, loss in (("best-mean", None), ("certify", 1.0)):
        folder = shutil.copytree(waiting[objective], tmp_path / objective)
        path = labelled_elsewhere(folder)
        head, *lines = path.read_text().splitlines()
        path.write_text("\n".join([head, *(f"{line.split(',')[0]},unclear" for line in lines)]) + "\n")
        assert winnow(folder, "label", "survivor", str(path), "--as", "Ann").returncode == 0
        assert winnow(folder, "resume", "survivor").returncode == 3
        found = rows(folder, "SELECT DISTINCT outcome, reason, human_loss, answer FROM comparisons")
        assert found == [(None, "unclear", loss, "Ann: unclear")]


def test_the_terminal_of_a_person_is_moved_by_no_text(tmp_path):
    write_people(
        tmp_path, "best-duel", models=[people.model("medium", "hostile"), people.model("small", "knows")]
    )
    assert winnow(tmp_path, "run", "campaign.yaml").returncode == 3
    shown = at_a_terminal(tmp_path, b"1\nq\n")
    assert b"--- First answer ---" in shown
    assert b"DROP TABLE judgments" in shown
    assert b"\x1b" not in shown
    assert "\u202e".encode() not in shown
    assert len(rows(tmp_path, ANSWERED)) == 1


def at_a_terminal(folder, keys):
    """What `winnow label` writes to a real terminal at which somebody types."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.environ["TERM"] = "xterm"
        command = [sys.executable, "-m", "winnow.flows.main", "label", "survivor", "--as", "Ann"]
        os.execv(sys.executable, command)
    os.write(terminal, keys)
    said = b""
    try:
        while part := os.read(terminal, 65536):
            said += part
    except OSError:  # the other end is closed
        pass
    assert os.waitpid(pid, 0)[1] == 0, said
    return said


def test_a_certificate_counts_examples_and_calls_ratings_no_labels_and_a_mean_of_alpha_passes(tmp_path):
    # To a computer 1 - 0.7 is more than 0.3.
    fine = {**people.QUALITY, "levels": {"right": 0.7, "wrong": 0.0}}
    write_people(
        tmp_path,
        "certify",
        judge=fine,
        models=[model("medium", "knows")],
        certify={"alpha": 0.3, "cost": "custom", "costs": {"medium/plain": 1}},
    )
    assert winnow(tmp_path, "run", "campaign.yaml").returncode == 3
    judged_to_the_end(tmp_path)
    found = status_json(tmp_path)
    assert found["certificate"]["plain"] == "medium/plain"
    said = dict(found["lines"])
    assert (
        said["plain"]
        == "the plain mean of human losses would choose medium/plain (0.300), without any guarantee"
    )
    assert said["cost"] == "40 comparisons in 4 rounds, of 40 examples"
    assert said["ended"].startswith("all 40 examples that may be labelled are used; the tests depend on")
    assert "passes" in winnow(tmp_path, "report", "survivor").stdout
