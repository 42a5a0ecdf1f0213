"""The golden campaigns: for each, the files of its folder and what is typed there, one step after another."""

import csv
import itertools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import campaigns
import numpy as np
from golden_pieces import Score

import winnow
from tests.golden_campaigns.scripted import LETTERS, Strike
from winnow.storage.records import candidate_states


@dataclass
class Place:
    """The folder and the database of a scenario, and the exit codes and outputs of its steps so far."""

    folder: Path
    storage: str
    ran: list[tuple[str, int, str, str]] = field(default_factory=list)
    """The command without its options of place, its exit code, and what it wrote."""
    facts: list[str] = field(default_factory=list)
    """Lines of the dump that no command prints."""

    def winnow(self, *arguments: str) -> campaigns.Ran:
        """Run a command, on this database."""
        place = () if arguments[0] == "validate" else ("--storage", self.storage)
        ran = campaigns.winnow(self.folder, *arguments, *place)
        self.ran.append((" ".join(arguments), *ran))
        return ran

    def struck(self, at: int, signal: int, *arguments: str) -> None:
        """Run a command in a fork of this process, which gets a signal when its engines begin a group."""
        pid = os.fork()
        if pid == 0:
            Strike.groups, Strike.at, Strike.signal = 0, at, signal
            os._exit(self.winnow(*arguments).returncode)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.ran.append((f"{' '.join(arguments)} (signal {int(signal)} at group {at})", code, "", ""))

    def killed_in_round(self, number: int) -> None:
        """Run `first.yaml` in a fork of this process, killed as it stores a round (counted from 1)."""
        pid = os.fork()
        if pid == 0:
            rounds, digest = itertools.count(1), candidate_states.round_digest

            def kill(*arguments: Any) -> str:
                if next(rounds) == number:
                    os.kill(os.getpid(), 9)
                return digest(*arguments)

            candidate_states.round_digest = kill
            os._exit(self.winnow("run", "first.yaml").returncode)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.ran.append((f"run first.yaml (killed in round {number})", code, "", ""))


Step = Callable[[Place], object]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Campaigns in one database, from the first file to the last command."""

    name: str
    specs: Mapping[str, Mapping[str, Any]]
    """Files of campaigns by their names."""
    steps: Sequence[Step]
    files: Mapping[str, str] = field(default_factory=dict)
    queries: Sequence[tuple[str, str]] = ()
    """Campaign and view of each `winnow query` that is dumped at the end."""
    streaming_off: bool = False
    """Whether it runs with `streaming: off` as well."""
    is_timed: bool = False
    """Whether its durations are measured, as those of a function that scores are."""


def examples(n: int, **columns: Callable[[int], object]) -> str:
    """Lines of examples, whose target is the letter of their number; more columns are functions of it."""
    rows = [
        {
            "id": f"e{i}",
            "input": str(i),
            "target": LETTERS[i % 7],
            **{name: of(i) for name, of in columns.items()},
        }
        for i in range(n)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def model(name: str, ability: str, provider: str = "scripted", **keys: Any) -> dict[str, Any]:
    return {"name": name, "provider": provider, "model": f"scripted/{ability}", **keys}


THREE = [model("good", "right-90"), model("fair", "right-70"), model("poor", "right-20")]
TWO = THREE[:2]
PLAIN = [{"name": "plain", "template": "{{ input }}="}]
ASKED = [*PLAIN, {"name": "asked", "template": "Q: {{ input }}"}]
WARM = [{"name": "warm", "temperature": 0.8, "max_tokens": 8}]


def spec(objective: str = "best-mean", **changes: Any) -> dict[str, Any]:
    """A campaign's file; None takes a key away."""
    made = {
        "name": "first",
        "objective": objective,
        "seed": 3,
        "models": THREE,
        "prompts": PLAIN,
        "dataset": {"path": "data.jsonl", "fields": {"id": "id", "input": "input", "target": "target"}},
        "judge": {"type": "exact"},
        "selector": {"name": "champion"},
        "batch_size": 9,
        "stopping": {"budget": 90, "delta": 0.1},
        "execution": {"group_size": 4, "max_loaded": 3, "log_folder": "logs"},
        **BY_OBJECTIVE[objective],
    }
    return {key: value for key, value in {**made, **changes}.items() if value is not None}


