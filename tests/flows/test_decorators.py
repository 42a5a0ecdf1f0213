"""Judges, selectors and engines that a program names itself."""

import functools
import json
import re
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import numpy as np
import pytest
from campaigns import winnow as winnow_command
from scripted_engines import ScriptedEngine

import winnow
from winnow.algorithms.best_mean.baselines.row_mean import RowMean
from winnow.algorithms.registry import describe as describe_selector
from winnow.algorithms.state import plugin_registry
from winnow.algorithms.state.plugin_registry import Registered, plugins, register
from winnow.tasks.campaign import program_plugins as of_programs
from winnow.tasks.campaign.program_plugins import named_by_program, require_plugins
from winnow.tasks.embedding.registry import create_embedder
from winnow.tasks.engines.protocol import ModelRef, Request, Sampling
from winnow.tasks.engines.providers import provider_names, start_engine
from winnow.tasks.errors import JudgeError, SpecError
from winnow.tasks.judges.protocol import Duel, Sample, Verdict
from winnow.tasks.judges.registry import (
    create_judge,
    create_pair_judge,
    describe,
    judge_code,
    judge_names,
    pair_judge_names,
)
from winnow.tasks.plugins.entry_points import PluginFailed
from winnow.tasks.plugins.source_code import code_digests
from winnow.tasks.spec.sections.objectives import EmbedderSpec


@pytest.fixture(autouse=True)
def _registered_here_alone(monkeypatch):
    monkeypatch.setattr(plugin_registry, "_registered", {})


def short(output: str, targets: Sequence[str], *, most: int = 3) -> float | None:
    """One for an output that is short enough."""
    return None if not output else len(output) <= most


def test_a_function_is_a_judge_with_its_keywords_as_parameters():
    assert winnow.judge(short) is short
    assert "short" in judge_names()
    found = describe("short")
    assert found.summary == "One for an output that is short enough."
    assert (found.parameters[0].name, found.parameters[0].default) == ("most", 3)
    judge = create_judge("short", most=5)
    assert [judge.judge(Sample(output=text)).score for text in ("abcde", "abcdef")] == [1.0, 0.0]
    assert judge.judge(Sample(output="")).reason == "no_score"
    with pytest.raises(JudgeError, match=r"judge\.most: .*must be a whole number"):
        create_judge("short", most="many")


def test_a_judge_that_raises_is_named_and_one_that_returns_no_score_is_refused():
    @winnow.judge("odd")
    def judge(output, targets):
        return {"two": 2.0, "text": "good"}[output]

    made = create_judge("odd")
    verdict = made.judge(Sample(output="three"))
    assert verdict.reason == "judge_failed"
    assert "the judge 'odd' (test_decorators:judge) raised KeyError: 'three'" in verdict.detail
    assert [made.judge(Sample(output=output)).reason for output in ("two", "text")] == ["invalid_score"] * 2


def test_a_class_is_a_judge_as_that_of_a_package_is():
    @winnow.judge("longest")
    class Longest:
        """The longer the better."""

        def __init__(self, *, most: int):
            self.most = most

        def judge(self, sample):
            return Verdict(score=min(1.0, len(sample.output) / self.most))

    assert create_judge("longest", most=4).judge(Sample(output="ab")).score == 0.5


def shorter(a: str, b: str, targets: Sequence[str], *, ties_within: int = 0) -> float | None:
    """The shorter answer."""
    if a == b == "":
        return None
    return 0.5 if abs(len(a) - len(b)) <= ties_within else float(len(a) < len(b))


def judged(judge, a, b):
    return judge.judge(Duel(question="q", answer_a=a, answer_b=b, seed=1))


def test_a_function_is_a_judge_of_duels_with_its_keywords_as_parameters():
    assert winnow.pair_judge(shorter) is shorter
    assert "shorter" in pair_judge_names()
    judge = create_pair_judge("shorter", ties_within=1)
    assert judge.models == ()
    pairs = (("a", "abc"), ("abc", "a"), ("a", "ab"))
    assert [judged(judge, *pair).score for pair in pairs] == [1.0, 0.0, 0.5]
    assert judged(judge, "", "").reason == "no_preference"
    with pytest.raises(JudgeError, match=r"judge\.ties_within: .*must be a whole number"):
        create_pair_judge("shorter", ties_within="many")
    with pytest.raises(SpecError, match="'rules' is Winnow's own judge of duels; choose another name"):
        winnow.pair_judge("rules")(shorter)


