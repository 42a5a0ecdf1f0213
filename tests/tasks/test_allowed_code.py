"""Code of a campaign asks where it is about to run, so that a command that reads a database runs none."""

import importlib.util
import json
import os
import py_compile
import re
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from scripted_engines import provide_all
from stepwise_campaigns import run_campaign, write_campaign
from stored_campaigns import new_database

from winnow.algorithms.state.plugin_registry import Registered
from winnow.flows.run import trust_prompt
from winnow.flows.run.trust_prompt import Trust, approving, trust_file
from winnow.storage.engine.database import open_database
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.engines.providers import EngineSettings, start_engine
from winnow.tasks.errors import DatasetError, JudgeError, SpecError
from winnow.tasks.harness.inspect.reading import act_of_task, read_task
from winnow.tasks.harness.lm_eval.reading import task_rows
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge
from winnow.tasks.plugins import allowed_code
from winnow.tasks.plugins.allowed_code import NotAllowed, ask_of, digests_of
from winnow.tasks.plugins.source_code import file_digests
from winnow.tasks.queries.check_texts import findings
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.trust import permissions
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.sections.dataset import InspectSpec, LmEvalSpec

JUDGE = (
    'import pathlib\npathlib.Path(__file__).with_name("ran").write_text("")\ndef f(sample):\n    return 1.0\n'
)


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A judge's file that leaves a trace where it runs, in a process that asks before code runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    (tmp_path / "j.py").write_text(JUDGE)
    yield tmp_path / "j.py"
    ask_of(None)


@pytest.fixture
def stored(file, monkeypatch):
    """The folder of a campaign that was stored, with a judge that asks a model beside one that runs code."""
    folder = file.parent
    provide_all(monkeypatch)
    model = {"name": "r", "provider": "grader", "model": str(folder / "judge")}
    parts = [
        {"type": "python", "path": "j.py:f"},
        {"type": "llm", "rubric": "It is nice.", "scale": "yes/no", "model": model},
    ]
    metric = {"name": "both", "judge": {"type": "all", "judges": parts}}
    run_campaign(
        new_database(folder / "w.db"), write_campaign(folder, "c", numbers=range(2), metrics=[metric])
    )
    (folder / "ran").unlink()
    return folder


def test_a_judge_runs_no_code_that_nobody_has_allowed(file):
    judge = create_judge("python", path="j.py:f")
    asked = []
    ask_of(lambda act, digests: asked.append((act, *digests)))
    for use in (lambda: judge.judge(Sample(output="x", targets=("x",))), lambda: judge.try_out()):
        with pytest.raises(NotAllowed, match=r"run 'f' of the Python file .* winnow validate FILE --trust"):
            use()
    assert asked == [(f"run 'f' of the Python file {str(file)!r}", "j")] * 2
    assert not (file.parent / "ran").exists()
    ask_of(lambda *act: True)
    assert judge.judge(Sample(output="x", targets=("x",))).score == 1.0


def test_programs_of_models_are_not_run_unless_somebody_has_allowed_it(file):
    judge = create_judge("code", allow_code=True)
    ask_of(lambda *act: False)
    with pytest.raises(NotAllowed, match="run programs that models write, in a sandbox"):
        judge.judge(Sample(output="x = 1", targets=("assert x",)))


def test_checking_a_database_runs_no_code_and_says_so(stored):
    with (
        closing(open_database(f"sqlite:///{stored / 'w.db'}", read_only=True)) as database,
        database.reading() as session,
    ):
        ask_of(lambda *act: False)
        told = list(findings(session))
        assert not (stored / "ran").exists()
        ask_of(lambda *act: True)
        assert list(findings(session)) == []
    assert told
    assert not any(each.is_wrong for each in told)
    assert all("it would run 'f' of the Python file" in each.sentence for each in told)


def test_commands_ask_before_code_runs(stored):
    with closing(sqlite3.connect(stored / "w.db")) as connection, connection:
        connection.execute("UPDATE campaigns SET spec = replace(spec, 'grader', 'transformers')")
    check = [sys.executable, "-m", "winnow.flows.main", "db", "check", "--storage", "sqlite:///w.db"]
    result = subprocess.run(check, cwd=stored, env={**os.environ}, capture_output=True, text=True)
    assert "which is not permitted here" in result.stdout
    assert not (stored / "ran").exists()


