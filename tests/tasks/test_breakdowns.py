"""Scores by tag, and quality beside cost and time: plain estimates that change nothing else."""

import json
import math
import statistics
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from scripted_engines import SCRIPTED
from sqlalchemy import text
from stepwise_campaigns import prune, run_campaign, write_campaign
from stored_campaigns import new_database, store_campaign

from winnow.flows.reports.html.sections import standard
from winnow.storage.queries.costs import CandidateTexts
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.candidate_states import COUNTED, STATS
from winnow.storage.records.record_types import is_out
from winnow.tasks.campaign.look import Look
from winnow.tasks.data import tag_counts
from winnow.tasks.data.tag_counts import TagCounts, values_of
from winnow.tasks.engines.known_providers import PROVIDERS
from winnow.tasks.errors import SpecError
from winnow.tasks.queries import breakdowns, factors
from winnow.tasks.queries import breakdowns as pareto_module
from winnow.tasks.queries.breakdowns import pareto, tags, wilson
from winnow.tasks.queries.factors import Factor
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign
from winnow.tasks.setup.trust import permissions
from winnow.tasks.spec.campaign import CampaignSpec

pytestmark = pytest.mark.usefixtures("scripted_models")

N_EXAMPLES = 8
SUBJECTS = ["odd", "even"]


def written(folder, name="tagged", **changes):
    """A campaign whose examples say whether their number is even, and which digits it has."""
    path = write_campaign(folder, name, **changes)
    data = folder / f"{name}.jsonl"
    rows = [json.loads(line) for line in data.read_text().splitlines()]
    for number, row in enumerate(rows):
        row |= {
            "subject": SUBJECTS[number % 2 == 0],
            "kinds": [] if number == 0 else ["all", f"{number // 4}"],
        }
        row |= {"n": number}
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def asked(tmp_path):
    database = new_database(tmp_path / "results.db")

    def run(view, **changes):
        run_campaign(database, written(tmp_path, **changes))
        return ask(view)

    def ask(view):
        with database.reading() as session:
            return view(Look(session, campaign_records.get_campaign(session, "tagged")))

    run.again = ask
    run.database = database
    yield run
    database.close()


def test_each_candidate_has_a_mean_for_each_value_of_each_tag(asked):
    found = {
        (row["tag"], row["value"], row["candidate"]): row for row in asked(tags, tags=["subject", "kinds"])
    }
    assert {key[:2] for key in found} == {
        ("subject", "odd"), ("subject", "even"), ("kinds", "none"), ("kinds", "all"), ("kinds", "0"),
        ("kinds", "1"),
    }  # fmt: skip
    assert len(found) == 6 * 4
    # The second model is wrong on even numbers, the first one never.
    assert [found["subject", value, "two/plain"]["mean"] for value in SUBJECTS] == [1.0, 0.0]
    assert [found["subject", value, "two/plain"]["worst"] for value in SUBJECTS] == [False, True]
    assert [found["subject", value, "one/plain"]["mean"] for value in SUBJECTS] == [1.0, 1.0]
    assert not any(row["worst"] for key, row in found.items() if key[2] == "one/plain")
    everything = found["kinds", "all", "two/plain"]
    assert (everything["examples"], everything["scored"], everything["mean"]) == (7, 7, 4 / 7)
    assert (everything["lower"], everything["upper"]) == wilson(4 / 7, 7)


def test_all_of_the_lowest_means_are_the_worst():
    means = {"a": (2, 1.0), "b": (4, 2.0), "c": (1, 1.0), "d": (0, 0.0)}
    tallies = {
        ("tag", value): tag_counts.Tally(scored=scored, total=total)
        for value, (scored, total) in means.items()
    }
    assert breakdowns._worst({"x": tallies}) == {("tag", "x"): {"a", "b"}}