def test_a_judge_of_duels_that_raises_or_returns_no_preference_leaves_the_duel_unscored():
    @winnow.pair_judge("odd")
    def odd(a, b, targets):
        return {"two": 2.0, "text": "good"}[a]

    made = create_pair_judge("odd")
    for answer, reason in (("two", "invalid_score"), ("text", "invalid_score"), ("three", "judge_failed")):
        assert judged(made, answer, "").reason == reason


@pytest.mark.usefixtures("plain_runs")
def test_duels_are_judged_by_a_function_of_the_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    winnow.pair_judge(shorter)

    @winnow.engine("echo")
    class Echo(ScriptedEngine):
        def __init__(self, model, settings):
            super().__init__(lambda prompt: prompt)

    rows = [{"id": f"e{i}", "input": f"{i}"} for i in range(10, 70)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {
        "name": "short-ones",
        "objective": "best-duel",
        "models": [{"name": "echo", "provider": "echo", "model": "mine/echo"}],
        "prompts": [
            {"name": "long", "template": "{{ input }} and more"},
            {"name": "plain", "template": "{{ input }}"},
        ],
        "dataset": {"path": "data.jsonl", "fields": {"id": "id", "input": "input", "target": None}},
        "judge": {"type": "shorter"},
        "selector": {"name": "llm-po"},
        "batch_size": 8,
        "stopping": {"budget": 60, "delta": 0.05},
    }
    found = winnow.run(spec)
    assert (found.answer.best, found.answer.outcome) == ("echo/plain", "winner")
    with pytest.raises(SpecError, match=r"judge\.ties_within: "):
        winnow.run({**spec, "name": "other", "judge": {"type": "shorter", "ties_within": "x"}})


def test_a_selector_serves_select_and_create_selector():
    @winnow.selector("mine")
    class Mine(RowMean):
        """As the baseline."""

        objective = "best-mean"

    assert "mine" in winnow.selector_names()
    found = winnow.select(lambda arm, example: arm / 4, [1, 2, 4], range(40), selector="mine")
    assert found.best == 4
    assert isinstance(winnow.create_selector("mine", n_arms=2, n_examples=3), Mine)


def nothing(model, settings):
    """No engine at all."""


@pytest.mark.parametrize(
    ("decorate", "plugin", "said"),
    [
        (winnow.judge("exact"), short, "'exact' is Winnow's own judge"),
        (winnow.selector("champion"), RowMean, "'champion' is Winnow's own selector"),
        (winnow.engine("vllm"), nothing, "'vllm' is Winnow's own provider"),
        (winnow.embedder("vllm"), nothing, "'vllm' is Winnow's own embedder"),
        (winnow.selector, nothing, "the attribute `objective` of a selector is one of best-mean"),
        (winnow.judge, eval("lambda output, targets: 1.0"), "the source of '<lambda>' cannot be found"),
    ],
)
def test_what_cannot_be_named_is_refused(decorate, plugin, said):
    if plugin is RowMean:

        class Other(RowMean):
            objective = "best-mean"

        plugin = Other
    with pytest.raises(SpecError, match=said):
        decorate(plugin)


@pytest.mark.parametrize("module", ["__main__", "<run_path>"])
def test_the_text_of_what_a_notebook_or_a_file_that_is_run_names_says_what_it_is(monkeypatch, module):
    monkeypatch.setattr(short, "__module__", module)
    winnow.judge(short)
    [(place, digest)] = judge_code("short")["files"].items()
    assert place == f"{module}:short"
    monkeypatch.setattr(nothing, "__module__", module)
    winnow.judge("short")(nothing)
    assert code_digests(plugins("winnow.judges")["short"]) != {place: digest}


def test_a_class_of_a_notebook_is_known_by_its_methods(monkeypatch):
    class Shout:
        objective = "best-mean"

        def ask(self, rng):
            return "!"

    monkeypatch.setattr(Shout, "__module__", "__main__")  # which has no file that holds it
    winnow.selector("shout")(Shout)
    assert 'return "!"' in vars(plugins("winnow.selectors")["shout"])["source"]
    del Shout.ask
    with pytest.raises(SpecError, match="define the class in a file, or add a method, whose"):
        winnow.selector("shout")(Shout)


@pytest.mark.usefixtures("prefect_api")
def test_a_campaign_runs_on_an_engine_and_a_judge_of_the_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    winnow.judge(short)

    @winnow.engine("echo")
    class Echo(ScriptedEngine):
        def __init__(self, model, settings):
            super().__init__(lambda prompt: prompt)

        def generate(self, requests):
            if any("broken" in request.prompt for request in requests):
                raise KeyError("nothing to say")
            return super().generate(requests)

    rows = [{"id": f"e{i}", "input": f"{i}"} for i in range(10, 50)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {
        "name": "echoes",
        "objective": "best-mean",
        "models": [{"name": "echo", "provider": "echo", "model": "mine/echo"}],
        "prompts": [
            {"name": "plain", "template": "{{ input }}"},
            {"name": "long", "template": "{{ input }} and more"},
        ],
        "dataset": {"path": "data.jsonl", "fields": {"id": "id", "input": "input", "target": None}},
        "judge": {"type": "short", "most": 2},
        "selector": {"name": "champion"},
        "batch_size": 8,
        "stopping": {"budget": 80, "delta": 0.05},
    }
    assert winnow.run(spec).answer.best == "echo/plain"
    broken = [{"name": "broken", "template": "broken {{ input }}"}, *spec["prompts"]]
    with pytest.raises(PluginFailed) as failed:
        winnow.run({**spec, "name": "broken", "prompts": broken})
    assert "the engine 'echo' (test_decorators:Echo) raised KeyError" in str(failed.value)
    assert "call winnow.run (or winnow.select) again; or fix its code and use another" in str(failed.value)
    assert "winnow resume" not in str(failed.value)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(plugin_registry, "_registered", {})
        resumed = winnow_command(tmp_path, "resume", "broken")
        stands = winnow_command(tmp_path, "status", "broken").stdout
        as_json = json.loads(winnow_command(tmp_path, "status", "broken", "--json").stdout)
    assert stands.endswith(
        "\n  go on        by winnow.run, where provider 'echo' is named by @winnow.engine\n"
    )
    assert as_json["resume"] is None
    assert resumed.returncode == 2
    assert "unknown provider 'echo'; available: " in resumed.stderr
    assert resumed.stderr.endswith("by @winnow.engine, call winnow.run in that program again\n")
    assert "continue with" not in resumed.stderr
    with pytest.raises(SpecError, match=r"spec: models\[0\].provider: .*'ecko'.*did you mean 'echo'"):
        winnow.run({**spec, "name": "other", "models": [{**spec["models"][0], "provider": "ecko"}]})


OF_PROGRAMS = [
    ("judge", winnow.judge, {"objective": "best-mean", "judge": {"type": "short"}}),
    ("judge", winnow.judge, {"judge": {"type": "all", "judges": [{"type": "exact"}, {"type": "short"}]}}),
    ("judge", winnow.judge, {"metrics": [{"name": "brief", "judge": {"type": "short"}}]}),
    ("pair judge", winnow.pair_judge, {"objective": "best-duel", "judge": {"type": "short"}}),
    ("selector", winnow.selector, {"selector": {"name": "short"}, "selector_code": {"here": "0"}}),
    ("embedder", winnow.embedder, {"objective": "route", "embedder": {"type": "short"}}),
    ("provider", winnow.engine, {"models": [{"name": "m", "provider": "short"}]}),
    ("provider", winnow.engine, {"judge": {"type": "llm", "model": {"name": "m", "provider": "short"}}}),
]


@pytest.mark.parametrize(("kind", "decorator", "named"), OF_PROGRAMS)
def test_what_a_program_names_is_told_from_what_is_installed(kind, decorator, named):
    plain = {"objective": "best-mean", "judge": {"type": "exact"}, "selector": {"name": "champion"}}
    if named.get("objective") == "best-duel":
        plain["selector"] = {"name": "llm-po"}
    if named.get("objective") == "route":
        plain["selector"] = {"name": "pak-ucb"}
    spec = {**plain, **named}
    campaign = SimpleNamespace(objective=spec["objective"], spec=spec)
    said = f"{kind} 'short' is named by @winnow.{decorator.__name__}"
    assert named_by_program(campaign) == said
    with pytest.raises(SpecError, match=f"unknown {kind} 'short'; .*call winnow.run in that program again"):
        require_plugins(campaign)
    register(Registered("short", f"winnow.{decorator.__name__}s", short, value="here:short", source=""))
    require_plugins(campaign)
    assert named_by_program(campaign) == said  # the command line knows nothing of it all the same


def test_what_is_ours_or_installed_is_of_no_program(monkeypatch):
    entry = EntryPoint("theirs", "elsewhere:judge", "winnow.judges")
    monkeypatch.setattr(of_programs, "plugins", lambda group: {"theirs": entry})
    models = [{"name": "m", "provider": "vllm"}]
    spec = {"models": models, "judge": {"type": "theirs"}, "selector": {"name": "champion"}}
    assert named_by_program(SimpleNamespace(objective="best-mean", spec=spec)) is None


class HalfHearted:
    """Makes vectors of the lengths of texts."""

    def __init__(self, *, dim=2, fails=False):
        self.dim = dim
        self._fails = fails

    def embed(self, texts):
        if self._fails:
            raise KeyError("no vectors today")
        return [[1.0, float(len(text))] for text in texts]


@pytest.fixture
def half_hearted():
    winnow.embedder("half-hearted")(HalfHearted)


def embedder(**keys):
    return create_embedder(EmbedderSpec.model_validate({"type": "half-hearted"} | keys))


@pytest.mark.usefixtures("half_hearted")
def test_an_embedder_is_known_by_its_name_parameters_and_code():
    made = embedder(params={"dim": 2})
    assert (made.dim, made.embed(["a", "bcd"]).tolist()) == (2, [[1.0, 1.0], [1.0, 3.0]])
    assert made.identity["type"] == "half-hearted"
    assert made.identity != embedder(params={"dim": 3}).identity
    assert made.identity["code"] == code_digests(plugins("winnow.embedders")["half-hearted"])
    made.close()


@pytest.mark.usefixtures("half_hearted")
def test_what_an_embedder_does_wrong_is_said_in_a_sentence_that_names_it():
    for params, said in (
        ({"fails": True}, "raised KeyError: 'no vectors today'"),
        ({"dim": 3}, r"raised ValueError: embed returned shape \(1, 2\) for 1 texts of dim 3"),
    ):
        with pytest.raises(PluginFailed, match=rf"the embedder 'half-hearted' .*{said}"):
            embedder(params=params).embed(["a"])
    with pytest.raises(PluginFailed, match="unexpected keyword argument 'size'"):
        embedder(params={"size": 3})
    with pytest.raises(SpecError, match="'half-harted'; did you mean 'half-hearted'"):
        embedder(type="half-harted")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"type": "vllm", "model": "m", "params": {"a": 1}}, "params is only for an embedder of a package"),
        ({"pooling": "cls"}, "reads its settings from params"),
    ],
)
def test_keys_are_for_the_embedders_that_have_them(keys, said):
    with pytest.raises(ValueError, match=said):
        embedder(**keys)


