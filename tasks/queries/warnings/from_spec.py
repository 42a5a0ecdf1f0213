"""The kinds of warnings, and those that need nothing but what a campaign's file says."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.engines.chat import hides_thoughts
from winnow.tasks.engines.known_providers import OWN_TOKENS
from winnow.tasks.spec.judge_tree import (
    JUDGES,
    JudgeNode,
    judge_tree,
    judging_fingerprints,
    judging_models,
    model_name,
)
from winnow.tasks.text.phrases import list_of

Kind = Literal[
    "all-zero",
    "all-equal",
    "truncated",
    "refused",
    "thoughts",
    "in-thoughts",
    "no-thoughts",
    "hidden-thoughts",
    "begun-twice",
    "empty",
    "stop-ignored",
    "structure",
    "several-labels",
    "zero-holds-target",
    "zero-unread",
    "zero-all-equal",
    "zero-other",
    "no-answer",
    "one-example",
    "own-judge",
    "judge-changed",
    "one-side",
    "twice",
    "cut-reply",
    "no-probabilities",
    "other-engine",
]
"""The subject of a warning:

* all-zero: no output got any point.
* all-equal: every output got the same score.
* truncated: texts were ended by max_tokens or the context window.
* refused: a candidate's requests were refused, or answered by a call of a tool.
* thoughts, in-thoughts, empty, stop-ignored, structure: see `tasks.campaign.outputs.Fault`.
* no-thoughts: a model's reasoning is to be told apart from its outputs, and none was found.
* hidden-thoughts: the tags around a model's reasoning are special tokens, which texts are without.
* begun-twice: a prompt spells out the token that begins a text, and the model is given it in any case.
* several-labels: outputs hold several of the labels, each of which the judge would find.
* zero-holds-target: a candidate never got a point, and its outputs hold their targets.
* zero-unread: a candidate never got a point, and the judge could read none of its outputs.
* zero-all-equal: a candidate never got a point, and its outputs are all the same.
* zero-other: a candidate never got a point, for no cause that shows: worth a first look only.
* no-answer: texts hold no answer, and count as wrong or as unscored, as the judge was told.
* cut-reply: replies of models that judge were ended by max_tokens before they came to a verdict.
* no-probabilities: a model that rates outputs told no probabilities, so that it was asked again for texts.
* one-side: every duel was won by the side that was shown first, or second.
* own-judge: a model judges outputs of its own.
* judge-changed: a judge of Winnow gives other verdicts by now than when the campaign began.
* twice: two models, prompts, guardrails or generate_configs differ in nothing but their names.
* other-engine: a model's first and last texts were written by different engines.
* one-example: without one of the examples, the best and the second would be much closer, or change places.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignWarning:
    """One thing that may be wrong."""

    kind: Kind
    sentence: str
    """The finding, and what to check."""
    about: tuple[str, ...] = ()
    """The candidates that it names, if it is about some of them."""
    unread: int = 0
    """Texts without an answer that it explains."""


CHECK_FIRST: dict[Kind, str] = {
    "zero-holds-target": "scored 0, though outputs hold the target",
    "zero-unread": "scored 0, and the judge could not read the outputs",
    "zero-all-equal": "scored 0, and wrote the same each time",
    "empty": "wrote empty outputs",
    "in-thoughts": "ended within its thoughts",
    "truncated": "was cut off",
    "structure": "ignored its structured_output",
}
"""Findings by which a candidate's score may be wrong, in a few words for the headline."""


def check_first(warnings: Sequence[CampaignWarning]) -> list[str]:
    """A sentence that names candidates whose scores may be wrong; none if there are no such warnings."""
    found = [
        f"{list_of(each.about)} ({CHECK_FIRST[each.kind]})"
        for each in warnings
        if each.kind in CHECK_FIRST and each.about
    ]
    return [f"Check first: {'; '.join(found)}."] if found else []


def own_judge(identity: JsonView) -> CampaignWarning | None:
    """A warning if a model of the judge, or of a metric's, is a candidate's as well, by its weights.

    Args:
        identity: Identity of the campaign, as it is stored.
    """
    known = judging_fingerprints(identity)
    names = [model_name(each) for _, each in judging_models(identity)]
    judging = {known[name]: name for name in names if name in known}
    for candidate, fingerprint in identity.get("model_fingerprints", {}).items():
        if fingerprint in judging:
            return CampaignWarning(
                kind="own-judge",
                sentence=f"{judging[fingerprint]} judges its own outputs, those of {candidate}; models "
                "tend to prefer their own: use another judge model, or compare some verdicts "
                "with a human's",
            )
    return None


