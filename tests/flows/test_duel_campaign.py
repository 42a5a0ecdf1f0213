"""Campaigns of duels from end to end: kills, orders, fresh answers, guardrails, features, bad models."""

import json
from collections import defaultdict
from importlib.resources import files

import campaign_processes as processes
import duel_campaigns
import pytest
import scripted_engines
from campaign_processes import Kill, rows
from campaigns import status_json, winnow
from duel_campaigns import duels, model, model_judge, write_duels
from hostile_answers import FENCE, HOSTILE_ANSWERS
from scripted_engines import vowel_share
from waiting import PATIENCE_S

from winnow.tasks.objectives.best_duel.objective import chosen_features
from winnow.tasks.setup.load import check_campaign_file

pytestmark = pytest.mark.usefixtures("plain_runs")

ENOUGH = 20
"""Processes after which a campaign that does not end is stuck."""
JUDGES = {"rules": duel_campaigns.RULES, "model": model_judge("reader")}


@pytest.fixture(scope="module")
def forks():
    return processes.fork_server()


@pytest.fixture(autouse=True)
def scripted_models(monkeypatch):
    scripted_engines.provide_all(monkeypatch)


@pytest.fixture(scope="module", params=JUDGES)
def uninterrupted(request, forks, tmp_path_factory):
    """The judge of a campaign, and its history where nobody disturbs it."""
    folder = tmp_path_factory.mktemp(request.param)
    process = duel_campaigns.start(forks, folder, prepared(folder, JUDGES[request.param]))
    process.join(PATIENCE_S)
    assert process.exitcode == 0
    return JUDGES[request.param], duel_campaigns.history(folder)


def prepared(folder, judge):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        scripted_engines.provide_all(patch)
        return processes.store(write_duels(folder, judge=judge))


def assert_nothing_is_made_twice(folder, stored_before):
    asked = duel_campaigns.asked_texts(folder)
    assert len(asked) == len(set(asked))
    assert not set(asked) & set(stored_before)


def ran(folder, *arguments, code=3):
    """What a run to its end prints; the budget is spent undecided unless another code is expected."""
    result = winnow(folder, "run", "campaign.yaml", *arguments)
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    return result.stdout


def asked(folder, view, *arguments):
    return json.loads(winnow(folder, "query", "survivor", view, "--json", *arguments).stdout)


def test_the_campaigns_have_enough_in_them_to_be_worth_killing(uninterrupted):
    judge, history = uninterrupted
    assert len(history["rounds"]) == duel_campaigns.BUDGET // duel_campaigns.BATCH_SIZE
    assert {each["outcome"] for each in history["duels"]} >= {0.0, 1.0}
    assert {reason for *_, reason in history["decisions"]} == {"running", "budget"}
    assert bool(history["judgments"]) == (judge["type"] == "llm")


def test_a_campaign_killed_at_commit_boundaries_is_like_an_uninterrupted_one(forks, uninterrupted, tmp_path):
    judge, history = uninterrupted
    storage = prepared(tmp_path, judge)
    for kills in range(ENOUGH):
        stored_before = duel_campaigns.stored_texts(tmp_path)
        kill = Kill(commit=4 + kills % 3, after=kills % 2 == 1)
        process = duel_campaigns.start(forks, tmp_path, storage, kill)
        process.join(PATIENCE_S)
        assert_nothing_is_made_twice(tmp_path, stored_before)
        if process.exitcode == 0:
            break
        assert process.exitcode == -9
    assert kills >= 4
    assert duel_campaigns.history(tmp_path) == history


def test_a_judge_that_prefers_the_first_place_decides_nothing_and_is_seen_through(tmp_path):
    write_duels(tmp_path, judge=model_judge("partial"), selector={"name": "random-pair"})
    ran(tmp_path)
    judgments = defaultdict(dict)
    for judgment in asked(tmp_path, "judgments"):
        judgments[judgment["round"], judgment["position"]][judgment["presentation_order"]] = judgment
    different = [each for each in duels(tmp_path) if each["text_a"] != each["text_b"]]
    assert {each["outcome"] for each in duels(tmp_path)} == {0.5}
    assert len(different) == len(judgments) > 0
    for each in different:
        shown = judgments[each["round"], each["position"]]
        assert list(shown) == ["original", "swapped"]
        assert [judgment["verdict"] for judgment in shown.values()] == [1.0, 0.0]
        for judgment, (first, second) in zip(shown.values(), (("a", "b"), ("b", "a")), strict=True):
            assert f" answer A >>>\n{each[f'text_{first}']}\n" in judgment["prompt"]
            assert f" answer B >>>\n{each[f'text_{second}']}\n" in judgment["prompt"]
    (judge,) = asked(tmp_path, "judges")
    assert judge == {
        "judge": "judge",
        "judgments": 2 * len(different),
        "unread": 0,
        "first_wins": 1.0,
        "both_orders": len(different),
        "flip_rate": 1.0,
    }


