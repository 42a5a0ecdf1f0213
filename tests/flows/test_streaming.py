"""Engines whose texts depend on what is asked beside them: whole calls are the same in every process."""

import pytest
import scripted_engines
from ahead_campaigns import decided, decided_again, finish_with_kills, history, run, write
from campaign_processes import rows
from without_prefect import leave_prefect_out

from winnow.tasks.setup.definition_changes import IdentityChanged

FEW = {"budget": 40, "delta": 0.05}
SHARED = [
    {"name": "plain", "template": "{{ input }}="},
    {"name": "asked", "template": "Q {{ input }}:"},
    {"name": "same", "template": "{{ input }}{{ '=' }}"},
]
"""Of the first and the last every text is the same, so that rounds in flight need each other's."""


@pytest.fixture(autouse=True)
def plainly(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    leave_prefect_out(monkeypatch)
    scripted_engines.provide(monkeypatch, "crowded")
    scripted_engines.JOINING.clear()


def write_crowded(folder, **changes):
    """A campaign in flight on two crowded engines, asked in groups of three."""
    changes = {"prompts": SHARED, "stopping": FEW, "selector": {"name": "row-mean"}, **changes}
    execution = {"log_folder": str(folder / "logs"), "group_size": 3}
    path = write(folder, **{"execution": execution, **changes})
    text = path.read_text().replace("provider: joining", "provider: crowded")
    path.write_text(text.replace("dataset:\n", "dataset:\n  limit: 10\n"))
    return path


@pytest.mark.parametrize("lookahead", [0, 2])
def test_with_whole_calls_a_campaign_that_is_killed_ends_as_one_that_is_not(tmp_path, lookahead):
    changes = {"streaming": False, "lookahead": lookahead}
    run(write_crowded(tmp_path / "whole", **changes))
    kills = finish_with_kills(write_crowded(tmp_path / "killed", **changes))
    assert kills >= 14
    assert history(tmp_path / "killed") == history(tmp_path / "whole")
    outcomes = {outcome for (outcome,) in rows(tmp_path / "whole", "SELECT outcome FROM comparisons")}
    assert outcomes == {0.0, 1.0}
    assert max(engine.most_at_once for engine in scripted_engines.JOINING) == 1


def test_with_streaming_it_does_not_but_what_is_stored_gives_the_same_decisions(tmp_path):
    run(write_crowded(tmp_path / "whole"))
    path = write_crowded(tmp_path / "killed")
    finish_with_kills(path)
    assert history(tmp_path / "killed")["generations"] != history(tmp_path / "whole")["generations"]
    assert decided_again(path) == decided(tmp_path / "killed")


def test_how_long_whole_calls_are_may_not_change_once_begun(tmp_path):
    run(write_crowded(tmp_path, streaming=False))
    with pytest.raises(IdentityChanged, match=r"execution\.group_size"):
        run(write_crowded(tmp_path, streaming=False, execution={"group_size": 4}))
    with pytest.raises(IdentityChanged, match="streaming"):
        run(write_crowded(tmp_path, streaming=True))