def test_what_was_allowed_and_could_not_be_remembered_runs_in_this_process(file, monkeypatch):
    path = write_campaign(file.parent, "c", judge={"type": "python", "path": "j.py:f"})
    provide_all(monkeypatch)
    ask_of(trust_prompt.allows)
    with pytest.raises(NotAllowed):
        create_judge("python", path="j.py:f").try_out()
    (file.parent / "configuration").write_text("in the way of a folder")
    check_campaign_file(str(path), [], approving(Trust(everything=True)))
    assert (file.parent / "ran").exists()


def allow(file, trust=None):
    path = write_campaign(file.parent, "c", judge={"type": "python", "path": "j.py:f"})
    check_campaign_file(str(path), [], approving(trust or Trust()))


def test_other_code_at_an_allowed_path_is_asked_for_with_what_changed(file, monkeypatch):
    provide_all(monkeypatch)
    (file.parent / "helper.py").write_text("HELP = 1\n")
    file.write_text("import helper\n" + JUDGE)
    with pytest.raises(SpecError, match=r"run 'f' of the Python file .* \(judge\.path\), which is not"):
        allow(file)
    allow(file, Trust(everything=True))
    allow(file)
    for name, content, changed in [
        ("j.py", JUDGE, "'helper', 'j'"),
        ("j.py", "import helper, colorsys\n" + JUDGE, "'helper', 'j'"),
        ("colorsys.py", "", "'colorsys'"),  # in the place of the library's
        ("helper.py", "HELP = 2\n", "'helper'"),
    ]:
        (file.parent / name).write_text(content)
        (file.parent / "ran").unlink(missing_ok=True)
        with pytest.raises(SpecError, match=rf"\(judge\.path; changed since it was allowed: {changed}\)"):
            allow(file)
        assert not (file.parent / "ran").exists()
        allow(file, Trust(everything=True))
        allow(file)


@pytest.mark.parametrize(
    "code",
    [
        "import importlib\nA = importlib.import_module('helper')\n",
        "from importlib import import_module\ndef g():\n    return import_module('helper')\n",
        "A = __import__('helper')\n",
        "A = __import__('part.inner')\n",
    ],
)
def test_a_module_that_a_call_imports_by_name_is_looked_at_too(file, monkeypatch, code):
    provide_all(monkeypatch)
    (file.parent / "part").mkdir()
    for module in ("helper.py", "part/inner.py"):
        (file.parent / module).write_text("")
    file.write_text(code + JUDGE)
    before = file_digests(file)
    allow(file, Trust(everything=True))
    for module in ("helper.py", "part/inner.py"):
        (file.parent / module).write_text("raise SystemExit\n")
    with pytest.raises(SpecError, match=r"changed since it was allowed: '(helper|part\.inner)'"):
        allow(file)
    assert file_digests(file) == before == {"j": before["j"]}  # as stored versions of judges have it


def test_what_was_allowed_before_its_code_was_looked_at_is_asked_for_once_more(file, monkeypatch):
    provide_all(monkeypatch)
    allow(file, Trust(everything=True))
    kept = json.loads(trust_file().read_text())
    assert list(kept["digests"]) == kept["trusted"]
    trust_file().write_text(json.dumps({"trusted": kept["trusted"]}))
    with pytest.raises(SpecError, match="its code was not looked at when it was allowed"):
        allow(file)
    allow(file, Trust(everything=True))
    assert json.loads(trust_file().read_text()) == kept


def test_a_judge_that_changed_after_it_was_allowed_is_not_run(file, monkeypatch):
    provide_all(monkeypatch)
    allow(file, Trust(everything=True))
    ask_of(trust_prompt.allows)
    file.write_text(JUDGE + "# other code")
    (file.parent / "ran").unlink()
    with pytest.raises(NotAllowed):
        create_judge("python", path="j.py:f").try_out()
    assert not (file.parent / "ran").exists()


