"""Whole campaigns of options put together at random, on a model whose every score is known beforehand."""

import json
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from campaign_processes import history
from cases import settles
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries
from stored_campaigns import copy_tables
from without_prefect import leave_prefect_out

import winnow
from winnow.algorithms.state import plugin_registry
from winnow.flows.reports.summary import status_of
from winnow.tasks.engines.errors import EngineDied
from winnow.tasks.engines.protocol import Completion
from winnow.tasks.errors import SpecError

NONE = "?"
"""What a model writes that has no score."""

GROUPS = "abc"


@dataclass
class Model:
    """Writes down what each candidate scores on an example, and dies now and then."""

    texts: dict[str, str]
    """By prompt."""
    identity: str = "known 1"
    calls: int = 0
    deaths: range = range(0)
    """Numbers of the calls at which it dies."""

    def generate(self, requests):
        self.calls += 1
        if self.calls - 1 in self.deaths:
            raise EngineDied("known", "it was its time")
        return [self._answer(request.prompt) for request in requests]

    def _answer(self, prompt):
        text = self.texts[prompt]
        return Completion(text=text, finish_reason="stop", input_tokens=1, output_tokens=1, seconds=0.001)

    def close(self):
        pass


def first_number(output, targets):
    """What is written first, if anything is."""
    return None if output == NONE else float(output.split()[0])


def second_number(output, targets):
    """What is written second, if anything is."""
    return None if output == NONE else float(output.split()[1])


@pytest.fixture(scope="module")
def models():
    """The model that campaigns ask next, as the value of "now"."""
    found = {}

    def known(model, settings):
        return found["now"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugin_registry, "_registered", {})
        leave_prefect_out(patch)
        copy_tables(patch)
        winnow.engine(known)
        winnow.judge(first_number)
        winnow.judge(second_number)
        yield found


@dataclass
class Drawn:
    """A campaign, and all that its candidates score."""

    spec: dict
    rows: list[dict]
    texts: dict[str, str]

    @property
    def names(self):
        return [each["name"] for each in self.spec["prompts"]]

    def told(self, name, judge):
        """By a judge of one candidate: shape (N,), what has none at its worst."""
        found = [judge(self.texts[f"{name} {row['input']}"], []) for row in self.rows]
        return np.array([0.0 if each is None else each for each in found])

    def worth(self, name):
        """What candidates are compared by."""
        scores, groups = self.told(name, first_number), self.spec.get("groups")
        if groups is None:
            return scores.mean()
        of = np.array([row["group"] for row in self.rows])
        means = np.array([scores[of == each].mean() for each in np.unique(of)])
        sizes = np.array([(of == each).sum() for each in np.unique(of)])
        if groups["objective"] == "worst":
            return means.min()
        return np.average(means, weights=sizes if groups["weights"] == "size" else None)

    def may_win(self, name):
        """Whether it meets what it has to."""
        least = [each["at_least"] for each in self.spec.get("constraints", ())]
        return all(self.told(name, second_number).mean() >= each for each in least)


SELECTORS = (
    "champion",
    "champion",
    "champion",
    "race",
    "ucb-e",
    "row-mean",
    "halving",
    "filled-subset",
    "pulse",
)

VALID = [{"name": "valid", "judge": {"type": "second_number"}}]

OPTIONS = (
    {"streaming": False},
    {"lookahead": 1},
    {"lookahead": 3},
    {"holdout": 0.3},
    {"groups": {"by": "group", "objective": "worst"}},
    {"groups": {"by": "group", "objective": "mean", "weights": "size"}},
    {"metrics": VALID, "constraints": [{"metric": "valid", "at_least": 0.8}]},
    {"selector": {"name": "champion", "params": {"top_m": 2}}},
    {"selector": {"name": "champion", "params": {"start": "race"}}},
    {"selector": {"name": "champion", "params": {"dropping": "reserved"}}},
)


