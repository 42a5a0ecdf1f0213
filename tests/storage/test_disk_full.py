"""A disk that runs full within a round is reported; once there is room, the round is finished."""

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from winnow.storage.admin import check
from winnow.storage.errors import StorageUnavailable
from winnow.storage.records import generations as generation_records
from winnow.storage.records import rounds as round_records

PROGRAM = """
import resource, signal, sys
sys.path[:0] = ["tests"]
from stored_campaigns import NOW, generation
from winnow.storage.records import generations as generation_records
from winnow.storage.records import rounds as round_records
from winnow.storage.engine.database import open_database

database = open_database(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
for portion in range(1000):
    with database.writing() as session:
        made = [generation(f"{portion}-{i}", text="text " * 200) for i in range(20)]
        generation_records.add_generations(session, 1, made, NOW)
    print(portion, flush=True)
"""


@pytest.fixture
def backend():
    return "sqlite"


def test_a_full_disk_is_named_and_what_was_committed_stays(campaign):
    round_ = campaign.plan(0, [0, 1], [0, 0])
    limit = 2_000_000
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, campaign.database.url, str(limit)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    said = process.stderr.strip().splitlines()[-1]
    assert "StorageUnavailable" in said
    assert "disk" in said
    assert "run the command again" in said
    committed = len(process.stdout.split())
    assert committed > 10
    with campaign.database.reading() as session:
        keys = [f"{portion}-{i}" for portion in range(committed + 1) for i in range(20)]
        assert len(generation_records.texts_by_key(session, keys)) == committed * 20
        assert check.problems(session) == []
    campaign.finish(round_, [1.0, 0.0])
    with campaign.database.reading() as session:
        assert [told.outcomes for told in round_records.told_rounds(session, campaign.record.id)] == [
            [1.0, 0.0]
        ]


def test_a_file_that_may_not_grow_any_more_is_told_with_the_remedy(database):
    # It may have as many pages as it has.
    full = ("PRAGMA max_page_count = 1", "CREATE TABLE more AS SELECT hex(randomblob(1000000)) AS x")
    with (
        pytest.raises(StorageUnavailable, match=r"disk is full; free space on its disk"),
        database.writing() as session,
    ):
        [session.execute(text(each)) for each in full]