def test_code_that_was_compiled_beforehand_is_not_run_in_the_place_of_its_source(file, tmp_path):
    (file.parent / "helper.py").write_text("HELP = 0.25\n")
    file.write_text("from helper import HELP\ndef f(sample):\n    return HELP\n")
    for name, other in [("j.py", "def f(sample):\n    return 1.0\n"), ("helper.py", "HELP = 1.0\n")]:
        source = tmp_path / "other.py"
        source.write_text(other)
        compiled = importlib.util.cache_from_source(str(file.parent / name))
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(source), cfile=compiled, invalidation_mode=mode)
    judge = create_judge("python", path="j.py:f")
    assert judge.judge(Sample(output="x", targets=("x",))).score == 0.25


def test_a_new_file_takes_the_name_of_no_module_that_a_library_imports(file, monkeypatch):
    provide_all(monkeypatch)
    file.write_text(
        "import html.parser\n" + JUDGE.replace("1.0", "float(hasattr(html.parser, 'HTMLParser'))")
    )
    allow(file, Trust(everything=True))
    (file.parent / "_markupbase.py").write_text("class ParserBase: pass\nopen('pwned', 'w')\n")
    allow(file)
    assert create_judge("python", path="j.py:f").judge(Sample(output="x")).score == 1.0
    assert not (file.parent / "pwned").exists()


def test_code_imports_what_lies_beside_it_by_computed_names_and_in_folders(file):
    (file.parent / "named.py").write_text("from part import inner\nA = inner.A\n")
    (file.parent / "part").mkdir()
    (file.parent / "part" / "inner.py").write_text("A = 0.25\n")
    code = "from importlib import import_module\nA = import_module('na' + 'med').A\n"
    file.write_text(f"{code}def f(sample):\n    return A\n")
    judge = create_judge("python", path="j.py:f")
    assert judge.judge(Sample(output="x", targets=("x",))).score == 0.25


def test_what_is_compiled_beside_the_source_of_a_linked_package_is_not_run(file):
    lies = file.parent.parent / f"{file.parent.name}-package"
    lies.mkdir()
    (lies / "helper.py").write_text("HELP = 0.25\n")
    (file.parent / "package").symlink_to(lies)
    file.write_text("from package.helper import HELP\ndef f(sample):\n    return HELP\n")
    other = file.parent / "other.py"
    other.write_text("HELP = 1.0\n")
    compiled = importlib.util.cache_from_source(str(lies / "helper.py"))
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(other), cfile=compiled, invalidation_mode=mode)
    assert create_judge("python", path="j.py:f").judge(Sample(output="x")).score == 0.25


def test_code_that_was_changed_since_it_was_looked_at_is_not_begun(file):
    (file.parent / "helper.py").write_text("")
    file.write_text("import helper\n" + JUDGE)
    judge = create_judge("python", path="j.py:f")
    (file.parent / "helper.py").write_text("open('pwned', 'w')\n")
    with pytest.raises(JudgeError, match=r"helper\.py was changed after the campaign started or resumed"):
        judge.try_out()
    assert not (file.parent / "pwned").exists()


def test_code_of_a_model_is_looked_at_through_links_and_in_the_folders_that_it_names(file):
    model, linked, named = (file.parent / name for name in ("model", "linked", "named"))
    for each in (model, linked, named):
        each.mkdir()
        (each / "modeling.py").write_text("A = 1\n")
    (model / "code").symlink_to(linked)
    (linked / "round").symlink_to(model)
    (model / "config.json").write_text(json.dumps({"auto_map": {"AutoConfig": ["named--modeling.C", None]}}))
    args = {"trust_remote_code": True, "tokenizer": "named"}
    keys = {"models": [{"name": "m", "model": "model", "provider": "vllm", "model_args": args}]}
    of_model, of_tokenizer = permissions(CampaignSpec.model_validate(BASE | keys), file.parent)
    files = ["../named/modeling.py", "code/modeling.py", "config.json", "modeling.py"]
    assert sorted(of_model.digests) == files
    assert list(of_tokenizer.digests) == ["modeling.py"]


