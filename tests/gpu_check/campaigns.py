"""The demo's campaign on the device, or that of a given model: left alone, and killed and resumed."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from tests.gpu_check.site import Site
from tests.gpu_check.steps import Measured

DECIDED = (0, 3)
"""Exit codes of a campaign that has an answer, or has spent its budget."""
PATIENCE_S = 240.0
CONTEXT = 128
"""Tokens of a prompt and its answer."""
QUERIES = {
    "rounds": "SELECT number, arms, examples FROM rounds ORDER BY number",
    "texts": "SELECT key, text, finish_reason FROM generations ORDER BY key",
    "comparisons": "SELECT r.number, c.position, c.candidate_a_id, c.example_id, c.outcome "
    "FROM comparisons c JOIN rounds r ON r.id = c.round_id ORDER BY r.number, c.position",
    "decisions": "SELECT r.number, n.name, d.best_estimate, d.best_lower, d.best_upper, d.stop, d.reason "
    "FROM decisions d JOIN rounds r ON r.id = d.round_id "
    "LEFT JOIN candidates n ON n.id = d.best_candidate_id ORDER BY r.number",
}
"""All that has to be the same, killed or not."""
History = Mapping[str, list[tuple[object, ...]]]


class Running(Protocol):
    """As much of a process as is needed."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float) -> int: ...


Start = Callable[[Path], Running]
"""Runs the campaign of a folder, or goes on with it."""


def with_fixed_calls(site: Site) -> Measured:
    """Killed and resumed has to equal uninterrupted: every engine is asked the same calls."""
    yield from _both(site, "fixed", must_equal=True, streaming=False)


def in_bfloat16(site: Site) -> Measured:
    """The same in bfloat16, in which a text depends on what is written beside it."""
    yield from _both(site, "bfloat16", must_equal=True, dtype="bfloat16", streaming=False)


def streamed(site: Site) -> Measured:
    """As the demo has it: equal where texts do not depend on what is written beside them."""
    yield from _both(site, "streamed", must_equal=False)


def _both(site: Site, name: str, *, must_equal: bool, dtype: str = "float32", **changes: object) -> Measured:
    folder = site.folder / "campaigns" / f"{site.provider}-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    for each in ("whole", "killed"):
        write_spec(site, folder / each, dtype, **changes)
    yield from compared(folder / "whole", folder / "killed", _start, must_equal=must_equal)
    for each in ("whole", "killed"):
        code = _command("check", f"sqlite:///{folder / each}/winnow.db", folder / each).wait(PATIENCE_S)
        if code != 0:
            raise RuntimeError(
                f"`winnow db check` ended with {code} on the campaign {each}; see {folder / each}"
            )
    yield "`winnow db check` of both databases", "sound"


