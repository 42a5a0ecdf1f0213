"""What a terminal shows of a campaign while it runs."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from winnow.algorithms.decision import Excess
from winnow.flows.run.progress import LiveProgress, PlainProgress, best_so_far, duration

NAMES = [
    "org/a-model-with-a-long-name-70b-instruct/a-prompt-with-a-long-name/greedy",
    "[red]b/\u202ep",
    "c/p",
]


def campaign(objective="best-mean", labels=None, in_flight=0, **loading):
    """As much of a campaign as is shown."""
    spec = SimpleNamespace(
        objective=objective,
        selector=SimpleNamespace(name="champion"),
        stopping=SimpleNamespace(delta=0.05, epsilon=0.01),
        certify=SimpleNamespace(baseline=None),
        execution=SimpleNamespace(canaries=True),
    )
    named = [SimpleNamespace(name=each) for each in NAMES]
    checked = SimpleNamespace(spec=spec, most=600, grid=1200, candidates=named, models_to_ask=[])
    return SimpleNamespace(
        checked=checked,
        record=SimpleNamespace(name="letters", spec={}),
        engines=SimpleNamespace(loading=loading, stalled=7.0),
        contacts=SimpleNamespace(by_name={}),
        known=None,
        allowance=SimpleNamespace(answered=0),
        n_in_flight=in_flight,
        head_start=None,
        texts_in_use={},
        labels_used=labels,
        database=None,
    )


def decision(
    estimates=(0.5, 0.75, np.nan),
    status=("active", "active", "eliminated"),
    best=1,
    *,
    stop=False,
    ahead=None,
):
    differences = None if ahead is None else SimpleNamespace(against=1, upper=np.array(ahead))
    return SimpleNamespace(
        best=best,
        stop=stop,
        differences=differences,
        excess=None,
        estimates=np.array(estimates),
        lower=np.array(estimates) - 0.25,
        upper=np.array(estimates) + 0.125,
        status=status,
    )


def shown(progress, width=80):
    out = io.StringIO()
    Console(file=out, width=width).print(progress)
    return out.getvalue().splitlines()


def test_what_was_asked_before_the_flow_began_is_in_rate_and_seconds(monkeypatch):
    clock = SimpleNamespace(now=1_000.0)
    monkeypatch.setattr("winnow.flows.run.progress.time.monotonic", lambda: clock.now)
    seen = campaign()
    seen.head_start = SimpleNamespace(began=960.0)
    progress = PlainProgress(SimpleNamespace(asked=False))
    progress.begin(seen)
    clock.now, progress.comparisons = 1_010.0, 100
    assert (progress.elapsed, progress.pace) == (50.0, "2/s")
    seen.head_start = None
    progress.begin(seen)
    assert progress.elapsed == 0.0


class NothingToCheck:
    def new(self, *_, **__):
        return []


def progress_of(running, found=None):
    progress = LiveProgress(SimpleNamespace(asked=False))
    progress._early_warnings = NothingToCheck()
    progress.begun(running)
    if found is not None:
        running.allowance.answered = 150
        progress.round_done(running, SimpleNamespace(arms=[0, 1, 1], number=0), found)
    return progress


@pytest.mark.parametrize(("selector", "word"), [("r-eval", "certified"), ("eval", "best")])
def test_a_plain_mean_certifies_nobody(selector, word):
    running = campaign("certify", labels=3)
    running.checked.spec.selector.name = selector
    running.checked.spec.stopping.epsilon = 0.0
    assert best_so_far(running, decision()).startswith(f"{word} [red]b")


@pytest.mark.parametrize(("epsilon", "word"), [(0.0, "best"), (0.05, "leading")])
def test_with_an_epsilon_the_first_so_far_is_not_called_the_best(epsilon, word):
    running = campaign()
    running.checked.spec.stopping.epsilon = epsilon
    assert best_so_far(running, decision()).startswith(f"{word} [red]b")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (("unfit", "infeasible", "unfit"), "no candidate meets the constraints"),
        (("unfit", "active", "unfit"), "no best candidate yet"),
        (("unfit", "dropped", "unfit"), "no best candidate yet"),
    ],
)
def test_where_all_miss_the_constraints_a_round_says_so(status, said):
    assert best_so_far(campaign(), decision(status=status, best=None)) == said


@pytest.mark.parametrize(("value", "written"), [(0.8875, "0.888 [0.888, 0.888]"), (0.99951, "0.9995 ")])
def test_an_estimate_is_written_as_its_interval_and_the_answer_are(value, written):
    known = decision((0.1, value, 0.1))
    known.lower = known.upper = known.estimates
    assert written in best_so_far(campaign(), known)


def test_before_anything_is_known_it_says_what_is_waited_for():
    progress = LiveProgress(SimpleNamespace(asked=False))
    assert shown(progress) == ["starting Prefect and the first engine ..."]
    lines = shown(progress_of(campaign(**{"a-model": 12.3})))
    assert lines[0] == "letters: best-mean by champion, delta 0.05"
    assert "0 of at most 600 comparisons" in lines[1]
    assert lines[2] == "loading a-model, 12 s"
    assert shown(progress_of(campaign(in_flight=3)))[2] == "3 rounds in flight"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "no candidate is better than c/p by more than 0.043 (95% confidence)"),
        (
            {"constraints": [{}]},
            "no candidate that meets the constraints is better than c/p by more than 0.043",
        ),
        ({"top_m": 3}, "at most 2 candidates are better than c/p by more than 0.043 (95% confidence)"),
    ],
)
def test_it_says_how_much_better_another_can_be_instead_of_the_gap(spec, said):
    running, found = campaign(), decision(ahead=[0.25, np.nan, 0.1])
    running.record.spec = {**spec, "selector": {"params": {"top_m": spec.pop("top_m", 1)}}}
    found.excess = Excess(over=2, most=0.043, delta=0.05)
    (line,) = [line for line in shown(progress_of(running, found), 200) if "in question" in line]
    assert said in line
    assert "ahead by" not in line


@pytest.mark.parametrize("width", [60, 80, 120])
def test_it_says_how_far_it_is_and_who_leads(width):
    lines = shown(progress_of(campaign(), decision()), width)
    assert all(cell_len(line) <= width for line in lines)
    text = "\n".join(lines)
    assert "2 of 3 candidates in question" in text
    heading, first, second, third = lines[-4:]
    assert heading.split() == ["candidate", "mean", "interval", "now", "status"]
    assert first.split()[1:] == ["0.750", "[0.500,", "0.875]", "+2"]
    assert second.split()[-4:] == ["0.500", "[0.250,", "0.625]", "+1"]
    assert third.split() == ["c/p", "eliminated"]


def test_where_groups_are_compared_it_names_what_is_estimated():
    running = campaign()
    running.record.spec = {"groups": {"by": "level", "objective": "worst", "weights": "equal"}}
    lines = shown(progress_of(running, decision()))
    assert any("worst-group mean" in line for line in lines)


def test_the_numbers_of_duels_are_named_as_in_their_answers():
    lines = shown(progress_of(campaign("best-duel"), decision()))
    assert lines[-4].split() == ["candidate", "worst", "preference", "interval", "now", "status"]


def test_the_rest_of_the_budget_is_an_upper_limit_of_time():
    (line,) = [line for line in shown(progress_of(campaign(), decision()), 120) if "at most 600" in line]
    assert "150 of at most 600 comparisons" in line
    assert line.rstrip().endswith(" more")


def test_no_time_is_left_once_the_question_is_settled():
    settled = decision(status=("eliminated", "best", "eliminated"), stop=True)
    text = "\n".join(shown(progress_of(campaign(), settled), 120))
    assert "150 of at most 600 comparisons" in text
    assert "0 of 3 candidates in question" in text
    assert "more" not in text.replace("any more", "")


@pytest.mark.parametrize(
    ("ahead", "best", "said"),
    [
        (
            (0.25, np.nan, 0.9),
            1,
            "2 of 3 candidates in question; none of them is ahead by more than 0.250, "
            "decided at 0.01 or earlier",
        ),
        ((0.0, np.nan, 0.9), 1, "2 of 3 candidates in question"),  # nothing is left of the gap
        ((0.25, np.nan, 0.9), 0, "2 of 3 candidates in question"),  # held against who leads no longer
        ((np.nan, np.nan, np.nan), 1, "2 of 3 candidates in question"),
    ],
)
def test_the_gap_that_is_left_is_that_of_those_in_question(ahead, best, said):
    lines = shown(progress_of(campaign(), decision(best=best, ahead=ahead)), 120)
    assert said in [line.rstrip() for line in lines]


def test_texts_are_counted_before_their_round_is_finished():
    running = campaign()
    progress = progress_of(running)
    running.texts_in_use = {4: {1: "x", 2: "y"}, 5: {3: "z"}}
    assert "3 outputs of the rounds in flight" in [line.rstrip() for line in shown(progress)]


def test_the_rate_leaves_out_the_time_in_which_models_were_loaded(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    running = campaign(**{"a-model": 12.3})
    progress = progress_of(running)
    clock[0] += 70.0
    running.engines.stalled += 60.0
    running.allowance.answered = 20
    progress.round_done(running, SimpleNamespace(arms=[0, 1], number=0), decision())
    assert (progress.elapsed, progress.stalled, progress.rate) == (70.0, 60.0, 2.0)


def test_the_rate_of_plain_lines_leaves_it_out_as_well(monkeypatch, capsys):
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    running = campaign()
    running.checked.dataset = SimpleNamespace(examples=[])
    running.other_budgets = ()
    progress = PlainProgress(SimpleNamespace(asked=False))
    progress._early_warnings = NothingToCheck()
    progress.begun(running)
    clock[0] += 70.0
    running.engines.stalled += 60.0
    running.allowance.answered = 20
    progress.round_done(running, SimpleNamespace(arms=[0, 1], number=0), decision())
    assert capsys.readouterr().err.splitlines()[-1].endswith(", 2/s, 70 s")


@pytest.mark.parametrize(
    ("told", "seconds", "pace"),
    [
        (0, 5.0, "0/s"),
        (4, 53.0, "0.075/s"),
        (19, 8.0, "2.4/s"),
        (996, 100.0, "10/s"),
        (12_300, 10.0, "1230/s"),
    ],
)
def test_slow_campaigns_have_a_pace_too(monkeypatch, told, seconds, pace):
    """The reproduction: large models on a processor made "0/s", round after round."""
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    running = campaign()
    progress = progress_of(running)
    shown(progress)
    clock[0] += seconds
    running.allowance.answered = told
    progress.round_done(running, SimpleNamespace(arms=[0, 1], number=0), decision())
    assert progress.pace == pace
    assert f" {pace}" in "\n".join(shown(progress))


def test_certificates_count_labels_and_begin_with_the_least_risk():
    lines = shown(progress_of(campaign("certify", labels=20), decision(best=0)), 120)
    assert any("20 of at most 600 labels" in line for line in lines)
    assert lines[-4].split()[:2] == ["candidate", "risk"]
    assert [line.split()[1] for line in lines[-3:-1]] == ["0.500", "0.750"]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (89.0, "89 s"), (90.0, "2 min"), (5399.0, "90 min"), (5400.0, "1.5 h")],
)
def test_times_are_said_in_the_unit_that_suits_them(seconds, said):
    assert duration(seconds) == said


class Zeros:
    def new(self, database, campaign, *, comparisons, stop, statuses):
        assert (comparisons, stop) == (150, False)
        return [SimpleNamespace(kind="all-zero", sentence="all 150 scores are 0: compare some outputs")]


def test_what_to_check_is_told_as_it_is_found(capsys):
    running = campaign()
    for progress in (LiveProgress(SimpleNamespace(asked=False)), PlainProgress(SimpleNamespace(asked=False))):
        running.allowance.answered, running.other_budgets = 0, []
        running.checked.dataset = SimpleNamespace(examples=[])
        progress.begun(running)
        progress._early_warnings = Zeros()
        running.allowance.answered = 150
        progress.round_done(running, SimpleNamespace(arms=[0, 1, 1], number=0), decision())
        if isinstance(progress, LiveProgress):
            assert "check: all 150 scores are 0: compare some outputs" in shown(progress)
    assert capsys.readouterr().err.splitlines()[-1] == "check: all 150 scores are 0: compare some outputs"