@pytest.mark.parametrize(("scored", "has_interval"), [(1, False), (19, False), (20, True)])
def test_effects_held_against_a_level_of_few_examples_have_no_interval(scored, has_interval):
    """With one example of the last level, 95% intervals of all three held 0 to 14 times in 100."""
    rng = np.random.default_rng(scored)
    levels = np.repeat([0, 1, 2], [40, 40, scored])
    examples = np.concatenate([np.arange(40), np.arange(40), np.arange(scored)])
    scores = rng.integers(0, 2, len(levels)).astype(float)
    factor = Factor(name="model", levels=["large", "small", "new"])
    effects = factors._main([factor], scores, levels[:, None], examples)
    assert [each.scores for each in effects] == [40, 40, scored]
    assert all(each.estimate is not None for each in effects)
    assert [each.lower is not None for each in effects] == [has_interval] * 3
    # Examples that nothing else was scored on say nothing of how levels differ.
    apart = factors._main([factor], scores, levels[:, None], examples + 100 * (levels == 2))
    assert not any(each.lower is not None for each in apart)


def test_interactions_have_intervals_where_every_combination_has_enough_examples():
    scores = np.random.default_rng(0).integers(0, 2, 160).astype(float)
    levels = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 40, axis=0)
    examples = np.tile(np.arange(40), 4)
    both = [Factor(name=name, levels=["a", "b"]) for name in ("model", "prompt")]
    for kept, has_interval in ((160, True), (122, False)):
        cells = factors._cells(both, scores[:kept], levels[:kept], examples[:kept])["model", "prompt"]
        assert [each.lower is not None for each in cells] == [has_interval] * 4
    level = factors._main(both, np.ones(160), levels, examples)
    assert [(each.estimate, each.lower) for each in level] == [(pytest.approx(0.0), None)] * 4


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        ([], "no decision used them"),
        ([{"metric": "valid", "at_least": 0.9, "at_most": None}], "valid also decided the answer: "),
    ],
)
def test_metrics_decide_where_they_are_constraints(constraints, said):
    campaign = SimpleNamespace(spec={"constraints": constraints} if constraints else {})
    assert standard._role_of_metrics(campaign).startswith(said)


def test_the_report_shows_the_leader_by_tag_and_all_candidates_beside_their_cost(asked):
    by_tag = asked(standard.tags(TagCounts()), tags=["subject"])
    assert [(row["value"], row["scored"], row["mean"]) for row in by_tag.table] == [
        ("even", "4 of 4", 1.0), ("odd", "4 of 4", 1.0)
    ]  # fmt: skip
    assert "not certified" in by_tag.note
    beside = asked.again(standard.pareto)
    assert len(beside.table) == 4
    assert beside.table[0]["tokens"] == "2.0 ± 0.0"
    assert "Cost and time are not certified" in beside.note


def test_tags_may_be_set_later_and_change_nothing_else(asked, tmp_path):
    assert asked(tags) == []
    path = written(tmp_path, tags=["subject"])
    open_campaign(asked.database, check_campaign_file(str(path)))
    assert len(asked.again(tags)) == 2 * 4
    plain, tagged = (
        CampaignSpec.model_validate(yaml.safe_load(written(tmp_path, tags=each).read_text()))
        for each in (None, ["subject"])
    )
    assert plain.identity() == tagged.identity()
    again = CampaignSpec.from_stored(tagged.identity(), tagged.execution_fields(), tagged.storage)
    assert again == tagged


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tags": ["subjects"]}, "tags[0]: unknown field 'subjects'; did you mean 'subject'?"),
        (
            {"tags": ["subject", "n"], "numbers": range(101)},
            "tags[1]: n has 101 different values, and a tag can have at most 100",
        ),
        ({"objective": "route", "tags": ["subject"]}, "tags: does not apply to route; remove it"),
    ],
)
def test_a_tag_that_groups_nothing_is_refused(tmp_path, changes, said):
    with pytest.raises(SpecError) as caught:
        check_campaign_file(str(written(tmp_path, **changes)))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"a": "x"}, ["x"]),
        ({"a": 3}, ["3"]),
        ({}, ["none"]),
        ({"a": None}, ["none"]),
        ({"a": []}, ["none"]),
        ({"a": ["x", "x", "y"]}, ["x", "y"]),
    ],
)
def test_a_value_is_a_text_and_a_list_is_several(fields, expected):
    assert values_of(fields, "a") == expected