@pytest.mark.usefixtures("plain_runs", "half_hearted")
def test_a_campaign_routes_by_an_embedder_of_the_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    winnow.judge(short)

    @winnow.engine("echo")
    class Echo(ScriptedEngine):
        def __init__(self, model, settings):
            super().__init__(lambda prompt: prompt)

    rows = [{"id": f"e{i}", "input": "x" * (1 + i % 5)} for i in range(24)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {
        "name": "routed",
        "objective": "route",
        "models": [{"name": "echo", "provider": "echo", "model": "mine/echo"}],
        "prompts": [
            {"name": "plain", "template": "{{ input }}"},
            {"name": "long", "template": "{{ input }}xx"},
        ],
        "dataset": {"path": "data.jsonl", "fields": {"id": "id", "input": "input", "target": None}},
        "judge": {"type": "short", "most": 3},
        "embedder": {"type": "half-hearted"},
        "selector": {"name": "lin-ucb"},
        "batch_size": 8,
        "stopping": {"budget": 24},
    }
    assert len(winnow.run(spec).view("comparisons")) == 24
    failing = {"type": "half-hearted", "params": {"fails": True}}
    with pytest.raises(PluginFailed, match="the embedder 'half-hearted'"):
        winnow.run({**spec, "name": "failing", "embedder": failing})


def test_a_package_adds_a_provider_by_an_entry_point(tmp_path, monkeypatch):
    (tmp_path / "acme_engine.py").write_text(
        "from scripted_engines import ScriptedEngine\n"
        "def start(model, settings):\n"
        "    return ScriptedEngine(lambda prompt: model.name)\n"
    )
    info = tmp_path / "acme_engine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-engine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[winnow.engines]\nacme = acme_engine:start\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "acme" in provider_names()
    engine = start_engine(ModelRef(name="n", provider="acme", model="a/b"), None)
    [answer] = engine.generate([Request(prompt="?", sampling=Sampling(), seed=0)])
    assert (engine.identity, answer.text) == ("scripted 1", "n")
    with pytest.raises(PluginFailed, match="the engine 'acme'"):
        engine.generate([None])


class Letters:
    """How often two letters stand in a text; a text without them has no direction."""

    def __init__(self, *, first="a"):
        self._letters = (first, "b")
        self.dim = 2

    def embed(self, texts):
        return [[float(text.count(each)) for each in self._letters] for text in texts]


@pytest.fixture
def letters():
    winnow.embedder("letters")(Letters)


@pytest.mark.usefixtures("letters")
def test_a_judge_measures_closeness_by_an_embedder_of_the_program():
    judge = create_judge("similarity", embedder="letters", no_answer="unscored")
    scored = {
        text: judge.judge(Sample(output=text, targets=["ab", "b", " "])).score
        for text in ("bab", "aab", "bbb", "aaa")
    }
    root = 0.5**0.5
    assert scored == {
        "bab": pytest.approx(3 * root / 5**0.5, abs=1e-4),
        "aab": pytest.approx(3 * root / 5**0.5, abs=1e-4),
        "bbb": 1.0,
        "aaa": pytest.approx(root, abs=1e-4),
    }
    assert judge.judge(Sample(output="xyz", targets=["a"])).reason == "no_answer"
    assert judge.judge(Sample(output="a", targets=[" "])).reason == "no_target"
    other = create_judge("similarity", embedder="letters", embedder_params={"first": "x"})
    assert other.judge(Sample(output="xa", targets=["x"])).score == 1.0


@pytest.mark.usefixtures("letters", "half_hearted")
def test_what_an_embedder_does_wrong_to_a_judge_is_a_reason_and_no_score():
    judge = create_judge("similarity", embedder="letters")
    found = judge.judge(Sample(output="a", targets=["xyz"]))
    assert (found.score, found.reason) == (None, "judge_failed")
    assert "the vector of 'xyz' is zero" in found.detail
    failing = create_judge("similarity", embedder="half-hearted", embedder_params={"fails": True})
    found = failing.judge(Sample(output="a", targets=["a"]))
    assert (found.score, found.reason) == (None, "judge_failed")
    assert "the embedder 'half-hearted'" in found.detail


@pytest.mark.usefixtures("letters")
def test_an_embedders_code_and_parameters_are_part_of_what_the_judge_is():
    params = [{}, {"embedder_params": {"first": "x"}}]
    known = [judge_code("similarity", embedder="letters", **each)["embedder"] for each in params]
    assert known[0]["type"] == "letters"
    assert known[0] != known[1]
    assert known[0]["code"] == code_digests(plugins("winnow.embedders")["letters"])


@pytest.mark.usefixtures("letters")
@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"embedder": "lettres"}, "judge.embedder: .*did you mean 'letters'"),
        ({"embedder": "vllm"}, "judge.embedder: must be an embedder of a package or a program"),
        ({"embedder": "letters", "model": "x"}, "judge.embedder: an embedder uses no checkpoint"),
        ({"embedder": "letters", "pooling": "cls"}, "judge.embedder: an embedder uses no checkpoint"),
        ({"embedder_params": {"first": "x"}}, "judge.embedder_params: needs an embedder of a package"),
    ],
)
def test_an_embedder_that_a_judge_cannot_have_is_refused(params, said):
    with pytest.raises(JudgeError, match=said):
        create_judge("similarity", **params)


