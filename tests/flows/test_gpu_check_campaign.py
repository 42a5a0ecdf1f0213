"""The campaign of `python -m tests.gpu_check` by plain calls, killed in the middle and resumed."""

import json
import shutil
import time
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from campaign_processes import fork_server, write_campaign
from sqlalchemy import event
from sqlalchemy.orm import Session
from tiny_models import save_tiny_llama

from tests.gpu_check import campaigns, plain_campaign
from tests.gpu_check.site import Site
from winnow.tasks.setup.load import check_campaign_file

HOLD_AT = "hold-at"
"""A file that says at which of its commits a campaign waits to be killed."""


def run(folder: str) -> None:
    """Run a campaign, or go on with it, until it is held."""
    place, made = Path(folder) / HOLD_AT, 0
    hold_at = int(place.read_text()) if place.exists() else 0
    place.unlink(missing_ok=True)

    def count(session: Session) -> None:
        nonlocal made
        made += 1
        if made == hold_at:
            time.sleep(600)

    event.listen(Session, "after_commit", count)
    plain_campaign.run(f"{folder}/campaign.yaml")


@dataclass(frozen=True)
class Forked:
    """A process of the fork server, asked as one of `subprocess` is."""

    process: BaseProcess

    @property
    def pid(self) -> int:
        return self.process.pid

    def poll(self) -> int | None:
        return self.process.exitcode

    def wait(self, timeout: float) -> int:
        self.process.join(timeout)
        return self.process.exitcode


def start(folder: Path) -> Forked:
    process = fork_server().Process(target=run, args=(str(folder),))
    process.start()
    return Forked(process)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A campaign that was left alone."""
    folder = tmp_path_factory.mktemp("whole")
    write_campaign(folder)
    assert start(folder).wait(300.0) == 0
    return folder


def test_killed_and_resumed_it_is_held_against_the_one_left_alone(whole, tmp_path):
    write_campaign(tmp_path)
    (tmp_path / HOLD_AT).write_text("14")
    (alone, resumed) = campaigns.compared(whole, tmp_path, start, must_equal=True)
    assert "32 comparisons in 4 rounds on transformers" in alone[1]
    assert "budget, best " in alone[1]
    stored = int(resumed[0].removeprefix("killed by SIGKILL at ").partition(" ")[0])
    assert 0 < stored < 32
    assert resumed[1].startswith("the same rounds, texts, comparisons, decisions (")
    assert plain_campaign.check(f"sqlite:///{tmp_path}/winnow.db") == 0


def test_a_difference_is_a_failure_where_calls_are_the_same(whole, tmp_path):
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    one, other = campaigns.history(whole), dict(campaigns.history(tmp_path))
    assert campaigns.differences(one, other) == []
    other["texts"] = [*other["texts"][:-1], ("key", "another", "stop")]
    assert campaigns.differences(one, other) == ["texts (2 rows)"]
    assert campaigns.verdict(["texts (2 rows)"], must_equal=False) == "differs in texts (2 rows)"
    with pytest.raises(RuntimeError, match=r"killed and resumed it differs in texts \(2 rows\)"):
        campaigns.verdict(["texts (2 rows)"], must_equal=True)


def test_a_campaign_that_ends_before_it_is_killed_is_no_proof(whole):
    with pytest.raises(RuntimeError, match="it ended before 33 texts were stored"):
        campaigns.kill_at(start(whole), whole, 33)


@pytest.mark.parametrize("provider", ["transformers", "vllm"])
def test_the_campaign_of_the_demo_runs_on_the_device_and_in_a_database_of_its_own(tmp_path, provider):
    site = Site(
        folder=tmp_path,
        provider=provider,
        device="cuda",
        n_devices=1,
        demo=tmp_path / "demo",
        model=None,
        texts=4,
        budget=128,
    )
    path = campaigns.write_spec(site, tmp_path / "campaign", streaming=False)
    spec = json.loads(path.read_text())
    assert spec["storage"] == f"sqlite:///{tmp_path}/campaign/winnow.db"
    assert {model["provider"] for model in spec["models"]} == {provider}
    args = {"transformers": {"device": "cuda"}, "vllm": {"enforce_eager": True}}[provider]
    assert spec["models"][0]["model_args"] == {"max_model_len": 128, "dtype": "float32", **args}
    assert (spec["streaming"], spec["stopping"]) == (False, {"budget": 128, "delta": 0.05})
    for model in spec["models"]:
        Path(model["model"]).mkdir(parents=True)
        (Path(model["model"]) / "config.json").write_text("{}")
    assert check_campaign_file(str(path)).spec.name == "demo"


def test_the_campaign_is_of_the_model_that_is_named_in_the_precision_that_is_wanted(tmp_path):
    """The reproduction: whatever --model said, the demo's models were run, in float32."""
    site = Site(
        folder=tmp_path,
        provider="transformers",
        device="cpu",
        n_devices=1,
        demo=tmp_path / "no-demo-here",
        model=save_tiny_llama(tmp_path / "tiny", seed=1),
        texts=4,
    )
    path = campaigns.write_spec(site, tmp_path / "campaign", "bfloat16", streaming=False)
    checked = check_campaign_file(str(path))
    (model,) = checked.models
    assert (model.name, model.model) == ("measured", str(tmp_path / "tiny"))
    assert model.model_args == {"dtype": "bfloat16", "device": "cpu", "max_model_len": 128}
    assert len(checked.candidates) > 1
