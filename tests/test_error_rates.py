"""The benchmark of error rates: what it keeps, what it begins anew and what it takes for a broken promise."""

import ast
import csv
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from hashlib import sha256
from importlib import invalidate_caches
from importlib.util import find_spec
from itertools import count, islice
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from tests.benchmarks.errors import runs, sources
from tests.benchmarks.errors.__main__ import main
from tests.benchmarks.errors.catalogue import all_cells
from tests.benchmarks.errors.cells import Cell, play
from tests.benchmarks.errors.runs import Total, keep, totals
from tests.benchmarks.errors.verdicts import verdict

CELLS = all_cells(20_000, 2_000)


def cell_named(name):
    return next(cell for cell in CELLS if cell.name == name)


def test_cells_differ_in_name_and_in_what_their_runs_depend_on():
    assert len({cell.name for cell in CELLS}) == len(CELLS)
    assert len({sources.code_of(cell) for cell in CELLS}) == len(CELLS)


def test_every_world_that_a_promise_has_to_stand_has_a_cell():
    names = [f"{cell.objective}: {cell.name}" for cell in CELLS]
    for objective, words in {
        "best-mean: champion": [
            "near tie",
            "tied",
            "one deviating example",
            "0%",
            "10%",
            "20%",
            "40%",
            "dropped",
        ],
        "champion: ": [
            *(
                "near ties",
                "anticorrelate",
                "deviating",
                "continuous",
                "rare large",
                "constant",
                "duplicates",
            ),
            *("missing", "dropped", "join", "history", "constraint", "2 arms", "300 arms"),
            *(f"delta {delta}" for delta in (0.2, 0.1, 0.05, 0.01)),
        ],
        "best-duel: round-robin, product": [
            "level",
            "near tie",
            "ties",
            "10%",
            "20%",
            "40%",
            "dropped",
            "cycle",
        ],
        "best-duel: llm-po": ["level", "near tie", "ties", "10%", "20%", "40%", "dropped", "cycle"],
        "best-duel, Bradley-Terry": [
            "unequal scale",
            "near tie",
            "ties",
            "10%",
            "40%",
            "dropped",
            "interaction",
        ],
        "certify": ["useful", "useless", "adversarial", "0%", "10%", "20%", "40%", "dropped"],
    }.items():
        for word in words:
            assert any(name.startswith(objective) and word in name for name in names), (objective, word)


WORLDS = {(cell.build.func, cell.build.args[:1]): cell.name for cell in CELLS if cell.selector != "llm-po-bt"}
"""A cell of each."""


@pytest.mark.parametrize("name", WORLDS.values())
def test_a_run_is_a_function_of_its_seed(name):
    cell = cell_named(name)
    assert play(cell, 3) == play(cell, 3)


def test_looking_at_every_decision_changes_no_run():
    for name in ("ucb-e, near tie", "llm-po, product, near tie, K = 2"):
        cell, seed = cell_named(name), 5
        of_world, of_outcomes, of_batches = (np.random.default_rng([seed, part]) for part in (1, 2, 3))
        scene = cell.build(of_world)
        while not scene.selector.decision().stop:
            batch = scene.selector.ask(of_batches)
            scene.selector.tell(batch, scene.outcomes(batch, of_outcomes))
        decision = scene.selector.decision()
        run = play(cell, seed)
        assert run.is_claimed == (decision.claim.kind in ("exact", "proven"))
        assert run.is_wrong == (run.is_claimed and scene.is_wrong(decision))


@pytest.mark.parametrize("name", [cell.name for cell in CELLS if cell.objective == "champion"][::4])
def test_without_intervals_a_champion_claims_the_same(name):
    cell = cell_named(name)
    for seed in range(100, 103):
        shown, unshown = play(cell, seed), play(runs._unshown(cell), seed)
        assert unshown[:3] == shown[:3]
        assert unshown.trace != shown.trace


def test_the_first_part_of_a_cell_is_played_with_its_intervals():
    cell = cell_named("epsilon apart, in steps, delta 0.2")
    trace = sha256(repr([play(cell, 0), play(cell, 1)]).encode()).hexdigest()
    assert runs._played(runs.Part(cell, 0, 2))[-2] == trace[: sources.DIGITS]


def edited(monkeypatch, module, old, new):
    """As if a module's file held something else."""
    path, read = Path(find_spec(module).origin), Path.read_bytes
    assert old in path.read_text()
    edit, text = path.read_text().replace(old, new).encode(), sources._text
    ast.parse(edit)
    monkeypatch.setattr(Path, "read_bytes", lambda self: edit if self == path else read(self))
    monkeypatch.setattr(
        sources, "_text", lambda each: text.__wrapped__(each) if each == module else text(each)
    )
    sources._code.cache_clear()