def drawn_by(number):
    """A few candidates on a few examples, and options that may or may not go together."""
    rng = np.random.default_rng(number)

    def one_of(*values):
        return values[rng.integers(len(values))]

    names = [f"p{number}" for number in range(one_of(2, 3, 5))]
    rows = [{"input": f"e{number}", "group": one_of(*GROUPS)} for number in range(one_of(3, 8, 20, 40))]
    texts = _texts(
        rng, names, rows, unscored=one_of(0.0, 0.0, 0.3, 1.0), levels=one_of([0.0, 1.0], [0.25, 0.5])
    )
    grid, batch = len(names) * len(rows), one_of(1, 5, 16, 64)
    budget = max(batch, one_of(grid, grid // 2, grid // 4, 2 * grid))
    spec = {
        "name": "drawn",
        "objective": "best-mean",
        "seed": int(rng.integers(100)),
        "models": [{"name": "m", "provider": "known", "model": "known/m"}],
        "prompts": [{"name": name, "template": name + " {{ input }}"} for name in names],
        "judge": {"type": "first_number"},
        "selector": {"name": one_of(*SELECTORS)},
        "batch_size": batch,
        "stopping": {"budget": budget, "delta": one_of(0.05, 0.2, None), "epsilon": one_of(0.0, 0.0, 0.1)},
        "execution": {"max_restarts": 1, "group_size": one_of(1, 4, 64)},
        "fail_on_error": 1.0,
    }
    for options in OPTIONS:
        if rng.random() < 0.15:
            spec |= options
    return Drawn(spec, rows, texts)


def _texts(rng, names, rows, *, unscored, levels):
    """What is written to each prompt; with `unscored` at 1 nothing has a score."""
    found = {}
    for name in names:
        quality, missing = rng.random(), max(unscored == 1.0, rng.random() * unscored)
        for row in rows:
            value = rng.choice(levels) if rng.random() < 0.5 else float(rng.random() < quality)
            said = f"{value} {float(rng.random() < 0.9)}"
            found[f"{name} {row['input']}"] = NONE if rng.random() < missing else said
    return found


@tries(8)
@given(st.integers(0, 2**32).map(drawn_by), st.integers(0, 40), st.integers(2, 4))
def test_what_is_exact_is_true_and_one_that_breaks_off_comes_to_the_same(models, drawn, breaks_at, deaths):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        whole, broken = Path(folder, "whole"), Path(folder, "broken")
        found = settles(_run, models, drawn, whole, range(0), one_line=False)
        if isinstance(found, SpecError):
            return  # of options that do not go together
        first = breaks_at % max(1, models["now"].calls)
        settles(_run, models, drawn, broken, range(first, first + deaths))
        resumed = _run(models, drawn, broken, range(0))
        assert history(broken) == history(whole)
        assert resumed.answer.outcome == found.answer.outcome is not None
        assert status_of(_url(whole), "drawn").is_settled
        _require_true(drawn, found.answer)
        assert found.comparisons()["outcome"].notna().sum() == _count(whole, "outcome")
        assert len(found.leaderboard()) == len(drawn.names)


def _run(models, drawn, folder, deaths):
    folder.mkdir(exist_ok=True)
    data = folder / "data.jsonl"
    data.write_text("".join(json.dumps({"id": row["input"], **row}) + "\n" for row in drawn.rows))
    models["now"] = Model(drawn.texts, deaths=deaths)
    dataset = {"path": str(data), "fields": {"id": "id", "input": "input", "target": None}}
    log_folder = {"log_folder": str(folder / "logs")}
    execution = drawn.spec["execution"] | log_folder
    spec = drawn.spec | {"dataset": dataset, "execution": execution}
    return winnow.run(spec, storage=_url(folder), trust=True)


def _url(folder):
    return f"sqlite:///{folder / 'winnow.db'}"


def _count(folder, column):
    with closing(sqlite3.connect(folder / "winnow.db")) as connection:
        return connection.execute(f"SELECT count({column}) FROM comparisons").fetchone()[0]


def _require_true(drawn, answer):
    """That nobody is better than who is the best for certain."""
    if answer.claim.kind != "exact" or "holdout" in drawn.spec or answer.top_m > 1:
        return  # of a part of the examples, or of several candidates
    left = {each.name.split("/")[1] for each in answer.candidates if each.status != "dropped"}
    able = {name for name in left if drawn.may_win(name)}
    if answer.best is None:
        assert not able
        return
    best = answer.best.split("/")[1]
    assert best in able
    assert drawn.worth(best) >= max(map(drawn.worth, able)) - answer.epsilon - 1e-9
