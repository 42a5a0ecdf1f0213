"""Groups of examples in a campaign's file: what is refused, what is compared, and what the answer says."""

import json

import numpy as np
import pytest
import yaml
from sqlalchemy import text
from stepwise_campaigns import begun, run_round, write_campaign
from stored_campaigns import new_database

from winnow.algorithms.best_mean.groups import Groups
from winnow.algorithms.best_mean.metrics import true_values
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.answer.sentences.answer_lines import answer_lines
from winnow.tasks.campaign.earlier_scores import load_score_table
from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import SpecError
from winnow.tasks.queries.breakdowns import tags
from winnow.tasks.queries.schedule_history import all_series, other_numbers
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.setup.load import check_campaign_file, exhaustive_campaign
from winnow.tasks.setup.open_campaign import open_campaign
from winnow.tasks.simulation.environments import ScoreEnvironment
from winnow.tasks.simulation.example_facts import groups_of_campaign, require_groups
from winnow.tasks.simulation.forecast.plan import plan_campaign
from winnow.tasks.simulation.forecast.requests import read_assumption
from winnow.tasks.simulation.results import measure_by
from winnow.tasks.spec.campaign import CampaignSpec

pytestmark = pytest.mark.usefixtures("scripted_models")

N_EXAMPLES = 10
WEIGHTS = "groups.weights: must be equal, size, or a number above 0 for each group, by name"


def written(folder, name="grouped", **changes):
    """A campaign whose examples are of one of three levels: 2 easy, 3 fair, 5 hard."""
    path = write_campaign(
        folder, name, numbers=range(N_EXAMPLES), **{"selector": {"name": "champion"}, **changes}
    )
    data = folder / f"{name}.jsonl"
    rows = [json.loads(line) for line in data.read_text().splitlines()]
    for number, row in enumerate(rows):
        row |= {"level": ["easy"] * 2 + ["fair"] * 3 + ["hard"] * 5}
        row |= {"level": row["level"][number], "year": 2020 + number % 2, "kinds": ["a", "b"], "ratio": 0.5}
        row |= {"first": "yes"} if number == 0 else {}
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def checked(folder, **changes):
    return check_campaign_file(str(written(folder, **changes)))


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ("equal", [1.0, 1.0, 1.0]),
        ("size", [2.0, 3.0, 5.0]),
        ({"hard": 3, "easy": 1, "fair": 0.5}, [1.0, 0.5, 3.0]),
        ({"hard": 1e308, "easy": 1e308, "fair": 2e307}, [1e308, 2e307, 1e308]),
    ],
)
def test_groups_count_as_the_file_says(tmp_path, weights, expected):
    found = checked(tmp_path, groups={"by": "level", "weights": weights})
    assert found.groups.names == ("easy", "fair", "hard")
    assert found.groups.of_example.tolist() == [0] * 2 + [1] * 3 + [2] * 5
    assert found.found_params()["group_weights"].tolist() == expected
    share = expected[0] / 10 / sum(each / 10 for each in expected)
    assert f"by the mean of 3 groups' means, by level: easy {share:.1%}" in found.size