def test_the_interval_holds_just_the_means_that_the_score_test_does_not_reject():
    for n, right in ((1, 0), (7, 4), (40, 40), (1000, 3)):
        for bound in wilson(right / n, n):
            if 0.0 < bound < 1.0:
                z = (right / n - bound) / math.sqrt(bound * (1.0 - bound) / n)
                assert abs(z) == pytest.approx(1.959963984540054)
    assert all(wilson(0.0, n)[0] == 0.0 and wilson(1.0, n)[1] == 1.0 for n in range(1, 100))


PRICES = {"prices": {"one": {"input": 2.0, "output": 10.0}, "two": {"input": 1.0, "output": 1.0}}}


def change_texts(database, change):
    """Let all texts be others than the models wrote, as if they had been from the beginning."""
    with database.writing() as session:
        connection = session.connection()
        connection.exec_driver_sql(f"UPDATE generations SET {change}")
        connection.exec_driver_sql("DELETE FROM candidate_stats")
        connection.exec_driver_sql(
            f"INSERT INTO candidate_stats ({', '.join(STATS)}) {COUNTED.format(where='1 = 1')}"
        )


def test_cost_and_time_are_means_of_the_stored_texts_with_their_spread(asked):
    rows = {row["candidate"]: row for row in asked(pareto, execution=PRICES)}
    assert len(rows) == 4
    for row in rows.values():
        assert (row["texts"], row["tokens"], row["tokens_sd"]) == (N_EXAMPLES, 2.0, 0.0)
    assert rows["one/plain"]["cost"] == pytest.approx(1000 * 12e-6)
    assert rows["two/plain"]["cost"] == pytest.approx(1000 * 2e-6)
    change_texts(asked.database, "seconds = id * id, output_tokens = id")
    with asked.database.reading() as session:
        stored = session.connection().exec_driver_sql(
            "SELECT g.seconds, g.output_tokens "
            "FROM comparisons c JOIN generations g ON g.id = c.generation_a_id "
            "JOIN candidates k ON k.id = c.candidate_a_id WHERE k.name = 'one/plain'"
        ).all()  # fmt: skip
    row = {each["candidate"]: each for each in asked.again(pareto)}["one/plain"]
    seconds = [each for each, _ in stored]
    costs = [1000 * (2e-6 + 10e-6 * tokens) for _, tokens in stored]
    assert (row["seconds"], row["seconds_sd"]) == pytest.approx(
        (sum(seconds) / 8, statistics.pstdev(seconds))
    )
    assert (row["cost"], row["cost_sd"]) == pytest.approx((sum(costs) / 8, statistics.pstdev(costs)))


@pytest.mark.parametrize(("read", "wrote", "price"), [(7, 1, (250e-6, 1e-3)), (13, 3, (0.15e-6, 0.6e-6))])
def test_texts_that_cost_the_same_have_no_spread(read, wrote, price):
    for n in range(1, 400):
        squares = (n * read**2, n * wrote**2, 0.0, n * read * wrote, 0.0, 0.0)
        texts = CandidateTexts(
            model="m", texts=n, sums=(n * read, n * wrote, 0.0), squares=squares, timed=n,
            latencies=(sum([0.1] * n), sum([0.1**2] * n)),
        )  # fmt: skip
        assert (texts.deviation(*price), texts.latency[1]) == (0.0, 0.0)


