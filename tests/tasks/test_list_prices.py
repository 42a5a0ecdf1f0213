"""Models of public APIs have list prices where the file gives none, and never beside prices of its own."""

import json

import pytest
from campaigns import winnow

from winnow.tasks.engines import list_prices
from winnow.tasks.engines.list_prices import EXTRACT, EXTRACT_OF, list_price, source_of_prices
from winnow.tasks.engines.protocol import ModelRef

SPEC = """\
name: apis
models: [gpt-4o-mini, gpt-4.1]
prompts: ["{{ input }}"]
dataset: data.csv
judge:
  type: llm
  rubric: "Is it right?"
  scale: 1..5
  model: {name: grader, provider: openai, model: gpt-4o, chat: true}
"""


@pytest.fixture
def table(monkeypatch, tmp_path):
    """What LiteLLM's distribution holds, written by a test; without a call none is installed."""
    list_prices._table.cache_clear()

    class Litellm:
        version = "9.9"

        def locate_file(self, name):
            return tmp_path / "table.json"

    def write(text):
        (tmp_path / "table.json").write_text(text)

    monkeypatch.setattr(list_prices, "distribution", lambda name: Litellm())
    yield write
    list_prices._table.cache_clear()


def of(model, provider="openai", **keys):
    return list_price(ModelRef(name="m", provider=provider, model=model, **keys))


def test_the_extract_has_prices_of_a_million_tokens(table):
    assert source_of_prices() == EXTRACT_OF
    assert of("gpt-4o") == pytest.approx((2.5, 10.0))
    assert of("openai/gpt-4o", "litellm") == of("gpt-4o")
    assert of("anthropic/claude-sonnet-4-5", "litellm") == of("claude-sonnet-4-5", "litellm") is not None
    assert of("gemini/gemini-2.5-pro", "litellm") is not None
    for entry in json.loads(EXTRACT.read_text()):
        prices = of(entry, "litellm")
        assert prices is not None
        assert all(0.0 < price < 1000.0 for price in prices)


def test_a_server_of_ones_own_has_no_list_price(table):
    assert of("gpt-4o", model_base_url="http://127.0.0.1:8000/v1") is None
    assert of("gpt-4o", "vllm") is None
    assert of("unheard-of") is None


def test_the_table_of_the_installed_litellm_is_read_instead(table):
    table(json.dumps({"new": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}}))
    assert source_of_prices() == "LiteLLM 9.9"
    assert of("new") == pytest.approx((1.0, 2.0))
    assert of("gpt-4o") is None


@pytest.mark.parametrize("text", ["", "{", "\udcff"])
def test_a_table_that_cannot_be_read_is_left_alone(table, text, tmp_path):
    table("")
    (tmp_path / "table.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert source_of_prices() == EXTRACT_OF


@pytest.mark.parametrize("price", [None, "1", -1.0, float("inf"), float("nan"), {}])
def test_an_entry_without_two_prices_has_none(table, price):
    table(json.dumps({"odd": {"input_cost_per_token": price, "output_cost_per_token": 1.0}}))
    assert of("odd") is None


def planned(folder, *changes):
    """What `winnow plan` says of the price."""
    (folder / "apis.yaml").write_text(SPEC)
    (folder / "data.csv").write_text("id,input,target\n" + "".join(f"{i},q{i},a\n" for i in range(30)))
    settings = [part for change in changes for part in ("--set", change)]
    ran = winnow(folder, "plan", "apis.yaml", "--json", *settings, "--seeds", "2", "--workers", "1")
    assert ran.returncode == 0, ran.stderr
    expected = json.loads(ran.stdout)["expected"]
    return expected["price"], expected["currency"]


AGENT = "models=[gpt-4o-mini, {name: mine, provider: command, command: [cat], version: '1'}]"


def test_no_currency_is_named_for_what_agents_report(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "never sent")
    assert planned(tmp_path, AGENT)[1] is None
    assert planned(tmp_path, AGENT, "execution.currency=USD")[1] == "USD"


OWN = "execution.prices={gpt-4o-mini: {input: 1e6, output: 0}, gpt-4.1: {input: 1e6, output: 0}}"


def test_list_prices_stand_beside_no_price_of_another_currency(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "never sent")
    listed, currency = planned(tmp_path)
    assert 0.0 < listed < 1.0
    assert currency == "USD"
    assert planned(tmp_path, "execution.currency=EUR") == (None, "EUR")
    assert planned(tmp_path, OWN) == (None, None)  # nobody knows the currency, and the judge has no price
    assert planned(tmp_path, OWN, "execution.currency=EUR") == (None, "EUR")
    own, currency = planned(tmp_path, OWN, "execution.currency=USD")
    assert own > 1.0  # the file's own prices are used, and the judge has its list price
    assert currency == "USD"
