"""winnow db: what it prints, refuses and leaves behind."""

import io
import json
import sqlite3

import pytest
from campaigns import one_message, winnow
from scripted_engines import provide_all
from stepwise_campaigns import run_campaign, write_campaign
from stored_campaigns import new_database, store_campaign

MOMENTS = (
    ("campaigns", "created_at"),
    ("rounds", "planned_at"),
    ("decisions", "decided_at"),
    ("generations", "created_at"),
)

DIGESTS = (
    ("campaigns", "row_digest"),
    ("generations", "row_digest"),
    ("rounds", "row_digest"),
    ("decisions", "digest"),
)


@pytest.fixture
def folder(tmp_path):
    """A working directory whose winnow.db holds one finished round, of long ago."""
    database = new_database(tmp_path / "winnow.db")
    campaign = store_campaign(database)
    campaign.finish(campaign.plan(0, [0, 1], [0, 0]), [1.0, None])
    database.close()
    with sqlite3.connect(tmp_path / "winnow.db") as connection:
        for table, column in MOMENTS:
            connection.execute(f"UPDATE {table} SET {column} = '2020-01-02 03:04:05.000000'")
        for table, column in DIGESTS:  # as what an older Winnow stored has none
            connection.execute(f"UPDATE {table} SET {column} = NULL")
    connection.close()
    return tmp_path


def names(folder, *storage):
    return [row["campaign"] for row in json.loads(winnow(folder, "list", "--json", *storage).stdout)]


def test_a_database_is_copied_to_a_server_and_back_and_answers_alike(folder, postgresql):
    server = postgresql.new_database()
    there = winnow(folder, "db", "copy", "sqlite:///winnow.db", server)
    assert there.returncode == 0, there.stderr
    assert "every table was read back and is equal" in there.stdout
    back = winnow(folder, "db", "copy", server, "sqlite:///back.db")
    assert back.returncode == 0, back.stderr
    boards = [
        winnow(folder, "query", "letters", "leaderboard", "--json", "--storage", storage).stdout
        for storage in ("sqlite:///winnow.db", server, "sqlite:///back.db")
    ]
    assert boards[0] == boards[1] == boards[2]
    # Made-up texts are the answer to nothing that can be asked again.
    checked = winnow(folder, "db", "check", "--storage", server)
    assert checked.returncode == 1
    assert "campaign 'letters': 2 comparisons could not be checked; the first: " in checked.stdout
    assert "no problem was found in " in checked.stdout
    assert "sound" not in checked.stdout
    again = winnow(folder, "db", "copy", "sqlite:///winnow.db", server)
    assert again.returncode == 1
    assert "already holds rows" in one_message(again)


def test_a_source_that_is_not_there_is_named_and_makes_no_file(folder):
    refused = winnow(folder, "db", "copy", "sqlite:///absent.db", "sqlite:///new.db")
    assert refused.returncode == 1
    assert "absent.db is unavailable" in one_message(refused)
    assert not (folder / "absent.db").exists()


def test_sizes_are_told_per_table_and_per_comparison(folder):
    told = json.loads(winnow(folder, "db", "stats", "--json").stdout)
    comparisons = next(row for row in told["tables"] if row["table"] == "comparisons")
    assert comparisons["rows"] == 2
    assert comparisons["bytes_per_comparison"] == comparisons["bytes"] / 2 > 0
    assert sum(row["bytes"] for row in told["tables"]) <= told["bytes"]
    assert "bytes per comparison" in winnow(folder, "db", "stats").stdout


@pytest.fixture
def real(tmp_path, monkeypatch):
    """A working directory whose winnow.db holds a campaign that was really run."""
    provide_all(monkeypatch)
    database = new_database(tmp_path / "winnow.db")
    run_campaign(database, write_campaign(tmp_path, "real"))
    database.close()
    return tmp_path


def test_a_sound_database_is_called_so(real):
    checked = winnow(real, "db", "check")
    assert (checked.returncode, checked.stdout) == (0, "sqlite:///winnow.db is sound\n")