def test_latencies_are_told_with_their_spread_and_compared_once_all_are_known(asked):
    rows = asked(pareto, execution=PRICES)
    assert {(row["latency"], row["latency_sd"]) for row in rows} == {(None, None)}
    change_texts(asked.database, "latency = id WHERE model = 'one'")
    rows = {row["candidate"]: row for row in asked.again(pareto)}
    with asked.database.reading() as session:
        told = session.connection().exec_driver_sql(
            "SELECT g.latency FROM comparisons c JOIN generations g ON g.id = c.generation_a_id "
            "JOIN candidates k ON k.id = c.candidate_a_id WHERE k.name = 'one/plain'"
        ).scalars().all()  # fmt: skip
    assert (rows["one/plain"]["latency"], rows["one/plain"]["latency_sd"]) == pytest.approx(
        (statistics.mean(told), statistics.pstdev(told))
    )
    assert rows["two/plain"]["latency"] is None
    # By seconds, in which all are alike; the second model is out.
    assert {name for name, row in rows.items() if row["pareto"]} == {"one/plain", "one/asked"}
    change_texts(asked.database, "latency = CASE WHEN model = 'one' THEN id ELSE 9999 END, output_tokens = 1")
    marked = {row["candidate"] for row in asked.again(pareto) if row["pareto"]}
    assert marked <= {"one/plain", "one/asked", "two/plain", "two/asked"}
    shown = asked.again(standard.pareto).table
    assert all("±" in row["latency"] for row in shown)


def test_of_two_that_are_alike_both_are_marked_and_none_that_is_out(asked):
    marked = {row["candidate"]: row["pareto"] for row in asked(pareto, execution=PRICES)}
    # The second model is cheaper, and out; of two that are alike in all three, neither beats the other.
    assert marked == {name: name.startswith("one") for name in marked}


def unbeaten(monkeypatch, **candidates):
    """The unbeaten ones of candidates with this status, estimate, and mean and deviation of their seconds."""
    board = [
        {"candidate": name, "status": status, "estimate": estimate, "lower": None, "upper": None}
        for name, (status, estimate, *_) in candidates.items()
    ]
    texts = {
        name: CandidateTexts(
            model="m",
            texts=25,
            sums=(0.0, 25 * 9.0, 25 * mean),
            squares=(0.0, 25 * 81.0, 25 * (mean**2 + deviation**2), 0.0, 0.0, 25 * 9 * mean),
            timed=0,
            latencies=(0.0, 0.0),
        )
        for name, (_, _, mean, deviation) in candidates.items()
    }
    rounds = {"not-better": 0}  # all others have their end from the status alone
    out = {row["candidate"] for row in board if is_out(row["status"], rounds.get(row["status"]))}
    monkeypatch.setattr(pareto_module, "names_out", lambda *_: out)
    monkeypatch.setattr(pareto_module, "leaderboard", lambda *_: board)
    monkeypatch.setattr(pareto_module, "texts_by_candidate", lambda *_: texts)
    monkeypatch.setattr(pareto_module, "price_weights", lambda *_: None)
    look = SimpleNamespace(session=None, record=SimpleNamespace(id=1, spec={}))
    return {row["candidate"] for row in pareto(look) if row["pareto"]}


@pytest.mark.parametrize(
    ("candidates", "marked"),
    [
        # Twice as fast, and not within noise.
        ({"a": ("best", 0.9, 2.0, 0.5), "b": ("active", 0.7, 1.0, 0.5)}, {"a", "b"}),
        # Faster by less than two standard errors, which are 0.28.
        ({"a": ("best", 0.9, 2.0, 0.5), "b": ("active", 0.7, 1.75, 0.5)}, {"a"}),
        ({"a": ("best", 0.9, 2.0, 0.5), "b": ("active", 0.7, 1.7, 0.5)}, {"a", "b"}),
        # As good, and slower by noise alone.
        ({"a": ("tied", 0.9, 2.0, 0.5), "b": ("tied", 0.9, 2.2, 0.5)}, {"a", "b"}),
        ({"a": ("tied", 0.9, 2.0, 0.5), "b": ("tied", 0.9, 2.4, 0.5)}, {"a"}),
        # Fast, and out; who is out beats nobody.
        ({"a": ("best", 0.9, 2.0, 0.5), "b": ("eliminated", 0.7, 1.0, 0.5)}, {"a"}),
        ({"a": ("best", 0.9, 2.0, 0.5), "b": ("not-better", 0.0, 1.0, 0.5)}, {"a"}),
        ({"a": ("infeasible", 0.9, 2.0, 0.5), "b": ("best", 0.7, 2.0, 0.5)}, {"b"}),
        ({"a": ("baseline", 0.9, 2.0, 0.5), "b": ("worse", 0.7, 1.0, 0.5)}, {"a"}),
        ({"a": ("best", 0.9, 2.0, 0.5), "b": ("active", None, 1.0, 0.5)}, {"a"}),
    ],
)
def test_who_is_out_or_better_by_noise_alone_is_not_unbeaten(monkeypatch, candidates, marked):
    assert unbeaten(monkeypatch, **candidates) == marked


