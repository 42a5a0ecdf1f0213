"""`winnow.propose` adds prompts of a generator to a campaign, and its answer keeps the error probability."""

import json
import re

import pytest
from faulty_server import faulty_server

import winnow

pytestmark = pytest.mark.usefixtures("plain_runs")

N = 60


def reply(call):
    """Right where the number is below that of the prompt: `of 30 asks ...` is right on half of them."""
    numbers = re.findall("[0-9]+", call.prompt)
    return "yes" if len(numbers) == 2 and int(numbers[1]) < int(numbers[0]) else "no"


@pytest.fixture
def spec(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"id": f"e{i}", "input": str(i), "target": "yes"} for i in range(N)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with faulty_server(reply=reply, model="m") as server:
        yield winnow.Spec(
            name="grown",
            models=[winnow.Model(name="m", provider="openai", model="m", model_base_url=server.url)],
            prompts=[
                winnow.Prompt(name="first", template="of 20 asks {{ input }}"),
                winnow.Prompt(name="poor", template="of 5 asks {{ input }}"),
            ],
            dataset=winnow.Dataset(path="data.jsonl", fields=winnow.Fields(id="id")),
            judge="exact",
            execution=winnow.Execution(canaries=False),
        )


def stored_spec():
    return json.loads(winnow.open("sqlite:///winnow.db").sql("SELECT spec FROM campaigns")["spec"][0])


def test_proposals_join_and_the_best_of_all_is_named(spec):
    seen = []

    def generator(campaign):
        seen.append((campaign.answer.best, len(campaign.leaderboard())))
        return ["of 20 asks {{ input }}", f"of {30 + 15 * len(seen)} asks {{{{ input }}}}"]

    campaign = winnow.propose(spec, generator, times=2)
    assert seen == [("m/first", 2), ("m/proposal-1-2", 3)]
    assert campaign.answer.best == "m/proposal-2-2"
    stored = stored_spec()
    assert stored["selector"]["params"] == {"additions": "expected"}  # which keeps the error probability
    assert {each["name"]: each["template"] for each in stored["prompts"]} == {
        "first": "of 20 asks {{ input }}",
        "poor": "of 5 asks {{ input }}",
        "proposal-1-2": "of 45 asks {{ input }}",
        "proposal-2-2": "of 60 asks {{ input }}",
    }


def test_it_ends_once_nothing_new_is_proposed(spec):
    calls = []

    def generator(campaign):
        calls.append(None)
        return [winnow.Prompt(name="mine", template="of 50 asks {{ input }}")]

    assert winnow.propose(spec, generator, times=9).answer.best == "m/proposal-1-1"
    assert len(calls) == 2


def test_the_same_call_goes_on_after_an_interruption(spec):
    def breaks(campaign):
        if len(campaign.leaderboard()) > 2:
            raise KeyboardInterrupt
        return ["of 40 asks {{ input }}"]

    with pytest.raises(KeyboardInterrupt):
        winnow.propose(spec, breaks)
    seen = []

    def generator(campaign):
        seen.append(len(campaign.leaderboard()))
        return [f"of {50 + len(seen)} asks {{{{ input }}}}"]

    assert winnow.propose(spec, generator, times=2).answer.best == "m/proposal-2-1"
    assert seen == [3]
    assert winnow.propose(spec, generator, times=2).answer.best == "m/proposal-2-1"
    assert seen == [3]


def test_a_proposal_that_was_taken_into_the_spec_is_one_prompt(spec):
    winnow.propose(spec, lambda campaign: ["of 50 asks {{ input }}"], times=1)
    taken = winnow.Prompt(name="proposal-1-1", template="of 50 asks {{ input }}")
    again = winnow.propose(spec.replace(prompts=[*spec.prompts, taken]), lambda campaign: [])
    assert again.answer.best == "m/proposal-1-1"


@pytest.mark.parametrize(
    ("proposed", "said"),
    [
        ("one text", "the generator returned one prompt; return a list of prompts"),
        (None, "the generator returned NoneType; return a list of prompts"),
        ([3], "the generator proposed int; return templates or winnow.Prompt"),
        ([{"template": ""}], "the generator proposed an invalid prompt: "),
        ([{"tempalte": "x"}], "the generator proposed an invalid prompt: "),
        (["{{ unknown }}"], "unknown"),
    ],
)
def test_what_is_no_prompt_is_refused_in_a_sentence(spec, proposed, said):
    with pytest.raises(winnow.SpecError, match=said):
        winnow.propose(spec, lambda campaign: proposed)


def test_a_selector_that_takes_no_additions_is_refused(spec):
    with pytest.raises(
        winnow.SpecError, match="selector halving accepts no added prompts; use champion or race"
    ):
        winnow.propose(spec.replace(selector="halving"), lambda campaign: [])
    with pytest.raises(winnow.SpecError, match="give a winnow"):
        winnow.propose("campaign.yaml", lambda campaign: [])