def compared(whole: Path, killed: Path, start: Start, *, must_equal: bool) -> Measured:
    """A campaign left alone, and one that is killed once half of its texts are stored.

    Args:
        whole: Folder of the one, with its file.
        killed: That of the other.
        start: Runs them.
        must_equal: Whether a difference is a failure.
    """
    begun = time.perf_counter()
    _ended(start(whole), whole)
    yield f"uninterrupted, {_how()}", f"{_summary(whole)}, {time.perf_counter() - begun:.1f} s in all"
    alone = history(whole)
    stored = kill_at(start(killed), killed, len(alone["texts"]) // 2)
    begun = time.perf_counter()
    _ended(start(killed), killed)
    seconds = time.perf_counter() - begun
    said = verdict(differences(alone, history(killed)), must_equal=must_equal)
    yield (
        f"killed by SIGKILL at {stored} of {len(alone['texts'])} texts, resumed",
        f"{said} ({_decided(killed)}, {seconds:.1f} s)",
    )


def verdict(differing: Sequence[str], *, must_equal: bool) -> str:
    """What is said of a campaign that was killed.

    Raises:
        RuntimeError: If it has to be as one that was not, and is not.
    """
    if not differing:
        return "the same rounds, texts, comparisons, decisions"
    if must_equal:
        raise RuntimeError(f"killed and resumed it differs in {', '.join(differing)}")
    return f"differs in {', '.join(differing)}"


def history(folder: Path) -> History:
    """See `QUERIES`."""
    return {name: _rows(folder, query) for name, query in QUERIES.items()}


def differences(one: History, other: History) -> list[str]:
    """In what two campaigns differ, and in how many rows."""
    return [f"{name} ({len({*one[name]} ^ {*other[name]})} rows)" for name in one if one[name] != other[name]]


def kill_at(process: Running, folder: Path, texts: int) -> int:
    """Kill a campaign once so many texts are stored; how many there were.

    Raises:
        RuntimeError: If it ended before, or did not get there.
    """
    give_up = time.monotonic() + PATIENCE_S
    while (stored := _n_texts(folder)) < texts:
        if process.poll() is not None:
            raise RuntimeError(f"it ended before {texts} texts were stored; see {folder}")
        if time.monotonic() > give_up:
            os.kill(process.pid, signal.SIGKILL)
            raise RuntimeError(f"{stored} texts were stored within {PATIENCE_S:g} s; see {folder}")
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    if process.wait(PATIENCE_S) != -signal.SIGKILL:
        raise RuntimeError("it had ended by itself before it was killed; a slower model would show more")
    return _n_texts(folder)


def write_spec(site: Site, folder: Path, dtype: str = "float32", **changes: object) -> Path:
    """The demo's campaign on the engines and the device of a site, in a folder and a database of its own.

    Where a model is given, it takes the place of the demo's, on the demo's questions.
    """
    import yaml

    from winnow.infra.demo.campaigns.best_mean import campaign_text
    from winnow.infra.demo.data import evaluation_examples
    from winnow.infra.demo.recipes import RECIPES

    folder.mkdir(parents=True)
    data = folder / "data.jsonl"
    data.write_text("".join(json.dumps(asdict(each)) + "\n" for each in evaluation_examples()))
    recipes = RECIPES if site.model is None else RECIPES[:1]
    spec = yaml.safe_load(campaign_text(site.demo, data, recipes))
    for model in spec["models"]:
        model.update(provider=site.provider, model_args=site.model_args(max_model_len=CONTEXT, dtype=dtype))
        if site.model is not None:
            model.update(name="measured", model=str(site.model))
    if site.budget is not None:
        spec["stopping"]["budget"] = site.budget
    spec.update(storage=f"sqlite:///{folder}/winnow.db", **changes)
    spec["execution"]["log_folder"] = str(folder / "logs")
    path = folder / "campaign.yaml"
    path.write_text(json.dumps(spec, indent=1))  # JSON is YAML
    return path


def _start(folder: Path) -> "subprocess.Popen[bytes]":
    return _command("run", str(folder / "campaign.yaml"), folder)


def _command(what: str, argument: str, folder: Path) -> "subprocess.Popen[bytes]":
    """`winnow run FILE` or `winnow db check`, or the same by plain calls where its packages are not here."""
    plain = ["tests.gpu_check.plain_campaign", what, argument]
    full = [
        "winnow.flows.main",
        *(["run", argument] if what == "run" else ["db", "check", "--storage", argument]),
    ]
    command = [sys.executable, "-m", *(full if _has_prefect() else plain)]
    with (folder / "printed.log").open("ab") as printed:
        return subprocess.Popen(command, cwd=folder, stdout=printed, stderr=printed, stdin=subprocess.DEVNULL)


def _has_prefect() -> bool:
    return all(find_spec(name) is not None for name in ("prefect", "typer"))


def _how() -> str:
    return "`winnow run`" if _has_prefect() else "by plain calls (there is no Prefect here)"


def _ended(process: Running, folder: Path) -> None:
    if (code := process.wait(PATIENCE_S)) not in DECIDED:
        log = folder / "printed.log"
        printed = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        raise RuntimeError(f"the campaign ended with {code}: {printed[-1] if printed else 'nothing printed'}")


def _summary(folder: Path) -> str:
    (rounds,), (comparisons,), (unscored,) = (
        _rows(folder, f"SELECT count(*) FROM {table}")[0]
        for table in ("rounds", "comparisons", "comparisons WHERE outcome IS NULL")
    )
    n_loads, loading = _rows(folder, "SELECT count(*), total(seconds) FROM model_loads")[0]
    without = f", {unscored} of them without a score" if unscored else ""
    engines = ", ".join(str(row[0]) for row in _rows(folder, "SELECT DISTINCT engine FROM generations"))
    return (
        f"{comparisons} comparisons{without} in {rounds} rounds on {engines}; {_decided(folder)}; "
        f"{n_loads} loads of {loading:.1f} s together"
    )


def _decided(folder: Path) -> str:
    *_, (_, name, estimate, _, _, _, reason) = _rows(folder, QUERIES["decisions"])
    return f"{reason}, best {name} at {estimate:.3f}"


def _n_texts(folder: Path) -> int:
    try:
        return int(str(_rows(folder, "SELECT count(*) FROM generations")[0][0]))
    except sqlite3.OperationalError:  # there are no tables yet
        return 0


def _rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"file:{folder}/winnow.db?mode=ro", uri=True, timeout=30.0)) as connection:
        return connection.execute(query).fetchall()