def test_without_prices_tokens_stand_for_the_cost(asked):
    rows = asked(pareto)
    assert {row["cost"] for row in rows} == {None}
    assert {row["candidate"]: row["pareto"] for row in rows} == {
        row["candidate"]: row["candidate"].startswith("one") for row in rows
    }


METRICS = [
    {"name": "json", "judge": {"type": "json-schema", "schema": {}, "no_answer": "unscored"}},
    {"name": "again", "judge": {"type": "contains"}},
]


def test_further_judges_are_reported_and_decide_nothing(asked):
    rows = asked(breakdowns.metrics, metrics=METRICS)
    assert [row["metric"] for row in rows] == ["again"] * 4 + ["json"] * 4
    board = {row["candidate"]: row["estimate"] for row in asked.again(pareto)}
    again = [row for row in rows if row["metric"] == "again"]
    assert {row["candidate"]: row["mean"] for row in again} == board
    assert all((row["lower"], row["upper"]) == wilson(row["mean"], N_EXAMPLES) for row in again)
    # Letters are no JSON.
    assert {(row["scored"], row["unscored"], row["mean"]) for row in rows if row["metric"] == "json"} == {
        (0, N_EXAMPLES, None)
    }
    assert len(asked.again(standard.metrics).table) == 8
    prune(asked.database, "tagged")
    with asked.database.reading() as session:
        assert session.connection().exec_driver_sql("SELECT count(*) FROM metrics").scalar() == 0


def test_of_several_texts_the_mean_of_a_metric_counts(asked, monkeypatch):
    monkeypatch.setitem(PROVIDERS, "guesses", SCRIPTED["wavers"])
    ways = [{"name": "warm", "temperature": 1.0}]
    changes = {"samples": {"n": 3, "reduce": "pass@3"}, "metrics": METRICS[1:], "generate_configs": ways}
    rows = asked(breakdowns.metrics, **changes)
    with asked.database.reading() as session:
        means = session.connection().exec_driver_sql(
            "SELECT k.name, avg(o.score) FROM outputs o JOIN comparisons c ON c.id = o.comparison_id "
            "JOIN candidates k ON k.id = c.candidate_a_id GROUP BY k.name"
        )
        assert {row["candidate"]: row["mean"] for row in rows} == pytest.approx(dict(means.all()))
    assert any(0.0 < row["mean"] < 1.0 for row in rows)


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ([METRICS[1], METRICS[1]], "metrics: the name 'again' is used twice"),
        ([{"name": "m", "judge": {"type": "exakt"}}], "metrics[0].judge.type: unknown judge 'exakt'"),
        ([{"name": "m", "judge": {"type": "acc"}}], "metrics[0].judge.type: judge acc reads log-likelihoods"),
        ([{"name": "m", "judge": {"type": "exact", "cas": 1}}], "metrics[0].judge.cas: "),
    ],
)
def test_a_metric_that_cannot_be_made_is_refused_where_it_stands(tmp_path, monkeypatch, metrics, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError) as caught:
        check_campaign_file(str(written(tmp_path, metrics=metrics)))
    assert said in str(caught.value)


