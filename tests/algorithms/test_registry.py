import subprocess
import sys

import numpy as np
import pytest
from selector_worlds import BestMeanWorld

from winnow.algorithms.errors import InvalidParameter, SelectorNotLoadable, UnknownParameter, UnknownSelector
from winnow.algorithms.registry import BASELINES, SELECTORS, create_selector, describe, selector_names

THIRD_PARTY = '''
from typing import Literal, TypeVar

import numpy as np
from typing_extensions import TypeAliasType

from winnow.algorithms.papers.best_mean.ucb_e import UcbE

Kind = TypeVar("Kind", bound=np.generic)
Rows = TypeAliasType("Rows", np.ndarray[tuple[int, ...], np.dtype[Kind]], type_params=(Kind,))
Pace = TypeAliasType("Pace", float | None)


class Eager(UcbE):
    """Always curious.

    Source: nobody (2026),
    nowhere.
    """

    objective = "best-mean"

    def __init__(
        self,
        setting,
        *,
        mood: Literal["keen", "bored"] = "keen",
        rows: Rows[np.float64] | None = None,
        pace: Pace = None,
    ):
        super().__init__(setting, a=100.0)


class Homeless:
    """Says nothing of its objective."""
'''


@pytest.fixture
def third_party(tmp_path, monkeypatch):
    (tmp_path / "eager_selectors.py").write_text(THIRD_PARTY)
    info = tmp_path / "eager-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: eager\nVersion: 1.0\n")

    def install(**names):
        lines = [f"{name.replace('_', '-')} = eager_selectors:{cls}" for name, cls in names.items()]
        (info / "entry_points.txt").write_text("\n".join(["[winnow.selectors]", *lines]))

    monkeypatch.syspath_prepend(tmp_path)
    yield install
    sys.modules.pop("eager_selectors", None)


def test_the_registry_knows_the_selectors_of_the_first_paper():
    assert {"ucb-e", "row-mean", "filled-subset"} <= set(selector_names("best-mean"))
    assert selector_names("no-such-objective") == []
    assert selector_names("best-duel", baselines=False) == ["llm-po", "llm-po-bt"]
    assert {name for names in SELECTORS.values() for name in names} >= BASELINES


def test_the_registry_knows_the_selectors_of_duels():
    known = {"llm-po", "llm-po-bt", "round-robin", "random-pair", "eps-greedy", "thompson", "rucb"}
    assert known <= set(selector_names("best-duel"))


@pytest.mark.parametrize("name", selector_names())
def test_every_description_has_a_sentence_a_source_and_defaults(name):
    description = describe(name)
    assert description.summary.endswith(".")
    assert description.source
    assert description.objective in SELECTORS
    assert {parameter.name for parameter in description.parameters} >= {"batch_size", "budget", "delta"}


def test_a_description_lists_own_parameters_before_common_ones():
    first, *others = describe("ucb-e").parameters
    assert (first.name, first.type, first.default) == ("a", float, 1.0)
    assert [other.name for other in others[:4]] == ["variant", "first_pull", "pull", "batch_size"]
    assert (others[3].type, others[3].default) == (int, 32)


def test_an_unknown_name_is_refused_with_the_nearest_and_the_known_ones():
    with pytest.raises(UnknownSelector, match=r"'ucbe' \(did you mean 'ucb-e'\?\); known: .*row-mean"):
        create_selector("ucbe", n_arms=2, n_examples=2)


def test_an_unknown_name_for_an_objective_is_refused_with_the_known_ones_of_that_and_of_others(third_party):
    third_party(eager="Eager")
    with pytest.raises(UnknownSelector) as refused:
        describe("llm-pe", "best-duel")
    assert refused.value.known == tuple(sorted([*SELECTORS["best-duel"], "eager"]))
    with pytest.raises(UnknownSelector) as refused:
        describe("llm-pe")
    assert refused.value.known == tuple(sorted(selector_names()))