def hidden_thoughts(identity: JsonView) -> CampaignWarning | None:
    """A warning if a tokenizer takes the tags around thoughts out of texts, and no parser tells these apart.

    Args:
        identity: Identity of the campaign, as it is stored. Only a checkpoint in a folder is looked at.
    """
    for model in identity.get("models") or ():
        thinks = (model.get("chat_template_args") or {}).get("enable_thinking", True)
        is_plain = model.get("reasoning") is None and thinks is not False
        if is_plain and model.get("provider") in OWN_TOKENS and hides_thoughts(Path(model["model"])):
            return CampaignWarning(
                kind="hidden-thoughts",
                sentence=f"the tokenizer of {model['name']} calls <think> a special token, so that thoughts "
                "would be judged without their tags: set its reasoning: {parser: think-tags}",
            )
    return None


FIRST_TOKENS = (
    "<s>",
    "<bos>",
    "<|begin_of_text|>",
    "<|startoftext|>",
    "<\uff5cbegin\u2581of\u2581sentence\uff5c>",
    "[BOS]",
    "[CLS]",
)
"""Tokens that tokenizers put before a text, as prompts of other tools spell them."""


def begun_twice(identity: JsonView) -> CampaignWarning | None:
    """A warning if a prompt spells out the first token for a model that is given it in any case.

    Args:
        identity: Identity of the campaign, as it is stored. Of models whose prompts Winnow turns into tokens
            itself, only chats are looked at: other prompts are given no second one.
    """
    for prompt in identity.get("prompts") or ():
        spelled = next((each for each in FIRST_TOKENS if str(prompt.get("template")).startswith(each)), None)
        for model in identity.get("models") or () if spelled else ():
            if model.get("chat") or model.get("provider") not in OWN_TOKENS:
                whose = "its chat template" if model.get("chat") else "its server's tokenizer"
                return CampaignWarning(
                    kind="begun-twice",
                    sentence=f"prompt {prompt['name']} begins with {spelled}, and usually {whose} puts that "
                    f"before what {model['name']} is asked as well: take it out of the prompt",
                )
    return None


def judge_changed(name: str, identity: JsonView) -> CampaignWarning | None:
    """A warning if a judge of single outputs gives other verdicts by now than when a campaign began.

    Args:
        name: Name of the campaign, whose outputs can be scored again.
        identity: Its identity, as it is stored.
    """
    code = (identity.get("judge_identity") or {}).get("code") or {}
    for judge, now, before in _versions(judge_tree(identity.get("judge")), code):
        if now != before:
            return CampaignWarning(
                kind="judge-changed",
                sentence=f"judge {judge} reads some outputs differently by now (version {before} when this "
                f"campaign began, {now} now): winnow rescore {name} scores its texts anew",
            )
    return None


def _versions(judge: JudgeNode, code: JsonView) -> Iterator[tuple[str, int, int]]:
    """The names of a judge and the judges within it, their versions, and those that a campaign began with."""
    entry = JUDGES.get(judge.type or "")
    if entry is not None and entry.outputs is not None and isinstance(code.get("version"), int):
        yield str(judge.type), entry.outputs.version, code["version"]
    for inner, inner_code in zip(judge.inner, code.get("judges") or (), strict=False):
        yield from _versions(inner, inner_code)


LISTS = ("models", "prompts", "guardrails", "generate_configs")

WEIGHTS = ("model", "revision", "lora", "chat_template", "served_identity", "model_base_url")
"""Keys of a model that its fingerprint stands for, wherever a copy of it is."""


def there_twice(identity: JsonView) -> CampaignWarning | None:
    """A warning if two of the choices that make candidates are the same, so that these are asked the same.

    Args:
        identity: Identity of the campaign, as it is stored; where it excludes candidates, only one of two
            that are asked the same may be left.
    """
    if identity.get("exclude"):
        return None
    for kind in LISTS:
        known: dict[str, str] = {}
        for choice in identity.get(kind) or ():
            name = choice["name"]
            first = known.setdefault(json.dumps(_content(identity, kind, choice), sort_keys=True), name)
            if first != name:
                return CampaignWarning(
                    kind="twice",
                    sentence=f"{kind} {first} and {name} differ in nothing but their names: candidates "
                    "that differ only in these get the same requests, and comparisons are spent "
                    "on them twice; remove one",
                )
    return None


def _content(identity: JsonView, kind: str, choice: JsonView) -> JsonObject:
    """The contents of a choice without its name."""
    name = choice["name"]
    content = {key: value for key, value in choice.items() if key != "name"}
    if kind == "prompts":
        content["shown"] = identity.get("few_shot_examples", {}).get(name)
    if kind == "models":
        content = {key: value for key, value in content.items() if key not in WEIGHTS}
        content["fingerprint"] = identity.get("model_fingerprints", {}).get(name, name)
    return content