@pytest.fixture(autouse=True)
def _nothing_remembered():
    yield
    sources._code.cache_clear()


SELECTORS = ("ucb-e", "pulse", "round-robin", "r-autoeval-plus")


@cache
def codes_before():
    """Of a cell of each of some selectors, by selector, before anything is edited."""
    cells = {selector: next(cell for cell in CELLS if cell.selector == selector) for selector in SELECTORS}
    return {selector: (cell, sources.code_of(cell)) for selector, cell in cells.items()}


@pytest.mark.parametrize(
    ("module", "old", "new", "begins_anew"),
    [
        ("winnow.algorithms.best_mean.arm_status", "ROUNDING = 1e-9", "ROUNDING = 1e-8", {"ucb-e", "pulse"}),
        ("winnow.algorithms.papers.best_mean.pulse", "self._a = a", "self._a = 2 * a", {"pulse"}),
        ("winnow.algorithms.papers.best_duel_baselines", "argmin", "argmax", {"round-robin"}),
        ("winnow.algorithms.registry", "class Parameter", "class Parameters", set()),
        ("winnow.algorithms.route.policy", "class Policy", "class Politics", set()),
        ("winnow.algorithms.best_mean.arm_status", "# Means that differ by", "# other words", set()),
        (
            "winnow.algorithms.papers.best_mean.pulse",
            "UCB-E on predicted scores",
            "Something else",
            set(),
        ),
        ("winnow.algorithms.errors", "was already observed", "was observed before", set()),
        ("winnow.algorithms.errors", "ROUNDING = 1e-9", "ROUNDING = 1e-8", {*SELECTORS}),
        # imported by an address alone
        ("winnow.algorithms.papers.bradley_terry.bounds", "def supremum", "def suprema", {"round-robin"}),
        ("tests.benchmarks.errors.certify", "ABOVE = 1e-6", "ABOVE = 1e-5", {"r-autoeval-plus"}),
        ("tests.benchmarks.errors.page", "WIDTH = 110", "WIDTH = 100", set()),
        ("winnow.algorithms.champion.wealth", "import numpy as np", "import numpy", set()),
    ],
)
def test_runs_begin_anew_where_their_code_is_another_and_nowhere_else(
    monkeypatch, module, old, new, begins_anew
):
    before = codes_before()
    edited(monkeypatch, module, old, new)
    assert {each for each, (cell, code) in before.items() if sources.code_of(cell) != code} == begins_anew


PACKAGE, NUMBERS = "package_of_error_rates_", count()


@pytest.fixture
def code_in_a_package(tmp_path, monkeypatch):
    """The code of the class A in a package of some files, of which the first one defines it."""
    monkeypatch.syspath_prepend(tmp_path)

    def code(**files):
        package = f"{PACKAGE}{next(NUMBERS)}"
        monkeypatch.setattr(sources, "OWN", (*sources.OWN, package))
        for name, text in files.items():
            path = tmp_path / package / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            for folder in path.relative_to(tmp_path).parents[:-1]:
                (tmp_path / folder / "__init__.py").touch()
            path.write_text(text.replace("HERE", package))
        invalidate_caches()
        return sources._code(f"{package}.{next(iter(files)).replace('__', '.')}", "A")

    yield code
    for name in [each for each in sys.modules if each.startswith(PACKAGE)]:
        del sys.modules[name]


BASE, OTHER_BASE = "class Base:\n    rate = 1\n", "class Base:\n    rate = 2\n"
CLASS = "from HERE.{} import Base\n\n\nclass A(Base):\n    pass\n"


def test_a_module_that_is_moved_or_renamed_leaves_the_runs(code_in_a_package):
    before = code_in_a_package(main=CLASS.format("base"), base=BASE)
    assert before == code_in_a_package(entry=CLASS.format("papers.bases"), papers__bases=BASE)
    assert before == code_in_a_package(deep__entry=f'"""More words."""\n\n{CLASS.format("b")}', b=BASE)


def test_a_name_that_is_imported_from_another_module_begins_runs_anew(code_in_a_package):
    both = {"one": BASE, "two": OTHER_BASE}
    keeps_both = "from HERE.one import Base as First\nfrom HERE.two import Base as Second\n"
    codes = [code_in_a_package(main=keeps_both + CLASS.format(each), **both) for each in both]
    assert len({*codes, code_in_a_package(main=CLASS.format("one"), one=OTHER_BASE)}) == 3


def test_runs_begin_anew_where_arguments_are_others():
    one = cell_named("star, one arm, useful autoevaluator, 0% missing")
    other = Cell(
        name=one.name,
        objective=one.objective,
        selector=one.selector,
        build=partial(one.build.func, "one arm", "useful", 0.3, "star"),
        runs=one.runs,
        delta=one.delta,
    )
    assert sources.code_of(one) != sources.code_of(other)