def test_metrics_are_part_of_what_a_campaign_is_and_their_functions_have_to_be_allowed(tmp_path):
    def spec(metrics):
        return CampaignSpec.model_validate(yaml.safe_load(written(tmp_path, metrics=metrics).read_text()))

    assert "metrics" not in spec(None).identity()
    found = spec(METRICS)
    assert CampaignSpec.from_stored(found.identity(), found.execution_fields(), found.storage) == found
    checked = check_campaign_file(str(written(tmp_path, metrics=METRICS)))
    assert set(checked.identity()["metric_code"]) == {"json", "again"}
    own = spec([{"name": "mine", "judge": {"type": "python", "path": "judge.py:score"}}])
    [permission] = [each for each in permissions(own, tmp_path) if "Python file" in each.text]
    assert permission.keys == ("metrics[0].judge.path",)


@pytest.fixture
def grown(tmp_path, monkeypatch):
    """A campaign whose examples are tagged with their number, and the rounds after which scores are read."""
    campaign = store_campaign(new_database(tmp_path / "grown.db"))
    read, ask = [], tag_counts.outcomes_since
    monkeypatch.setattr(tag_counts, "outcomes_since", lambda *asked: read.append(asked[-1]) or ask(*asked))
    return campaign, replace(campaign.record, execution={"tags": ["input"]}), read


def tell(campaign, number, arm, example, outcome):
    campaign.finish(campaign.plan(number, [arm], [example]), [outcome], best=arm)


def test_a_later_look_reads_the_rounds_since_and_counts_what_a_first_one_would(grown):
    campaign, record, read = grown
    counts = TagCounts()

    def looks(candidate):
        with campaign.database.reading() as session:
            one = tags(Look(session, record), candidate=candidate, counts=counts)
            assert one == tags(Look(session, record), candidate=candidate)  # which reads all
        return [(row["value"], row["scored"], row["unscored"], row["mean"]) for row in one if row["scored"]]

    assert looks("a") == []
    for number, (example, outcome) in enumerate([(0, 1.0), (1, 0.5)]):
        tell(campaign, number, 0, example, outcome)
    tell(campaign, 2, 1, 0, 0.25)
    assert looks("a") == [("0", 1, 0, 1.0), ("1", 1, 0, 0.5)]
    tell(campaign, 3, 0, 2, None)
    tell(campaign, 4, 0, 3, 0.75)
    tell(campaign, 5, 1, 3, 1.0)
    assert looks("a") == looks("a") == [("0", 1, 0, 1.0), ("1", 1, 0, 0.5), ("3", 1, 0, 0.75)]
    assert looks("b") == [("0", 1, 0, 0.25), ("3", 1, 0, 1.0)]
    # Of two candidates in turn nothing is kept. Every second reading is that of a first look.
    assert looks("a") == [("0", 1, 0, 1.0), ("1", 1, 0, 0.5), ("3", 1, 0, 0.75)]
    assert read[::2] == [None, None, 2, 5, None, None]
    assert set(read[1::2]) == {None}


def test_another_past_or_other_tags_are_counted_from_the_start(grown):
    campaign, record, read = grown
    counts = TagCounts()
    tell(campaign, 0, 0, 0, 1.0)
    with campaign.database.reading() as session:
        tags(Look(session, record), candidate="a", counts=counts)
    with campaign.database.writing() as session:
        session.execute(text("UPDATE comparisons SET outcome = 0.0"))
        session.execute(text("UPDATE decisions SET decided_at = '2026-02-02 00:00:00.000000'"))
    with campaign.database.reading() as session:
        assert tags(Look(session, record), candidate="a", counts=counts)[0]["mean"] == 0.0
        other = replace(record, execution={"tags": ["missing"]})
        assert [row["value"] for row in tags(Look(session, other), candidate="a", counts=counts)] == ["none"]
    assert read == [None, None, None]
