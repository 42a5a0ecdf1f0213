"""Running cost of a candidate, and engines that may not reproduce their outputs.

Costs are for 1,000 examples. Outputs can differ between runs if they depend on the other requests of a batch.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from winnow.storage.json_types import JsonView
from winnow.storage.queries.costs import CandidateTexts, reported_by_candidate, texts_by_candidate
from winnow.storage.records.generations import engines_of
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.budget import price_weights, reporting_models
from winnow.tasks.campaign.look import Look
from winnow.tasks.candidates.text_rules import OWN_DRAWS, rules_of
from winnow.tasks.engines.known_providers import ELSEWHERE, FUNCTION, RECORDED
from winnow.tasks.spec.judge_tree import judging_models, model_name
from winnow.tasks.text.phrases import amount

EXAMPLES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCost:
    """Cost of running a candidate on `EXAMPLES` examples like the scored ones."""

    name: str
    seconds: float
    """Seconds of engine time without loading; outputs of one batch share its time."""
    tokens: float
    """Number of input and output tokens together."""
    price: float | None
    """Price, in the currency of the campaign's prices; None without prices."""


def running_costs(look: Look, names: Sequence[str]) -> tuple[RunningCost, ...]:
    """Running costs of those of the given candidates that have outputs."""
    found = texts_by_candidate(look.session, look.record.id, names)
    reports = bool(reporting_models(look.record.spec))
    reported = reported_by_candidate(look.session, look.record.id) if reports else {}
    return tuple(
        _running_cost(look.record, name, found[name], reported.get(name)) for name in names if name in found
    )


def _running_cost(
    campaign: CampaignRecord, name: str, made: CandidateTexts, reported: tuple[float, float] | None
) -> RunningCost:
    texts = EXAMPLES * (campaign.spec.get("samples") or {"n": 1})["n"]
    weights = price_weights(campaign, made.model)
    return RunningCost(
        name=name,
        seconds=texts * made.mean(0.0, 0.0, 1.0),
        tokens=texts * made.mean(1.0, 1.0),
        price=texts * made.mean(*weights)
        if weights is not None
        else None
        if reported is None
        else texts * reported[0],
    )


def running_words(costs: Sequence[RunningCost], *, is_of_program: bool) -> str:
    """Sentence with all these costs; for a program's function, only its time."""
    if is_of_program:
        said = "; ".join(f"{each.name} {_short(each.seconds)} s" for each in costs)
        return f"{amount(EXAMPLES)} examples: {said}; measured over the calls of its function so far"

    said = "; ".join(f"{each.name} {_cost_words(each)}" for each in costs)
    return f"{amount(EXAMPLES)} examples: {said}; at the measured speed, without loading"


def _cost_words(cost: RunningCost) -> str:
    priced = "" if cost.price is None else f", price {_short(cost.price)}"
    return f"{_short(cost.seconds)} s of engine time, {amount(round(cost.tokens))} tokens{priced}"


def _short(value: float) -> str:
    """Format with three significant digits, and whole numbers from 100 on."""
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


STEADY = (frozenset({"batch-invariant"}), frozenset({"cpu", "float32"}))
"""Sets of words in an engine's identity, any of which shows that outputs do not depend on the other requests
of a batch. The engine itself declares "batch-invariant". The other set was measured, for tokens drawn by
noise. On a CPU in float32, logits of Gemma 3 270M (with 262,144 tokens) differ by up to 5e-5 in groups of
other sizes. Of 3,600 first tokens drawn by noise none changed; of 36,000 along cumulated probabilities 279
did. On a GPU, libraries sum in an order that depends on the size of a batch, in float32 too.
"""


def unsteady_engines(look: Look) -> tuple[str, ...]:
    """Identities of a campaign's engines that may not reproduce their outputs.

    If engines receive whole groups of requests, those of this machine answer each group in the same way. A
    server also has other clients. An engine with unknown precision counts as not reproducible if outputs of
    several rounds were generated together.
    """
    by_model = engines_by_model(look)
    return unsteady_among((each for engines in by_model.values() for each in engines), look.record.spec)


def unsteady_among(engines: Iterable[str], spec: JsonView) -> tuple[str, ...]:
    """Those of the given engines that may not reproduce their outputs, sorted."""
    streams, ahead = spec.get("streaming", True), bool(spec.get("lookahead"))
    cumulates = rules_of(spec) < 1 and _samples(spec)
    found = {
        each for each in engines if _is_unsteady(each, streams=streams, ahead=ahead, cumulates=cumulates)
    }
    return tuple(sorted(found))


def _samples(value: object) -> bool:
    """Whether a spec has a temperature above 0 at any depth."""
    if isinstance(value, Mapping):
        told = value.get("temperature")
        return (isinstance(told, int | float) and told > 0.0) or any(map(_samples, value.values()))
    return isinstance(value, list | tuple) and any(map(_samples, value))


def engines_by_model(look: Look) -> dict[str, list[str]]:
    """Engines of the first and last output of each model, judge models included."""
    models = [*look.record.spec.get("models", []), *(model for _, model in judging_models(look.record.spec))]
    # Functions are skipped: each is a model of its own, there can be thousands, and they score call by call.

    written = [model_name(each) for each in models if each.get("provider") != FUNCTION]
    return engines_of(look.session, look.record.id, tuple(written))


def _is_unsteady(identity: str, *, streams: bool, ahead: bool, cumulates: bool) -> bool:
    """Whether an engine may not reproduce its outputs.

    Args:
        identity: The engine's identity.
        streams: Whether new requests join those that the engine is working on.
        ahead: Whether several rounds are in flight.
        cumulates: Whether tokens drawn by Winnow are drawn along their cumulated probabilities.
    """
    provider, *words = identity.split(" ")
    if provider == RECORDED:
        return False
    if provider in ELSEWHERE:
        return True
    if not streams:
        return False
    if provider in OWN_DRAWS and cumulates:
        return True
    if any(steady <= set(words) for steady in STEADY):
        return False
    return ahead or provider in ("vllm", "transformers")