def test_code_that_cannot_be_read_is_never_what_was_allowed_before(file, monkeypatch):
    model = file.parent / "model"
    model.mkdir()
    (model / "gone.py").symlink_to("nowhere")
    (model / "modeling.py").write_text("A = 1\n")
    args = {"model_args": {"trust_remote_code": True}, "provider": "vllm"}
    keys = BASE | {"models": [{"name": "m", "model": "model", **args}]}
    spec = CampaignSpec.model_validate(keys)
    assert list(permissions(spec, file.parent)[0].digests) == ["modeling.py"]
    monkeypatch.setattr("pathlib.Path.read_bytes", raises(PermissionError()))
    monkeypatch.setattr("winnow.tasks.plugins.allowed_code.file_digests", raises(PermissionError()))
    assert permissions(spec, file.parent) != permissions(spec, file.parent)
    assert digests_of(file) != digests_of(file)


def raises(error):
    def call(*_, **__):
        raise error

    return call


def test_a_checkpoint_whose_links_lead_anywhere_is_refused(file, monkeypatch):
    monkeypatch.setattr(allowed_code, "MOST_FOLDERS", 2)
    (file.parent / "model" / "a" / "b").mkdir(parents=True)
    args = {"model_args": {"trust_remote_code": True}, "provider": "vllm"}
    spec = CampaignSpec.model_validate(BASE | {"models": [{"name": "m", "model": "model", **args}]})
    with pytest.raises(SpecError, match="holds more than 2 folders"):
        permissions(spec, file.parent)


def test_code_beside_weights_is_looked_at_too(file):
    model = file.parent / "model"
    model.mkdir()
    (model / "modeling.py").write_text("A = 1\n")
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_text("weights")
    args = {"model_args": {"trust_remote_code": True}, "provider": "vllm"}
    keys = BASE | {"models": [{"name": "m", "model": "model", **args}]}
    [of_model] = permissions(CampaignSpec.model_validate(keys), file.parent)
    assert list(of_model.digests) == ["config.json", "modeling.py"]
    [hub] = permissions(
        CampaignSpec.model_validate(BASE | {"models": [{"name": "m", "model": "o/n", **args}]}), file.parent
    )
    assert hub.digests is None


BASE = {
    "name": "c",
    "objective": "best-mean",
    "prompts": [{"name": "p", "template": "{{ input }}"}],
    "dataset": {"path": "d.jsonl"},
    "judge": {"type": "exact"},
    "selector": {"name": "ucb-e"},
    "stopping": {"budget": 64, "delta": 0.1},
}


TASK = """\
task: t
dataset_path: json
dataset_kwargs: {data_files: {test: rows.jsonl}}
test_split: test
doc_to_text: !function j.f
doc_to_target: a
"""


def test_a_task_runs_no_function_that_nobody_has_allowed(file):
    (file.parent / "t.yaml").write_text(TASK)
    (file.parent / "rows.jsonl").write_text('{"q": "1", "a": "1"}\n')
    spec = LmEvalSpec(task="t.yaml", functions=[f"{file}:f"])
    asked = []
    ask_of(lambda act, digests: asked.append((act, *digests)))
    with pytest.raises(NotAllowed, match=r"run 'f' of the Python file .* winnow validate FILE --trust"):
        list(task_rows(spec, is_allowed=True))
    assert asked == [(f"run 'f' of the Python file {str(file)!r}", "j")]
    ask_of(lambda *act: True)
    with pytest.raises(DatasetError, match=r"must give a text, got 1\.0"):
        list(task_rows(spec, is_allowed=True))
    assert (file.parent / "ran").exists()


@pytest.mark.parametrize("task", ["j.py@f", "j.py", "package/task"])
def test_a_task_of_inspect_is_not_run_unless_somebody_has_allowed_it(file, monkeypatch, task):
    monkeypatch.setattr("winnow.tasks.harness.inspect.reading._reading_request", None)
    spec = InspectSpec(task=task, python=sys.executable)
    told = CampaignSpec.model_validate(CAMPAIGN | {"dataset": {"inspect": spec.model_dump()}})
    [needed] = permissions(told, file.parent)
    asked = []
    ask_of(lambda *act: asked.append(act))
    with pytest.raises(NotAllowed, match="which is not permitted here"):
        read_task(spec, is_allowed=True)
    assert asked == [(needed.text, needed.digests)]