def test_an_unknown_parameter_is_refused_with_the_accepted_ones():
    with pytest.raises(UnknownParameter, match=r"no parameter 'batchsize' \(did you mean 'batch_size'\?\)"):
        create_selector("ucb-e", n_arms=2, n_examples=2, batchsize=3)
    with pytest.raises(
        UnknownParameter, match=r"'row-mean' has no parameter 'a'; it accepts: variant, batch_size"
    ):
        create_selector("row-mean", n_arms=2, n_examples=2, a=1.0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"a": "1"}, "a must be a number, got '1'"),
        ({"a": -1.0}, "a must be non-negative and finite, got -1.0"),
        ({"a": float("nan")}, "a must be non-negative and finite, got nan"),
        ({"batch_size": True}, "batch_size must be an integer, got True"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"budget": 2.5}, "budget must be an integer or None, got 2.5"),
        ({"budget": 0}, "budget must be at least 1 or None, got 0"),
        ({"delta": 1.0}, r"delta must be in \(0, 1\) or None, got 1.0"),
        ({"epsilon": -0.1}, r"epsilon must be in \[0, 1\), got -0.1"),
        ({"max_unscored": 2}, r"max_unscored must be in \[0, 1\], got 2"),
        ({"n_arms": 1}, "n_arms must be at least 2 to compare, got 1"),
        ({"n_arms": 2.0}, "n_arms must be an integer, got 2.0"),
        ({"n_examples": 0}, "n_examples must be at least 1, got 0"),
    ],
)
def test_a_bad_value_is_refused_early_and_shown(params, message):
    with pytest.raises(InvalidParameter, match=f"^{message}$"):
        create_selector("ucb-e", **{"n_arms": 3, "n_examples": 4, **params})


def test_what_is_no_name_is_refused():
    with pytest.raises(InvalidParameter, match="name must be a string, got None"):
        create_selector(None, n_arms=2, n_examples=3)


def test_a_third_party_joins_by_an_entry_point(third_party):
    third_party(eager="Eager")
    assert "eager" in selector_names("best-mean")
    description = describe("eager")
    assert (description.summary, description.source) == ("Always curious.", "nobody (2026), nowhere.")
    world = BestMeanWorld()
    selector = world.selector("eager", mood="bored")
    assert sum(len(batch) for batch, _ in world.rounds(selector)) == world.n_outcomes
    with pytest.raises(InvalidParameter, match="mood must be 'keen' or 'bored', got 'sad'"):
        world.selector("eager", mood="sad")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rows": [[1.0]]}, r"rows must be an array or None, got \[\[1.0\]\]"),
        ({"pace": "slow"}, "pace must be a number or None, got 'slow'"),
    ],
)
def test_a_bad_value_is_refused_by_the_type_that_a_name_stands_for(third_party, params, message):
    third_party(eager="Eager")
    world = BestMeanWorld()
    with pytest.raises(InvalidParameter, match=message):
        world.selector("eager", **params)
    world.selector("eager", rows=np.zeros((1, 1)), pace=1.5)
    world.selector("eager", rows=None, pace=None)


def test_a_third_party_cannot_take_over_a_name_of_ours(third_party):
    third_party(ucb_e="Eager")
    assert describe("ucb-e").parameters[0].name == "a"
    assert selector_names().count("ucb-e") == 1


def test_a_third_party_that_cannot_be_used_says_why(third_party):
    third_party(absent="Absent", homeless="Homeless")
    with pytest.raises(SelectorNotLoadable, match=r"'absent' \(eager_selectors:Absent\).*AttributeError"):
        describe("absent")
    with pytest.raises(SelectorNotLoadable, match="`objective` must be one of best-mean"):
        describe("homeless")


def test_looking_at_the_names_imports_nothing_heavy():
    code = (
        "import sys, winnow.algorithms.registry as r; r.selector_names();"
        "print([name for name in ('scipy', 'torch', 'winnow.algorithms.best_mean') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_names_are_unique_across_objectives():
    names = [name for of_objective in SELECTORS.values() for name in of_objective]
    assert sorted(names) == sorted(set(names))
