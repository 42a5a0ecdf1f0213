"""What is said where packages of an extra are not installed, and that the extras install them."""

import importlib.util
import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.engines.providers import EngineSettings, require_provider, start_engine
from winnow.tasks.plugins.extras import NAMES, PACKAGES, ExtraMissing, require

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def distributions(extra):
    """The distributions that an extra of pyproject.toml names."""
    listed = PROJECT["optional-dependencies"][extra]
    return {re.match(r"[\w.-]+", line)[0] for line in listed}


def normal(distribution):
    """Its name as indexes know it; vLLM has two."""
    return distribution.replace("_", "-").lower().removesuffix("-cpu")


@pytest.fixture(scope="module")
def providers():
    """The distributions that each installed module is of."""
    return packages_distributions()


@pytest.mark.parametrize("extra", PACKAGES)
def test_the_extra_that_is_named_installs_what_is_missing(extra, providers):
    named = re.findall(r"winnow-llm\[(\w+)\]", NAMES.get(extra, f"winnow-llm[{extra}]"))
    for module in PACKAGES[extra]:
        for name in named:
            assert set(map(normal, distributions(name))) & set(map(normal, providers[module]))


def test_no_package_of_an_extra_is_in_the_base():
    base = {re.match(r"[\w.-]+", line)[0] for line in PROJECT["dependencies"]}
    optional = {name for extra in PROJECT["optional-dependencies"] for name in distributions(extra)}
    assert not base & optional


@pytest.fixture
def without(monkeypatch):
    """Hides modules: they are not installed from then on."""

    def hide(*modules):
        found = importlib.util.find_spec
        monkeypatch.setattr(
            "winnow.tasks.plugins.extras.find_spec", lambda name: None if name in modules else found(name)
        )

    return hide


def test_what_is_missing_is_named_with_the_command_that_installs_it(without):
    require("view", "winnow view")
    without("streamlit")
    with pytest.raises(ExtraMissing) as raised:
        require("view", "winnow view")
    assert str(raised.value) == (
        "winnow view needs Streamlit, which is not installed; run: pip install 'winnow-llm[view]'"
    )
    without("streamlit", "plotly")
    with pytest.raises(ExtraMissing, match="needs Streamlit and Plotly, which are not installed"):
        require("view", "winnow view")


@pytest.mark.parametrize(
    ("provider", "module", "named"),
    [
        ("litellm", "litellm", "'winnow-llm[litellm]'"),
        ("transformers", "torch", "'winnow-llm[local]'"),
        ("vllm", "vllm", "'winnow-llm[gpu]' (on a machine without CUDA: 'winnow-llm[cpu]')"),
    ],
)
def test_an_engine_that_misses_its_packages_is_not_begun(tmp_path, without, provider, module, named):
    without(module)
    model = ModelRef(name="small", provider=provider, model=str(tmp_path))
    with pytest.raises(ExtraMissing) as raised:
        start_engine(model, EngineSettings(log_folder=tmp_path))
    assert str(raised.value).startswith(f"model 'small' (provider: {provider}) needs ")
    assert str(raised.value).endswith(f"pip install {named}")


def test_a_server_needs_no_extra(without):
    without("torch", "transformers", "vllm")
    require_provider(ModelRef(name="far", provider="openai", model="gpt"))