RULES = {"type": "rules", "scorer": {"type": "exact"}, "both_right": "tie", "both_wrong": "tie"}
BY_OBJECTIVE: dict[str, dict[str, Any]] = {
    "best-mean": {},
    "best-duel": {"judge": RULES, "selector": {"name": "llm-po"}},
    "certify": {
        "certify": {
            "alpha": 0.45,
            "cost": "custom",
            "costs": {"good/plain": 3, "fair/plain": 2, "poor/plain": 1},
        },
        "selector": {"name": "r-eval", "params": {"betting": "wsr"}},
        "stopping": {"budget": 40, "delta": 0.1},
    },
    "route": {
        "embedder": {"type": "precomputed", "path": "vectors.jsonl"},
        "selector": {"name": "pak-ucb", "params": {"kernel": "linear", "eta": 0.5}},
        "stopping": {"budget": 30},
    },
}


def vectors(n: int) -> str:
    rows = [{"id": f"e{i}", "vector": [1.0, float(i % 2), float(i % 3 == 0)]} for i in range(n)]
    return "".join(json.dumps(row) + "\n" for row in rows)


def run(*options: str, file: str = "first") -> Step:
    return lambda place: place.winnow("run", f"{file}.yaml", *options)


def resume(*options: str, name: str = "first") -> Step:
    return lambda place: place.winnow("resume", name, *options)


def command(*arguments: str) -> Step:
    return lambda place: place.winnow(*arguments)


def killed(at: int, *arguments: str, signal: int = 9) -> Step:
    return lambda place: place.struck(at, signal, *(arguments or ("run", "first.yaml")))


def budget(comparisons: int) -> tuple[str, str]:
    return ("--set", f"stopping.budget={comparisons}")


def labelled(name: str = "first", *, rounds: int = 20, who: str = "Ann") -> Step:
    """Fill in what a campaign waits for and go on, until it waits no more: people who know what is right."""

    def step(place: Place) -> None:
        for number in range(rounds):
            path = place.folder / f"todo-{number}.csv"
            place.winnow("query", name, "labels", "--format", "csv", "--output", path.name)
            with path.open(newline="") as file:
                wanted = [row for row in csv.DictReader(file) if row["state"] == "wanted"]
            if not wanted:
                return
            answers = [_opinion(row) for row in wanted]
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, ["id", *answers[0]])
                writer.writeheader()
                writer.writerows(
                    {"id": row["id"], **answer} for row, answer in zip(wanted, answers, strict=True)
                )
            as_ = ("--as", who) if "verdict" in answers[0] else ()
            place.winnow("label", name, path.name, *as_)
            place.winnow("resume", name)

    return step


def _opinion(row: Mapping[str, str]) -> dict[str, str]:
    right = LETTERS[int(row["input"]) % 7]
    if "output" in row:
        return {"verdict": "right" if row["output"] == right else "wrong"}
    if "first" in row:
        found = (row["first"] == right, row["second"] == right)
        return {"verdict": {(True, False): "first", (False, True): "second"}.get(found, "tie")}
    return {"target": right}