def test_comparisons_of_other_texts_are_named_one_by_one(real):
    with sqlite3.connect(real / "winnow.db") as connection:
        connection.execute(
            "UPDATE comparisons SET generation_a_id = CASE generation_a_id WHEN 1 THEN 2 ELSE 1 END "
            "WHERE generation_a_id IN (1, 2)"
        )
    connection.close()
    checked = winnow(real, "db", "check")
    assert checked.returncode == 1
    lines = checked.stdout.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("round 1 of campaign 1 is not as it was stored: ")
    assert lines[1].startswith("campaign 'real', round 1, position ")
    assert lines[3] == (
        "sqlite:///winnow.db is not sound: 3 problems were found (rounds and positions are counted from 1, "
        "and from 0 in views such as v_comparisons)"
    )


def test_the_help_of_prune_says_what_it_leaves_alone(folder):
    told = " ".join(winnow(folder, "db", "prune", "--help").stdout.replace("│", " ").split())
    assert "a round of another campaign uses it, finished or not" in told


def test_pruning_says_what_it_would_delete_and_deletes_it_only_when_told(folder, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    asked = winnow(folder, "db", "prune", "--older-than", "30d")
    assert "letters: idle since 2020-01-02 03:04 UTC; deletes 2 comparisons and 2 outputs" in asked.stdout
    assert names(folder) == ["letters"]
    done = winnow(folder, "db", "prune", "--older-than", "30d", "--yes")
    assert "deleted 1 of 1 campaign" in done.stdout
    assert "to release the space, run: winnow db vacuum --storage sqlite:///winnow.db" in done.stdout
    assert names(folder) == []
    assert "nothing to delete" in winnow(folder, "db", "prune", "--older-than", "30d").stdout
    assert winnow(folder, "db", "vacuum").stdout.endswith("MiB now\n")


def test_what_is_young_or_named_otherwise_is_not_pruned(folder):
    assert "nothing to delete" in winnow(folder, "db", "prune", "--older-than", "9999w", "--yes").stdout
    young = winnow(folder, "db", "prune", "--older-than", "9999w", "--campaign", "letters", "--yes")
    assert young.stdout.startswith("nothing to delete: letters has not been idle since ")
    unknown = winnow(folder, "db", "prune", "--older-than", "1h", "--campaign", "words", "--yes")
    assert "no campaign is named 'words'" in one_message(unknown)
    assert names(folder) == ["letters"]


@pytest.mark.parametrize("age", ["30", "d", "-1d", "1.5d", "30 days", "1y"])
def test_an_age_that_cannot_be_read_is_refused(folder, age):
    refused = winnow(folder, "db", "prune", f"--older-than={age}", "--yes")
    assert refused.returncode == 2
    assert "give hours, days or weeks" in one_message(refused)
    assert names(folder) == ["letters"]


def test_upgrading_says_which_revision_a_database_is_at(folder):
    assert "is at revision" in winnow(folder, "db", "upgrade").stdout
    created = winnow(folder, "db", "upgrade", "--storage", "sqlite:///new.db")
    assert "was upgraded from no tables" in created.stdout


def test_a_campaign_that_another_takes_its_history_from_stays_until_that_one_has_ended(folder):
    columns = "objective, dataset_id, seed, execution, versions"
    history = """json_set(spec, '$.history', json('["campaign:letters"]'))"""
    with sqlite3.connect(folder / "winnow.db") as connection:
        connection.execute(
            f"INSERT INTO campaigns (name, spec, created_at, {columns}) "
            f"SELECT 'needs', {history}, '2999-01-01 00:00:00.000000', {columns} FROM campaigns"
        )
    connection.close()
    kept = winnow(folder, "db", "prune", "--older-than", "30d", "--yes")
    assert (kept.returncode, kept.stdout) == (
        0,
        "letters: kept, because needs has not ended and uses it as history\n",
    )
    assert sorted(names(folder)) == ["letters", "needs"]