def test_a_judge_may_say_true_as_numpy_does_and_take_parameters_of_any_type():
    @winnow.judge("near")
    def near(output, targets, *, within=0.5, about: np.ndarray | None = None):
        return np.isclose(float(output), 1.0, atol=within)

    judge = create_judge("near", within=0.1, about=np.zeros(2))
    assert [judge.judge(Sample(output=text)).score for text in ("1.05", "2")] == [1.0, 0.0]
    assert {each.name for each in describe("near").parameters} >= {"within", "about"}


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_plug_in_that_cannot_be_loaded_is_listed_with_its_reason_and_hides_no_other(tmp_path, form):
    @winnow.selector("odd")
    class Odd(RowMean):
        objective = "best-mean"

        def __init__(self, config, *, size: "Unknown" = 1):  # noqa: F821 -- as strangers write it
            super().__init__(config)

    @winnow.judge("strange")
    def strange(output, targets, *, size: "Unknown" = 1):  # noqa: F821
        return 1.0

    Odd.objective = "nothing"
    options = ["--json"] if form == "json" else []
    for command, name in (("selectors", "odd"), ("judges", "strange")):
        shown = winnow_command(tmp_path, command, *options)
        assert shown.returncode == 0, shown.stderr
        assert name in shown.stdout
        assert ("champion" if command == "selectors" else "exact") in shown.stdout
    assert "odd" not in winnow.selector_names("best-mean")
    Odd.objective = "best-mean"
    assert "size" in {each.name for each in describe_selector("odd").parameters}