def selection(*, stored: bool, fails_at: int | None = None, **params: Any) -> Step:
    """A call of `winnow.select` with a score of its own; what it returned becomes facts."""

    def step(place: Place) -> None:
        score = Score(fails_at)
        kept = {"storage": place.storage, "name": "first"} if stored else {}
        try:
            found = winnow.select(score.of, [0, 1, 3], range(24), seed=5, **kept, **params)
        except RuntimeError as error:
            place.facts.append(f"select raised {error}")
            return
        decision = found.decision
        told = {
            "best": found.best,
            "chosen": found.chosen,
            "top": found.top,
            "tied": found.tied,
            "claim": found.claim.kind,
            "delta": found.claim.delta,
            "comparisons": found.comparisons,
            "calls": score.calls,
            "status": decision.status,
            "names": found.names,
        }
        numbers = {
            name: np.asarray(getattr(decision, name), float).round(9).tolist()
            for name in ("estimates", "lower", "upper")
        }
        place.facts += [f"select {key} {json.dumps(value)}" for key, value in {**told, **numbers}.items()]

    return step


DATA = {"data.jsonl": examples(30)}
SHORT = {"data.jsonl": examples(14)}
TINY = {"data.jsonl": examples(9)}
LARGE = {"data.jsonl": examples(80)}
STREAM = {
    "data.jsonl": examples(40, kind=lambda i: "even" if i % 2 == 0 else "odd"),
    "vectors.jsonl": vectors(60),
}
UNLABELLED = {
    "data.jsonl": "".join(
        json.dumps({"id": f"e{i}", "input": str(i), "target": None}) + "\n" for i in range(24)
    )
}
RATED = {"type": "human", "question": "Is it right?", "levels": {"wrong": 0, "half": 0.5, "right": 1}}
PREFERRED = {"type": "human", "question": "Which is right?"}
GRADER = model("grader", "rates-50")
LLM = {"type": "llm", "model": GRADER, "rubric": "It is right.", "scale": "yes/no", "read": "text"}
PANEL = {
    "type": "llm",
    "models": [model("judge", "prefers-50"), model("second", "prefers-60")],
    "template": "mt-bench",
}
JOINING = [model(each["name"], each["model"].partition("/")[2], "joining") for each in THREE]


def simple(
    name: str, files: Mapping[str, str], *steps: Step, objective: str = "best-mean", **changes: Any
) -> Scenario:
    """A scenario of one campaign called `first`; keys that a scenario has are its own, others the file's."""
    own = {key: changes.pop(key) for key in ("queries", "streaming_off") if key in changes}
    return Scenario(
        name=name, files=files, specs={"first": spec(objective, **changes)}, steps=steps or (run(),), **own
    )


def champion(**params: Any) -> dict[str, Any]:
    return {"name": "champion", "params": params}