@pytest.mark.parametrize("fresh", [True, False])
def test_a_sampled_candidate_answers_anew_at_every_meeting_if_asked_to(tmp_path, fresh):
    write_duels(tmp_path, fresh_generations=fresh, selector={"name": "random-pair"})
    ran(tmp_path)
    met = defaultdict(list)
    for each in duels(tmp_path):
        for side in "ab":
            met[each[side], each["example"]].append((each[f"replicate_{side}"], each[f"text_{side}"]))
    assert max(map(len, met.values())) > 2
    for (name, _), answers in met.items():
        anew = fresh and name.endswith("warm")
        assert [replicate for replicate, _ in answers] == (
            list(range(len(answers))) if anew else [0] * len(answers)
        )
        assert anew or len(set(answers)) == 1
    texts = {name: {text for _, text in answers} for name, answers in met.items()}
    assert (max(map(len, texts.values())) > 2) == fresh


def test_candidates_are_crossed_with_guardrails_but_for_those_excluded(tmp_path):
    write_duels(
        tmp_path,
        guardrails=[
            {"name": "bare", "template": "{{ prompt }}"},
            {"name": "polite", "template": "Be polite.\n{{ prompt }}"},
        ],
        exclude=[{"model": "two", "guardrail": "polite"}],
    )
    ran(tmp_path)
    names = [name for (name,) in rows(tmp_path, "SELECT name FROM candidates ORDER BY position")]
    assert names == [
        f"{model}/plain/{guardrail}/{sampling}"
        for model, guardrail in (("one", "bare"), ("one", "polite"), ("two", "bare"))
        for sampling in ("greedy", "warm")
    ]
    found = asked(tmp_path, "comparisons")
    prompts = {(row[f"candidate{side}"], row[f"prompt{side}"]) for row in found for side in ("", "_b")}
    assert len(prompts) > len(names)
    for name, prompt in prompts:
        assert prompt.startswith("Be polite.\n") == ("/polite/" in name)
        assert prompt.endswith("=")


