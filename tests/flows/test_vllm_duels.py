"""Duels of candidates on a real vLLM engine before the rule judge: killed with kill -9, and resumed."""

import os
import signal

import campaign_processes as processes
import duel_campaigns
import pytest
from test_vllm_campaign import started, wait_for_decisions

pytestmark = pytest.mark.vllm


def campaign(folder):
    """One model, asked in two ways and sampled in two, so that only one engine has to be loaded."""
    folder.mkdir()
    duel_campaigns.write_duels(
        folder,
        models=[
            {
                "name": "one",
                "provider": "vllm",
                "model": "model-1",
                "model_args": {"max_model_len": 64, "dtype": "float32", "enforce_eager": True},
            }
        ],
        prompts=[
            {"name": "plain", "template": "{{ input }}="},
            {"name": "shout", "template": "!{{ input }}!"},
        ],
    )
    return folder


def test_kill_and_resume_of_duels_on_vllm_is_like_an_uninterrupted_run(tmp_path, prefect_api):
    whole, killed = campaign(tmp_path / "whole"), campaign(tmp_path / "killed")
    assert started(whole, "run", "campaign.yaml").wait(240) == 3

    process = started(killed, "run", "campaign.yaml")
    wait_for_decisions(killed, process, 1)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    made_before = processes.rows(killed, "SELECT id, key, created_at FROM generations ORDER BY id")
    assert 0 < len(made_before) < len(duel_campaigns.stored_texts(whole))

    assert started(killed, "resume", "survivor", "--storage", f"sqlite:///{killed}/winnow.db").wait(240) == 3
    made_after = processes.rows(killed, "SELECT id, key, created_at FROM generations ORDER BY id")
    assert made_after[: len(made_before)] == made_before
    assert len({key for _, key, _ in made_after}) == len(made_after)
    assert duel_campaigns.history(killed) == duel_campaigns.history(whole)
    assert {each["outcome"] for each in duel_campaigns.duels(whole)} >= {0.0, 1.0}