SCENARIOS = [
    # Best mean: what a selector decides
    simple(
        "mean-exact",
        SHORT,
        prompts=ASKED,
        queries=[
            ("first", "leaderboard"),
            ("first", "comparisons"),
            ("first", "rounds"),
            ("first", "curve"),
            ("first", "eliminations"),
            ("first", "coverage"),
            ("first", "costs"),
            ("first", "pareto"),
        ],
    ),
    simple("mean-proven", LARGE, stopping={"budget": 300, "delta": 0.05}, batch_size=24),
    simple("mean-epsilon", LARGE, stopping={"budget": 240, "delta": 0.1, "epsilon": 0.15}, batch_size=24),
    simple("mean-undecided", LARGE, models=TWO, stopping={"budget": 40, "delta": 0.05}),
    simple(
        "mean-tied",
        SHORT,
        models=[*TWO, {**THREE[0], "name": "twin"}],
        stopping={"budget": 90, "delta": 0.1, "ties": "resolve"},
    ),
    simple("mean-open", SHORT, models=[*TWO, {**THREE[0], "name": "twin"}]),
    simple("mean-race", DATA, selector={"name": "race"}),
    simple(
        "mean-top", DATA, selector=champion(top_m=2), prompts=ASKED, stopping={"budget": 120, "delta": 0.1}
    ),
    simple(
        "mean-cheapest",
        DATA,
        selector=champion(prefer="cost", costs={"good/plain": 5, "fair/plain": 2, "poor/plain": 1}),
        stopping={"budget": 90, "delta": 0.1, "epsilon": 0.4},
    ),
    simple(
        "mean-groups",
        {"data.jsonl": examples(30, kind=lambda i: "few" if i % 5 == 0 else "many")},
        groups={"by": "kind"},
    ),
    simple(
        "mean-worst-group",
        {"data.jsonl": examples(30, kind=lambda i: f"k{i % 3}")},
        groups={"by": "kind", "objective": "worst"},
    ),
    simple(
        "mean-constraints",
        DATA,
        metrics=[
            {"name": "known", "judge": {"type": "regex", "pattern": "^([a-g])$"}},
            {"name": "short", "judge": {"type": "contains"}},
        ],
        constraints=[{"metric": "known", "at_least": 0.6}],
        queries=[("first", "metrics")],
    ),
    simple("mean-halving", DATA, selector={"name": "halving"}, stopping={"budget": 60}, prompts=ASKED),
    simple("mean-ucb-e", DATA, selector={"name": "ucb-e"}, stopping={"budget": 45, "delta": 0.1}),
    simple(
        "mean-ucb-e-lrf",
        DATA,
        selector={"name": "ucb-e-lrf", "params": {"members": 4}},
        stopping={"budget": 45},
    ),
    simple("mean-row-mean", DATA, selector={"name": "row-mean"}, stopping={"budget": 45}),
    Scenario(
        name="mean-history",
        files={"data.jsonl": examples(18)},
        specs={
            "first": spec(selector={"name": "row-mean"}),
            "second": spec(
                name="second",
                models=[model("new", "right-80"), *TWO],
                selector={"name": "pulse"},
                stopping={"budget": 40},
                history=["campaign:first"],
            ),
            "third": spec(name="third", history=["campaign:first"], seed=4),
        },
        steps=[run(), run(file="second"), run(file="third")],
    ),
    simple(
        "mean-holdout",
        {"data.jsonl": examples(40)},
        run(),
        resume(*budget(200)),
        holdout=0.3,
        stopping={"budget": 60, "delta": 0.1},
    ),
    simple(
        "mean-all-zero",
        DATA,
        run(),
        resume("--set", "execution.allow_all_zero=true"),
        models=[model("a", "right-0"), model("b", "right-0")],
    ),
    simple(
        "mean-dropped",
        DATA,
        models=[*TWO, model("silent", "mute-10")],
        queries=[("first", "coverage")],
    ),
    simple(
        "mean-tags",
        {"data.jsonl": examples(20, kind=lambda i: f"k{i % 2}")},
        tags=["kind"],
        queries=[("first", "tags")],
    ),
    simple(
        "mean-chats",
        {"data.jsonl": examples(12)},
        models=[model("chats", "verbose-80", chat=True), model("good", "right-80", chat=True)],
        prompts=[
            {"name": "direct", "system": "Answer.", "template": "{{ input }}"},
            {"name": "shots", "template": "{{ input }}", "few_shot": {"n": 2, "seed": 1}},
        ],
        guardrails=[
            {"name": "none", "template": "{{ prompt }}"},
            {"name": "safe", "template": "Be kind.\n{{ prompt }}"},
        ],
        generate_configs=[{"name": "greedy", "temperature": 0.0}, *WARM],
        exclude=[{"model": "chats", "prompt": "shots"}, {"guardrail": "safe", "generate_config": "warm"}],
        judge={"type": "contains"},
        stopping={"budget": 100, "delta": 0.1},
        batch_size=16,
    ),
    simple(
        "mean-choices",
        {
            "data.jsonl": "".join(
                json.dumps(
                    {"id": f"e{i}", "input": str(i), "target": i % 3, "options": ["one", "two", "three"]}
                )
                + "\n"
                for i in range(20)
            )
        },
        output_type="multiple-choice",
        choices={"field": "options"},
        judge={"type": "acc_norm", "target": "index"},
        metrics=[{"name": "plain", "judge": {"type": "acc", "target": "index"}}],
    ),
    simple("mean-likelihoods", SHORT, output_type="loglikelihood", judge={"type": "greedy"}),
    # Several outputs for each example
    simple("mean-samples", SHORT, samples=3, generate_configs=WARM, queries=[("first", "outputs")]),
    simple("mean-majority", SHORT, samples={"n": 3, "reduce": "majority"}, generate_configs=WARM, models=TWO),
    simple("mean-pass-at", SHORT, samples={"n": 3, "reduce": "pass@2"}, generate_configs=WARM, models=TWO),
    simple(
        "mean-best-of",
        SHORT,
        samples={"n": 2, "reduce": "best-of"},
        generate_configs=WARM,
        models=TWO,
        judge={"type": "best-of", "judges": [{"type": "exact"}, LLM]},
    ),
    # Kills, interrupts, budgets, lookahead
    simple("mean-killed", DATA, killed(4), killed(3, "resume", "first"), resume(), prompts=ASKED, models=TWO),
    simple("mean-interrupted", DATA, killed(4, signal=2), killed(4, "resume", "first", signal=15), resume()),
    simple(
        "mean-budgets",
        DATA,
        run(),
        resume("--set", "stopping.budget={comparisons: 90, tokens: 300}"),
        stopping={"budget": {"comparisons": 20, "tokens": 80}, "delta": 0.1},
    ),
    simple(
        "mean-lookahead",
        LARGE,
        models=JOINING,
        lookahead=2,
        stopping={"budget": 120, "delta": 0.1},
        streaming_off=True,
    ),
    simple(
        "mean-lookahead-killed",
        LARGE,
        # Not at a group: which rounds are stored as a group begins depends on threads, where rounds overlap
        lambda place: place.killed_in_round(2),
        resume(),
        models=JOINING,
        lookahead=2,
        stopping={"budget": 120, "delta": 0.1},
        streaming_off=True,
    ),
    simple(
        "mean-lookahead-apart",
        LARGE,
        lookahead=1,
        selector={"name": "row-mean"},
        stopping={"budget": 60},
        streaming_off=True,
    ),
    # Reuse, forks, additions, other judges
    Scenario(
        name="reuse",
        files=TINY,
        specs={
            "first": spec(generate_configs=WARM),
            "second": spec(name="second", prompts=ASKED, generate_configs=WARM),
            "none": spec(name="none", generate_configs=WARM, reuse="none"),
            "own": spec(name="own", generate_configs=WARM, reuse="campaign"),
            "only": spec(name="only", generate_configs=WARM, prompts=ASKED, reuse="only", fail_on_error=1.0),
        },
        steps=[
            run(),
            run(file="second"),
            run(file="only"),
            run(file="none"),
            run(file="own"),
            run("--fork", "forked", "--set", "stopping.budget=30"),
            run("--exhaustive"),
            command("query", "forked", "reuse", "--json"),
        ],
        queries=[("second", "reuse")],
    ),
    Scenario(
        name="mean-joined",
        files={"data.jsonl": examples(18)},
        specs={
            "first": spec(models=THREE[1:]),
            "more": spec(models=[THREE[0], *THREE[1:]]),
            "most": spec(prompts=ASKED, stopping={"budget": 200, "delta": 0.1}),
            "fewer": spec(models=THREE[2:]),
        },
        steps=[run(), run(file="more"), killed(3, "run", "most.yaml"), run(file="most"), run(file="fewer")],
    ),
    Scenario(
        name="mean-more-examples",
        files={**SHORT, "longer.jsonl": examples(20)},
        specs={"first": spec(models=TWO), "longer": spec(models=TWO, dataset={"path": "longer.jsonl"})},
        steps=[run(), run(file="longer"), run("--fork", "longer", file="longer")],
    ),
    Scenario(
        name="rescored",
        files={
            **TINY,
            "judge.yaml": json.dumps(LLM),
            "loose.yaml": "judge: {type: contains, ignore_case: true}\n",
        },
        specs={"first": spec(models=[*TWO, model("talks", "verbose-90")])},
        steps=[
            run(),
            command("rescore", "first", "--judge", "judge.yaml", "--dry-run"),
            command("rescore", "first", "--judge", "judge.yaml"),
            command("rescore", "first", "--judge", "loose.yaml", "--name", "loose"),
            command("rescore", "first", "--name", "again"),
            resume("--set", "reuse=all", name="loose"),
        ],
        queries=[("first-rescored", "judgments")],
    ),
    # Judges that are models or people
    simple("mean-llm", SHORT, judge=LLM, models=TWO, queries=[("first", "judgments")]),
    simple(
        "mean-llm-panel",
        {"data.jsonl": examples(10)},
        killed(7),
        resume(),
        judge={
            **{key: value for key, value in LLM.items() if key != "model"},
            "models": [GRADER, model("strict", "rates-30")],
            "repeats": 2,
            "temperature": 0.7,
            "aggregation": "median",
        },
        models=TWO,
        streaming_off=True,
    ),
    simple(
        "mean-judges-combined",
        SHORT,
        judge={
            "type": "weighted",
            "judges": [
                {"type": "any", "judges": [{"type": "exact"}, LLM]},
                {"type": "contains", "no_answer": "unscored"},
            ],
            "weights": [3, 1],
        },
        models=[model("talks", "verbose-80"), *TWO],
    ),
    simple(
        "mean-people",
        UNLABELLED,
        run(),
        labelled(),
        judge=RATED,
        models=TWO,
        queries=[("first", "annotators")],
    ),
    # Duels
    simple(
        "duel-rules", DATA, objective="best-duel", queries=[("first", "head-to-head"), ("first", "strengths")]
    ),
    simple(
        "duel-killed",
        DATA,
        killed(3),
        resume(),
        resume(*budget(70)),
        objective="best-duel",
        generate_configs=WARM,
        stopping={"budget": 35, "delta": 0.1},
        streaming_off=True,
    ),
    simple(
        "duel-factors",
        DATA,
        objective="best-duel",
        prompts=ASKED,
        models=TWO,
        selector={"name": "llm-po-bt"},
        stopping={"budget": 60, "delta": 0.1},
    ),
    simple(
        "duel-llm",
        SHORT,
        objective="best-duel",
        judge=PANEL,
        stopping={"budget": 24, "delta": 0.1},
        queries=[("first", "judges"), ("first", "verdicts"), ("first", "unread"), ("first", "judgments")],
    ),
    simple(
        "duel-coin",
        SHORT,
        objective="best-duel",
        judge={**RULES, "both_right": "shorter", "both_wrong": "coin"},
        selector={"name": "thompson"},
        fresh_generations=False,
        generate_configs=WARM,
        stopping={"budget": 30, "delta": 0.1},
    ),
    simple(
        "duel-people",
        UNLABELLED,
        run(),
        labelled(),
        objective="best-duel",
        judge=PREFERRED,
        models=TWO,
        stopping={"budget": 40, "delta": 0.2},
    ),
    # Certificates
    simple("certify", DATA, objective="certify", queries=[("first", "e-values"), ("first", "labels")]),
    simple("certify-killed", DATA, killed(3), resume(), objective="certify", streaming_off=True),
    simple(
        "certify-autoevaluator",
        {"data.jsonl": examples(45)},
        objective="certify",
        certify={
            **BY_OBJECTIVE["certify"]["certify"],
            "unlabelled_per_label": 2,
            "autoevaluator": {"model": model("grader", "right-80"), "prompt": "What is {{ input }}?"},
        },
        selector={"name": "r-autoeval-plus"},
        queries=[("first", "weights"), ("first", "agreement")],
    ),
    simple(
        "certify-labels",
        UNLABELLED,
        run(),
        command("label", "first", "--skip", "e3"),
        labelled(),
        objective="certify",
        stopping={"budget": 20, "delta": 0.1},
    ),
    simple(
        "certify-drop",
        DATA,
        objective="certify",
        certify={
            "drop": 0.4,
            "baseline": "good/plain",
            "cost": "custom",
            "costs": {"good/plain": 3, "fair/plain": 2, "poor/plain": 1},
        },
    ),
    simple("certify-people", UNLABELLED, run(), labelled(), objective="certify", judge=RATED),
    # Routes
    simple("route", STREAM, objective="route", prompt_type="kind", queries=[("first", "picks")]),
    simple(
        "route-killed",
        STREAM,
        killed(3),
        resume(),
        resume(*budget(40)),
        objective="route",
        samples=2,
        generate_configs=WARM,
        streaming_off=True,
    ),
    simple(
        "route-features",
        STREAM,
        objective="route",
        embedder={"type": "parity"},
        selector={"name": "rff-ucb", "params": {"n_features": 20, "explore": 0.2}},
    ),
    Scenario(
        name="route-arrivals",
        files={**STREAM, "more.jsonl": examples(6) + '{"id": "n1", "input": "77", "target": "a"}\n'},
        specs={
            "first": spec("route", embedder={"type": "parity"}, models=TWO),
            "joined": spec("route", embedder={"type": "parity"}, models=THREE),
        },
        steps=[
            run(),
            command("route", "first", "--prompt", "51", "--target", "c", "--json"),
            command("route", "first", "--prompts", "more.jsonl", "--json"),
            run(*budget(36), file="joined"),
            command("route", "first", "--export", "policy"),
        ],
    ),
    # Gates
    Scenario(
        name="gate",
        files=DATA,
        specs={
            "first": spec(),
            "asked": spec(name="asked", models=TWO, stopping={"budget": 60, "delta": 0.1, "epsilon": 0.6}),
        },
        steps=[
            command(
                "gate", "first.yaml", "--baseline", "fair/plain", "--fork", "worse", "--junit", "gate.xml"
            ),
            command("gate", "asked.yaml", "--baseline", "good/plain"),
            command("gate", "asked.yaml", "--baseline", "good/plain", "--fork", "short", *budget(10)),
            resume(name="worse"),
        ],
    ),
    # Any function as the scorer
    Scenario(
        name="select",
        specs={},
        steps=[
            selection(stored=False),
            selection(stored=False, delta=0.1, epsilon=0.1, selector="race"),
            selection(stored=False, top_m=2, delta=0.1),
        ],
    ),
    Scenario(
        name="select-stored",
        is_timed=True,
        specs={},
        steps=[
            selection(stored=True, delta=0.1, fails_at=20),
            selection(stored=True, delta=0.1),
            selection(stored=True, delta=0.1),
        ],
    ),
    # What does not begin
    Scenario(
        name="refused",
        files=SHORT,
        specs={
            "key": {**spec(), "batchsize": 8},
            "judge": spec(judge={"type": "exactly"}),
            "budget": spec(stopping={"budget": 2, "delta": 0.1}),
            "data": spec(dataset={"path": "nothing.jsonl"}),
            "lookahead": spec("best-duel", lookahead=2),
            "first": spec(),
        },
        steps=[
            *(
                command("validate", f"{name}.yaml")
                for name in ("key", "judge", "budget", "data", "lookahead", "first")
            ),
            run(file="key"),
            command("status", "first"),
            run(),
            run("--set", "seed=4"),
            run(),
            resume(name="second"),
            command("query", "first", "picks"),
            command("label", "first"),
            command("route", "first", "--prompt", "1"),
            command("list"),
        ],
    ),
]
BY_NAME = {each.name: each for each in SCENARIOS}
assert len(BY_NAME) == len(SCENARIOS)