def play_in_this_process(monkeypatch):
    monkeypatch.setattr(runs, "ProcessPoolExecutor", lambda jobs, _: ThreadPoolExecutor(jobs))


@pytest.fixture
def in_a_folder_without_pages(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    play_in_this_process(monkeypatch)


def ran(folder, *more):
    arguments = ["--out", str(folder), "--jobs", "1", "--only", "wsr, one arm, useful", *more]
    assert main(arguments) == 0
    return (folder / "errors.csv").read_text().splitlines()


def test_a_benchmark_that_was_stopped_goes_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    short = ran(tmp_path, "--runs", "150")  # in processes of its own, as whoever calls it has them
    play_in_this_process(monkeypatch)
    assert len(short) == 1 + 2 * 4  # 100 runs and 50 of each cell
    file = tmp_path / "errors.csv"
    torn = "\n".join(short[:-1]) + "\n" + short[-1][:-3]
    file.write_text(torn)
    whole = ran(tmp_path, "--runs", "150")
    assert whole[-1] == short[-1]
    longer = ran(tmp_path, "--runs", "200")
    assert longer[: len(whole)] == whole
    cells = [cell for cell in all_cells(200, 2) if "wsr, one arm, useful" in cell.name]
    for cell, total in ((cell, totals(file, cells)[cell.name]) for cell in cells):
        assert total.counts["runs"] == 200  # the parts of 50 do not count beside those of 100
        again = [play(cell, seed) for seed in range(200)]
        assert total.counts["claimed"] == sum(run.is_claimed for run in again)
        assert sum(total.wrong.values()) == sum(run.is_wrong for run in again)


@pytest.mark.usefixtures("in_a_folder_without_pages")
def test_what_is_kept_beside_the_page_counts_as_the_runs_themselves(tmp_path):
    ran(tmp_path, "--runs", "300")
    file, kept = (
        tmp_path / "errors.csv",
        tmp_path.joinpath("tests", "benchmarks", "results", "error-rates.csv"),
    )
    kept.parent.mkdir(parents=True)
    cells = [cell for cell in all_cells(400, 2) if "wsr, one arm, useful" in cell.name]
    whole = totals(file, cells)
    keep(file, kept)
    assert len(kept.read_text().splitlines()) == 1 + 2 * len(cells)
    assert totals(kept, cells) == whole
    keep(kept, kept.with_name("again.csv"))
    assert kept.with_name("again.csv").read_text() == kept.read_text()
    file.unlink()
    lines = ran(tmp_path, "--runs", "400")
    assert "\n".join(lines).startswith(kept.read_text())
    assert len(lines) == 1 + 3 * len(cells)
    keep(file, kept)
    assert len(kept.read_text().splitlines()) == 1 + 2 * len(cells)
    assert totals(kept, cells) == totals(file, cells)
    assert totals(kept, cells)[cells[0].name].counts["runs"] == 400


@pytest.mark.usefixtures("in_a_folder_without_pages")
def test_runs_of_other_code_count_where_it_plays_the_first_part_alike(tmp_path):
    lines = ran(tmp_path, "--runs", "300")
    file = tmp_path / "errors.csv"
    cell = next(cell for cell in all_cells(300, 2) if "wsr, one arm, useful autoevaluator, 0%" in cell.name)
    code, others = sources.code_of(cell), [line for line in lines[1:] if cell.name not in line]
    own = [line.replace(code, "before") for line in lines[1:] if cell.name in line]
    now = own[0].replace("before", code)

    def counted(*rows):
        file.write_text("\n".join([lines[0], *rows, *others]) + "\n")
        counts = totals(file, [cell])[cell.name].counts
        return counts["runs"], counts["other code"]

    assert counted(*own) == (0, 0)  # nobody knows yet
    assert counted(*own, now) == (300, 200)
    unlike = now.split(",")
    unlike[-2] = "0" * 12
    assert counted(*own, ",".join(unlike)) == (100, 0)
    assert counted(*own[1:], now) == (100, 0)
    assert counted(*own, now) == (300, 200)
    keep(file, tmp_path / "kept.csv")
    assert totals(tmp_path / "kept.csv", [cell]) == totals(file, [cell])


@pytest.mark.usefixtures("in_a_folder_without_pages")
def test_a_row_of_many_parts_counts_in_the_place_of_fewer_runs_that_it_overlaps(tmp_path):
    lines = ran(tmp_path, "--runs", "400")
    cell = next(cell for cell in all_cells(400, 2) if "wsr, one arm, useful autoevaluator, 0%" in cell.name)
    own = [line for line in lines[1:] if cell.name in line]
    file, kept = tmp_path / "errors.csv", tmp_path / "kept.csv"

    def joined(parts):
        file.write_text("\n".join([lines[0], *parts]).replace(sources.code_of(cell), "before") + "\n")
        keep(file, kept)
        return kept.read_text().splitlines()[1:]

    def counted(rows):
        file.write_text("\n".join([lines[0], *rows]) + "\n")
        total = totals(file, [cell])[cell.name]
        counts = total.counts["runs"], total.counts["other code"]
        assert len(total.firsts) == counts[0] / 100
        return counts

    before = joined(own)  # the first part, and three in a row
    assert counted([*before, *own[:2]]) == (400, 300)
    assert counted([*before, *own[:3]]) == (400, 300)
    assert counted([*before, *own]) == (400, 0)
    assert counted([before[0], *joined(own[1:3]), own[0], own[3]]) == (400, 200)


@pytest.mark.usefixtures("in_a_folder_without_pages")
def test_parts_are_compared_on_one_kind_of_processor_and_by_way_of_codes_that_ran_on_several(tmp_path):
    lines = ran(tmp_path, "--runs", "300")
    file = tmp_path / "errors.csv"
    cell = next(cell for cell in all_cells(300, 2) if "wsr, one arm, useful autoevaluator, 0%" in cell.name)
    code, own = sources.code_of(cell), [line for line in lines[1:] if cell.name in line]

    def played_by(row, code_then, cpu, trace):
        *counts, _, whole = next(csv.reader([row]))[3:]
        return ",".join([f'"{cell.name}"', code_then, cpu, *counts, trace, whole])

    now, before = played_by(own[0], code, "new", "a1"), [played_by(row, "old", "old", "b1") for row in own]

    def counted(*rows):
        file.write_text("\n".join([lines[0], *before, now, *rows]) + "\n")
        kept = tmp_path / "kept.csv"
        keep(file, kept)
        assert totals(kept, [cell]) == totals(file, [cell])
        return totals(file, [cell])[cell.name].counts["runs"]

    assert counted() == 100  # nobody knows whether what differs is the code or the processor
    assert counted(played_by(own[0], "old", "new", "a1")) == 300
    assert counted(played_by(own[0], "old", "new", "a2")) == 100
    assert (
        counted(played_by(own[0], "between", "new", "a1"), played_by(own[0], "between", "old", "b1")) == 300
    )


@pytest.mark.usefixtures("in_a_folder_without_pages")
def test_a_page_names_every_cell_and_what_was_run(tmp_path):
    table = tmp_path / "page.md"
    ran(tmp_path, "--runs", "10", "--table", str(table), "--minutes", "0.05")
    text = table.read_text()
    assert all(f"| {cell.name} |" in text for cell in CELLS)
    assert "| wsr, one arm, useful autoevaluator, 0% missing | 10 of 10 |" in text
    assert f"{len(CELLS) - 4} not run" in text


def total_of(n_runs, **wrong):
    return Total(
        counts=Counter(runs=n_runs), wrong=Counter({float(k[1:]) / 100: v for k, v in wrong.items()})
    )


@pytest.mark.parametrize(
    ("total", "kept", "broken"),
    [
        (total_of(0), "not run", "not run"),
        (total_of(2_000, p20=400), "kept", "NOT SEEN"),
        (total_of(2_000, p20=499), "ABOVE ITS PROMISE", "seen"),
        (total_of(2_000, p0=1), "ABOVE ITS PROMISE", "seen"),
        (total_of(2_000, p60=600), "kept", "NOT SEEN"),
        (total_of(2_000, p20=390, p60=600), "kept", "NOT SEEN"),
        (total_of(2_000, p20=499, p60=600), "ABOVE ITS PROMISE", "seen"),
        (total_of(2_000, p20=390, p60=1_000), "ABOVE ITS PROMISE", "seen"),
    ],
)
def test_a_promise_is_broken_by_the_bound_that_answers_state(total, kept, broken):
    of_kept = cell_named("round-robin, product, level, K = 2")
    of_broken = cell_named("round-robin, product, cycle (no arm beats all: assumption false)")
    assert verdict(of_kept, total, len(CELLS)) == kept
    assert verdict(of_broken, total, len(CELLS)) == broken


@pytest.mark.statistical
@pytest.mark.parametrize("name", [cell.name for cell in CELLS if cell.expected == "broken"])
def test_what_is_broken_on_purpose_is_wrong_far_more_often_than_promised(name):
    # So many of 40 runs are wrong with probability below 1e-3 at the promised rate; then no more are needed.
    cell = cell_named(name)
    needed = int(binom.isf(1e-3, 40, cell.delta)) + 1
    assert binom.sf(needed - 1, 40, cell.delta) < 1e-3
    wrong = (seed for seed in range(40) if play(cell, seed).is_wrong)
    assert len(list(islice(wrong, needed))) == needed