class Callable:
    def __call__(self, output, targets):
        return 1.0


async def later(output, targets):
    return 1.0


@pytest.mark.parametrize("given", [functools.partial(short, most=1), Callable(), len, later])
@pytest.mark.parametrize("decorator", [winnow.judge, winnow.pair_judge, winnow.selector, winnow.engine])
def test_what_is_no_plain_function_or_class_is_refused_in_a_sentence(decorator, given):
    with pytest.raises(SpecError, match="must be a plain function or a class, not "):
        decorator("mine")(given)


def only(output):
    """Takes too few."""


def more(a, b, targets, most):
    """Takes too many."""


@pytest.mark.parametrize(
    ("decorator", "function", "said"),
    [
        (winnow.judge, only, "only(output) cannot be called as only(output, targets) (too many positional"),
        (
            winnow.pair_judge,
            more,
            "as more(a, b, targets) (missing a required argument: 'most'); put further",
        ),
    ],
)
def test_a_function_that_cannot_be_called_as_a_judge_is_refused_before_anything_is_generated(
    decorator, function, said
):
    with pytest.raises(SpecError, match=re.escape(said)):
        decorator(function)


def test_a_storage_that_is_no_url_is_named(tmp_path):
    for call in (
        lambda: winnow.run({"name": "a"}, storage=tmp_path / "winnow.db"),
        lambda: winnow.select(lambda *_: 1.0, [1, 2], [1], storage=tmp_path / "winnow.db"),
    ):
        with pytest.raises(SpecError, match=r"storage is .*; give the URL of a database"):
            call()