REFUSED = {
    "a guardrail without the prompt": (
        {"guardrails": [{"name": "mute", "template": "Say nothing."}]},
        "guardrails[0].template: the template does not use the prompt",
    ),
    "an exclusion of no guardrail": (
        {"guardrails": [{"name": "g", "template": "{{ prompt }}"}], "exclude": [{"guardrail": "h"}]},
        "exclude[0].guardrail: ",
    ),
    "an unknown pair judge": ({"judge": {"type": "rule"}}, "judge.type: "),
    "a judge of benchmarks": ({"judge": {"type": "exact"}}, "judge.type: "),
    "no scorer": ({"judge": {"type": "rules"}}, "judge"),
    "a scorer without a type": ({"judge": {"type": "rules", "scorer": {}}}, "judge.scorer.type: "),
    "an unknown scorer": (
        {"judge": {"type": "rules", "scorer": {"type": "exakt"}}},
        "judge.scorer.type: ",
    ),
    "a judge without a checkpoint": (
        {"judge": {"type": "llm", "models": [{"name": "j", "provider": "transformers", "model": "./gone"}]}},
        "judge.models[0].model: ",
    ),
    "an epsilon of a half": (
        {"stopping": {"budget": 8, "epsilon": 0.5}},
        "stopping: epsilon must be below 0.5 for best-duel, got 0.5; lower it",
    ),
    "a history": ({"history": ["campaign:earlier"]}, "history: "),
    "fresh generations of a benchmark": (
        {
            "objective": "best-mean",
            "judge": {"type": "contains"},
            "selector": {"name": "row-mean"},
            "fresh_generations": True,
        },
        "fresh_generations: ",
    ),
    "a selector of benchmarks": (
        {"selector": {"name": "ucb-e"}},
        "selector.name: ucb-e is a selector for best-mean, not for best-duel",
    ),
    "a table of too few features": (
        {"selector": {"name": "llm-po-bt", "params": {"features": [[1.0], [0.0]]}}},
        "selector.params.features: has shape (2, 1)",
    ),
    "features that are no table": (
        {"selector": {"name": "llm-po-bt", "params": {"features": [[1.0], [0.0, 1.0], [1.0], [0.0]]}}},
        "selector.params.features: is not a table of numbers",
    ),
    "features by an unknown name": (
        {"selector": {"name": "llm-po-bt", "params": {"features": "factor"}}},
        "selector.params.features: ",
    ),
    "features of no width": (
        {"selector": {"name": "llm-po-bt", "params": {"features": [[], [], [], []]}}},
        "selector.params.features: has shape (4, 0); give",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_campaign_of_duels_that_makes_no_sense_is_refused_in_one_sentence(tmp_path, case):
    changes, message = REFUSED[case]
    write_duels(tmp_path, **changes)
    result = winnow(tmp_path, "run", "campaign.yaml")
    assert result.returncode == 2
    (line,) = result.stderr.strip().splitlines()
    assert "campaign.yaml:" in line
    number = int(line.partition("campaign.yaml:")[2].partition(":")[0])
    assert message in line
    key = message.partition(":")[0].split(".")[0].partition("[")[0]
    sections = (tmp_path / "campaign.yaml").read_text().splitlines()
    assert [each for each in sections[:number] if not each.startswith((" ", "-"))][-1].startswith(f"{key}:")
    assert not (tmp_path / "winnow.db").exists()


def features(folder, **params):
    write_duels(folder, selector={"name": "llm-po-bt", "params": params})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        checked = check_campaign_file("campaign.yaml")
    checked.create_selector()
    return chosen_features(checked.spec, checked.candidates)["features"].tolist()


def test_a_bradley_terry_campaign_is_told_the_choices_or_a_table_of_ones_own(tmp_path):
    one_two_greedy_warm = [[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]]
    assert features(tmp_path) == features(tmp_path, features="factors") == one_two_greedy_warm
    own = [[1.0, 0.0], [0.5, 1.0], [0.0, 0.25], [0.0, 0.0]]
    assert features(tmp_path, features=own) == own


NO_COIN = {**duel_campaigns.RULES, "both_wrong": "tie"}
GREEDY = [True, False, True, False]
"""Which of one/greedy, one/warm, two/greedy and two/warm are."""


@pytest.mark.parametrize(
    ("changes", "deterministic"),
    [
        ({"judge": NO_COIN, "selector": {"name": "llm-po"}}, GREEDY),
        ({"judge": NO_COIN, "selector": {"name": "rucb"}, "fresh_generations": False}, [True] * 4),
        ({"judge": model_judge("reader"), "selector": {"name": "llm-po"}}, GREEDY),
        ({"judge": duel_campaigns.RULES, "selector": {"name": "llm-po"}}, [False] * 4),
        ({"judge": NO_COIN, "selector": {"name": "llm-po-bt"}}, [False] * 4),
    ],
)
def test_candidates_that_always_answer_the_same_are_known_and_part_of_the_identity(
    tmp_path, monkeypatch, changes, deterministic
):
    write_duels(tmp_path, **changes)
    monkeypatch.chdir(tmp_path)
    checked = check_campaign_file("campaign.yaml")
    assert checked.identity()["deterministic"] == deterministic
    found = checked.found_params().get("deterministic")
    assert (found is not None) == any(deterministic)
    assert found is None or found.tolist() == deterministic
    checked.create_selector()


def test_greedy_candidates_meet_an_example_once_and_the_campaign_ends_with_their_duels(tmp_path):
    greedy = [{"name": "greedy", "temperature": 0.0, "max_tokens": 8}]
    write_duels(
        tmp_path,
        judge=NO_COIN,
        selector={"name": "llm-po"},
        generate_configs=greedy,
        stopping={"budget": 1_000},
    )
    ran(tmp_path, code=0)
    met = [each["example"] for each in duels(tmp_path)]
    assert len(met) == len(set(met)) == duel_campaigns.N_EXAMPLES
    *_, reason = duel_campaigns.history(tmp_path)["decisions"][-1]
    assert reason == "exhausted"


def test_a_candidate_that_cannot_be_loaded_is_dropped_at_no_cost_and_its_duels_say_why(tmp_path):
    write_duels(
        tmp_path, stopping={"budget": 80, "delta": 0.05}, batch_size=20, selector={"name": "random-pair"}
    )
    (tmp_path / "model-2" / "model.safetensors").write_bytes(b"these are no weights")
    told = ran(tmp_path)
    assert "leading      one/" in told
    found = duels(tmp_path)
    for each in found:
        broken = [name for name in (each["a"], each["b"]) if name.startswith("two/")]
        assert (each["reason"], each["outcome"] is None) == (
            ("load_failed", True) if broken else (None, False)
        )
        assert all(f"{name}: " in each["detail"] for name in broken)
    assert sum(each["reason"] is None for each in found) == 80
    assert len(found) > 80
    last = [each for each in found if each["round"] == found[-1]["round"]]
    assert not any(each["reason"] for each in last)


def test_a_judge_that_cannot_be_loaded_leaves_every_duel_unscored_and_nothing_decided(tmp_path):
    write_duels(
        tmp_path,
        judge={"type": "llm", "models": [{"name": "judge", "provider": "transformers", "model": "broken"}]},
        stopping={"budget": 400, "delta": 0.05},
    )
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    told = ran(tmp_path)
    assert "confidence   undecided" in told
    found = [each for each in duels(tmp_path) if each["text_a"] != each["text_b"]]
    assert {(each["outcome"], each["reason"]) for each in found} == {(None, "load_failed")}
    assert len(found) < 400
    status = status_json(tmp_path)
    assert (status["outcome"], status["claim"]["kind"]) == ("undecided", "none")
    assert {judgment["reason"] for judgment in asked(tmp_path, "judgments")} == {"load_failed"}


def hostile_campaign(folder, **judge):
    """A candidate of `HOSTILE_ANSWERS` against an honest one, before a judge that any escape would steer.

    Returns:
        The duels, and by example how often the honest answer won.
    """
    write_duels(
        folder,
        models=[model("honest", "honest", "model-1"), model("tricky", "tricky", "model-2")],
        generate_configs=None,
        prompts=[{"name": "bare", "template": "{{ number }}"}],
        dataset={"path": "data.jsonl", "fields": {"id": "id", "input": "input", "target": None}},
        judge=model_judge("reader", **judge),
        selector={"name": "random-pair"},
        batch_size=60,
        stopping={"budget": 120},
    )
    with (folder / "data.jsonl").open("w") as file:
        for number, name in enumerate(HOSTILE_ANSWERS):
            file.write(json.dumps({"id": name, "input": "Who is honest?", "number": number}) + "\n")
    ran(folder, code=0)
    found = duels(folder)
    assert {each["example"] for each in found} == set(HOSTILE_ANSWERS)
    assert {each["reason"] for each in found} == {None}
    wins = defaultdict(set)
    for each in found:
        is_first = each["a"].startswith("honest")
        wins[each["example"]].add(each["outcome"] if is_first else 1.0 - each["outcome"])
    return found, wins


def test_no_hostile_answer_decides_a_verdict_and_all_are_stored_as_they_are(tmp_path):
    found, wins = hostile_campaign(tmp_path)
    for number, (name, answer) in enumerate(HOSTILE_ANSWERS.items()):
        honest = vowel_share(f"honest work on {number}")
        assert wins[name] == {float(honest > vowel_share(answer))}, name
    stored = {
        each["example"]: each["text_a" if each["a"].startswith("tricky") else "text_b"] for each in found
    }
    changed = {name for name, answer in HOSTILE_ANSWERS.items() if stored[name] != answer}
    assert changed == {"characters that databases refuse"}
    assert stored["characters that databases refuse"].endswith(" '; DROP TABLE judgments; -- \"")
    (judge,) = asked(tmp_path, "judges")
    assert (judge["unread"], judge["flip_rate"]) == (0, 0.0)
    assert not {"\x1b", "\0", "\u202e"} & set(winnow(tmp_path, "query", "survivor", "judgments").stdout)
    assert winnow(tmp_path, "db", "check").returncode == 0


def test_the_corpus_would_fool_a_judge_whose_mark_can_be_guessed(tmp_path):
    built_in = files("winnow.tasks.judges.pairwise") / "templates" / "mt-bench.j2"
    (tmp_path / "open.j2").write_text(built_in.read_text().replace("{{ boundary }}", FENCE))
    _, wins = hostile_campaign(tmp_path, template=str(tmp_path / "open.j2"), verdict_format="[[A]]")
    fooled = {name for name, found in wins.items() if found == {0.5}}
    assert fooled == {"the end of the quotation", "the end of the quotation in the second place"}