def test_names_of_groups_may_be_numbers(tmp_path):
    weights = {"2020": 1, "2021": 2}
    path = written(tmp_path, groups={"by": "year"})
    path.write_text(path.read_text().replace("by: year", "by: year\n  weights: {2020: 1, 2021: 2}"))
    found = check_campaign_file(str(path))
    assert found.spec.groups.weights == weights
    assert found.groups.weights.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"groups": {"by": "levle"}}, "groups.by: unknown field 'levle'; did you mean 'level'?"),
        ({"groups": {"by": "first"}}, "groups.by: example 'e1' has no first, so it is in no group"),
        (
            {"groups": {"by": "kinds"}},
            "groups.by: kinds of example 'e0' is ['a', 'b'], and the name of a group has to be",
        ),
        (
            {"groups": {"by": "ratio"}},
            "groups.by: ratio of example 'e0' is 0.5, and the name of a group has to be",
        ),
        (
            {"groups": {"by": "level", "weights": {"easy": 1, "fair": 1}}},
            "there is no weight for hard; add a weight for every group",
        ),
        (
            {"groups": {"by": "level", "weights": {"easy": 1, "fair": 1, "hard": 1, "hart": 2}}},
            "groups.weights: unknown group 'hart'; did you mean 'hard'?",
        ),
        (
            {"groups": {"by": "level", "weights": {"easy": 1, "fair": 1, "hard": 1e8}}},
            "groups.weights: a group's weight is more than 1000000 times another one's",
        ),
        ({"groups": {"by": "level", "weights": {"easy": 0.0}}}, WEIGHTS),
        ({"groups": {"by": "level", "weights": {"easy": True}}}, WEIGHTS),
        ({"groups": {"by": "level", "weights": {"easy": 10**400}}}, WEIGHTS),
        ({"groups": {"by": "level", "weights": {}}}, WEIGHTS),
        ({"groups": {"by": "level", "weights": "equall"}}, WEIGHTS),
        (
            {"groups": {"by": "level"}, "selector": {"name": "champion", "params": {"groups": 3}}},
            "selector.params.groups: is computed from the file's groups; set groups",
        ),
        (
            {"groups": {"by": "level", "objective": "worst", "weights": "size"}},
            "objective: worst uses only the lowest group mean; remove weights",
        ),
        (
            {"groups": {"by": "level"}, "selector": {"name": "ucb-e"}},
            "groups: ucb-e compares candidates only by the mean over all examples; choose",
        ),
        (
            {"groups": {"by": "level", "objective": "worst"}, "selector": {"name": "race"}},
            "groups.objective: a race on common examples cannot compare the lowest group means",
        ),
        (
            {"groups": {"by": "level"}, "holdout": 0.4},
            "holdout: results on held-out examples are plain means, not means by groups",
        ),
        (
            {"groups": {"by": "level"}, "selector": {"name": "champion", "params": {"top_m": 2}}},
            "selector.params.top_m: top_m needs the mean over all examples",
        ),
        ({"objective": "route", "groups": {"by": "level"}}, "groups: does not apply to route; remove it"),
    ],
)
def test_what_groups_nothing_or_cannot_be_answered_is_refused(tmp_path, changes, said):
    with pytest.raises(SpecError) as caught:
        checked(tmp_path, **changes)
    assert said in str(caught.value)


def test_one_value_for_all_groups_nothing(tmp_path):
    path = written(tmp_path, groups={"by": "level"})
    data = tmp_path / "grouped.jsonl"
    rows = [json.loads(line) | {"level": "one"} for line in data.read_text().splitlines()]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(SpecError, match="have 1 different values of level, and 2 to 100 groups are allowed"):
        check_campaign_file(str(path))


def test_groups_are_part_of_what_a_campaign_is_and_are_stored_with_it(tmp_path):
    specs = [
        CampaignSpec.model_validate(yaml.safe_load(written(tmp_path, groups=groups).read_text()))
        for groups in (None, {"by": "level"}, {"by": "level", "objective": "worst"})
    ]
    identities = [spec.identity() for spec in specs]
    assert "groups" not in identities[0]
    assert identities[1] != identities[2]
    for spec in specs:
        assert CampaignSpec.from_stored(spec.identity(), spec.execution_fields(), spec.storage) == spec


def run_to_the_end(database, path):
    """The lines of the answer, and the rows of the breakdown."""
    with begun(database, path) as campaign:
        while not campaign.selector.decision().stop:
            run_round(campaign)
    with database.reading() as session:
        record = campaign_records.get_campaign(session, "grouped")
        return dict(answer_lines(campaign_status(Look(session, record), in_full=True).answer)), tags(
            Look(session, record)
        )


WORDS = {
    "mean": (
        "mean of group means: the mean of a candidate's means on the groups of examples, with equal weights",
        "has a mean of group means that is higher",
    ),
    "worst": (
        "worst-group mean: the lowest of a candidate's means on the groups of examples",
        "has a worst-group mean that is higher",
    ),
}


@pytest.mark.parametrize("objective", WORDS)
def test_the_answer_says_what_was_compared(tmp_path, objective):
    database = new_database(tmp_path / "results.db")
    groups = {"by": "level", "objective": objective}
    path = written(tmp_path, groups=groups, batch_size=8, storage=f"sqlite:///{tmp_path}/results.db")
    lines, by_level = run_to_the_end(database, path)
    of_groups, sure = WORDS[objective]
    noun = of_groups.partition(":")[0]
    assert lines["groups"] == f"by level; {of_groups} (winnow query grouped tags shows them)"
    assert sure in lines["confidence"] or f"the same {noun}" in lines["confidence"]
    assert f"1.000 as {noun} on the 10 examples (known exactly)" in lines["mean"]
    assert lines["new examples"] == "nothing is computed for them if groups are compared"
    assert {row["value"] for row in by_level} == {"easy", "fair", "hard"}
    database.close()