def test_an_interpreter_in_the_folder_is_code_too(file):
    python = file.parent / "python"
    python.write_text("#!/bin/sh")
    task = InspectSpec(task="j.py", python="./python")
    assert list(act_of_task(task, file.parent).digests) == ["j", str(python)]
    python.unlink()
    python.symlink_to(sys.executable)
    assert list(act_of_task(task, file.parent).digests) == ["j"]


def test_what_is_compiled_beside_the_code_of_a_task_is_not_run(file, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(file.parent / "state"))
    (file.parent / "inspect_ai" / "_eval").mkdir(parents=True)
    loads = "import helper\ndef load_task_spec(spec, args):\n    raise ValueError(helper.A)\n"
    (file.parent / "inspect_ai" / "_eval" / "loader.py").write_text(loads)
    (file.parent / "inspect_ai" / "_util").mkdir()
    registry = "registry_info = registry_lookup = registry_params = None\n"
    (file.parent / "inspect_ai" / "_util" / "registry.py").write_text(registry)
    monkeypatch.setenv("PYTHONPATH", str(file.parent))
    (file.parent / "helper.py").write_text("A = 'source'\n")
    other = file.parent / "other.py"
    other.write_text("A = 'compiled'\n")
    compiled = importlib.util.cache_from_source(str(file.parent / "helper.py"))
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(other), cfile=compiled, invalidation_mode=mode)
    ask_of(lambda *act: True)
    with pytest.raises(DatasetError, match="ValueError: source"):
        read_task(InspectSpec(task="j.py", python=sys.executable), is_allowed=True)


CAMPAIGN = {
    "name": "c",
    "objective": "best-mean",
    "models": [{"name": "m", "provider": "openai", "model": "q"}],
    "prompts": [{"name": "p", "template": "{{ input }}"}],
    "judge": {"type": "exact"},
    "selector": {"name": "ucb-e"},
    "stopping": {"budget": 64, "delta": 0.1},
}


@pytest.fixture
def started(monkeypatch):
    """The models whose engines were started, of a plug-in and of Winnow."""
    models = []

    def start(model, settings):
        models.append(model)

    entry = Registered("theirs", "winnow.engines", start, value="theirs:start", source="")
    monkeypatch.setattr("winnow.tasks.engines.providers.plugins", lambda group: {"theirs": entry})
    monkeypatch.setattr("winnow.tasks.engines.transformers.engine.start", start)
    return models


@pytest.mark.parametrize("provider", ["theirs", "transformers"])
@pytest.mark.parametrize(
    ("args", "act"),
    [
        ({"trust_remote_code": True}, "run the code that comes with the model {folder!a} at revision 'abc'"),
        ({"worker_cls": "evil.W"}, "set the engine's 'worker_cls' to 'evil.W', which may run code or"),
        ({"hf_overrides": {"a": 1}}, "set the engine's 'hf_overrides' to {{'a': 1}}, which may run code or"),
    ],
)
def test_an_engine_loads_no_code_that_nobody_has_allowed(file, started, provider, args, act):
    folder = file.parent / "checkpoint"
    folder.mkdir()
    (folder / "modeling.py").write_text("")
    model = ModelRef(name="m", provider=provider, model="checkpoint", revision="abc", model_args=args)
    settings = EngineSettings(log_folder=file.parent)
    asked = {}
    ask_of(lambda act, digests: asked.update({act: digests}))
    with pytest.raises(NotAllowed, match=re.escape(f"it would {act.format(folder=str(folder))}")):
        start_engine(model, settings)
    assert not started
    beforehand = [
        each
        for revision in ("abc", None)
        for each in permissions(
            CampaignSpec.model_validate(
                {
                    **CAMPAIGN,
                    "dataset": {"path": "d.jsonl"},
                    "models": [
                        {"name": "m", "model": "checkpoint", "revision": revision, "model_args": args},
                    ],
                }
            ),
            file.parent,
        )
    ]
    assert asked == {each.text: each.digests for each in beforehand}
    ask_of(lambda act, digests: act == beforehand[-1].text)  # of any revision, as the file may have it
    start_engine(model, settings)
    harmless = ModelRef(name="m", provider=provider, model="checkpoint", model_args={"dtype": "float16"})
    ask_of(lambda *act: False)
    start_engine(harmless, settings)
    assert len(started) == 2