ROUNDS = "SELECT number, arms, examples FROM rounds ORDER BY number"
STANDINGS = """
SELECT r.number, c.position, s.estimate, s.lower, s.upper, s.status, b.wealth, b.out_at
FROM standings s JOIN rounds r ON r.id = s.round_id JOIN candidates c ON c.id = s.candidate_id
LEFT JOIN bets b ON b.round_id = s.round_id AND b.candidate_id = s.candidate_id
ORDER BY r.number, c.position
"""


@pytest.mark.parametrize("objective", WORDS)
def test_a_campaign_that_is_opened_again_after_every_round_ends_as_one_that_is_not(tmp_path, objective):
    histories = []
    stopping = {"budget": 4 * N_EXAMPLES, "delta": 0.05, "ties": "resolve"}
    for name in ("whole", "opened"):
        (tmp_path / name).mkdir()
        database = new_database(tmp_path / name / "results.db")
        groups, ended = {"by": "level", "objective": objective}, False
        path = written(tmp_path, groups=groups, batch_size=3, stopping=stopping)
        while not ended:
            with begun(database, path) as campaign:
                while not (ended := campaign.selector.decision().stop):
                    run_round(campaign)
                    if name == "opened":
                        break
        with database.reading() as session:
            histories.append([session.execute(text(query)).all() for query in (ROUNDS, STANDINGS)])
        database.close()
    assert histories[0] == histories[1]
    assert len(histories[0][0]) >= 4


def test_a_replay_and_a_forecast_compare_by_the_same_groups(tmp_path):
    storage = f"sqlite:///{tmp_path}/results.db"
    database = new_database(tmp_path / "results.db")
    path = written(tmp_path, groups={"by": "level", "objective": "worst"}, storage=storage)
    run_to_the_end(database, path)
    database.close()
    groups = groups_of_campaign("campaign:grouped", storage)
    assert groups.sizes.tolist() == [2, 3, 5]
    assert groups.shares is None
    require_groups("campaign:grouped", ["champion", "race"])
    with pytest.raises(SpecError, match="--selector pulse: campaign:grouped compares candidates by means of"):
        require_groups("campaign:grouped", ["champion", "pulse"])
    found = check_campaign_file(str(path))
    assert exhaustive_campaign(found).groups is None
    plan = plan_campaign(found, read_assumption("best=0.9,rest=0.5"), seeds=2, workers=1)
    assert (plan.gap, plan.gap_of_grid, plan.on_new_examples) == (None, None, None)
    assert plan.assumed.endswith("by the lowest of their means on 3 groups, by level")
    assert load_score_table("campaign:grouped", storage).scores.shape == (4, N_EXAMPLES)


def test_campaigns_over_time_are_of_one_number(tmp_path):
    database = new_database(tmp_path / "results.db")
    path = written(tmp_path)
    by_level = "groups.by=level"
    asked = {"plain": [], "one": [by_level], "two": [by_level], "three": ["groups.by=year"]}
    asked["judged"] = [by_level, "judge.type=contains"]
    for name, changes in asked.items():
        open_campaign(database, check_campaign_file(str(path), [f"name={name}", *changes]))
    with database.reading() as session:
        (series,) = all_series(session)
        of = {name: campaign_records.get_campaign(session, name) for name in asked}
    assert [each.name for each in series.campaigns] == ["one", "two"]
    assert other_numbers(series.campaigns) == []
    assert other_numbers([of["one"], of["three"]]) == ["groups of examples"]
    assert "the judge" in other_numbers([of["one"], of["two"], of["judged"]])
    database.close()


def test_a_replay_is_right_where_the_value_is_the_highest():
    scores = np.array([[1.0, 1.0, 1.0, 0.0], [0.5, 0.5, 0.5, 0.5]])
    groups = Groups.of(np.array([0, 0, 0, 1]), None)
    environment = ScoreEnvironment(scores=scores, groups=groups)
    assert true_values(scores, groups).tolist() == [0.0, 0.5]
    assert set(environment.settings({})) == {"intervals", "groups", "group_weights"}
    with pytest.raises(SpecError, match="--metric top1-mcnemar compares candidates example by example"):
        measure_by("top1-mcnemar", environment, gap=0.0, level=0.05)
