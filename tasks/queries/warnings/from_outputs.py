"""Warnings from outputs: wrong text was judged, or a candidate gives no answers.

Only each candidate's first outputs are read, `MOST_LOOKED_AT` per campaign in total, so the time does not
grow with the campaign. A warning names its candidates, eliminated ones first.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal

from winnow.storage.json_types import JsonView, Row
from winnow.storage.objectives import traits_of
from winnow.storage.queries import campaign_views
from winnow.storage.queries.candidate_outputs import (
    CandidateCounts,
    JudgedOutput,
    counts_by_candidate,
    settings_of,
    some_outputs,
    targets_of,
)
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.campaign.outputs import Fault, Output, Settings, faults_of, has_think_tags, judged_text
from winnow.tasks.data.labels import as_options, labels_of
from winnow.tasks.engines.chat import END, START
from winnow.tasks.engines.known_providers import FUNCTION
from winnow.tasks.judges.rules.reading.final_text import without_thoughts
from winnow.tasks.judges.rules.string_match import normalise
from winnow.tasks.queries.warnings.from_spec import CampaignWarning, Kind
from winnow.tasks.spec.judge_tree import judge_tree
from winnow.tasks.spec.stored_spec import cuts_at_stop
from winnow.tasks.text.phrases import example_name, list_of, percentage
from winnow.tasks.text.printable import one_line

MOST_FLAGGED = 0.02
"""Share of outputs that were cut off, or have no answer, above which there is a warning."""

MOST_OF_ONE = 0.5
"""Share of one candidate's outputs at which there is a warning, even if the share of all outputs is small."""

NEARLY_ALL = 0.8
"""Share of the faulty outputs at which a few candidates with these outputs are named."""

MOST_NAMED = 3
"""Maximum number of candidates that are named for having nearly all faulty outputs."""

FEWEST_OF_ONE = 2
"""Minimum number of a candidate's outputs for a warning about it alone."""

MOST_LOOKED_AT = 2_000
"""Maximum number of outputs inspected per campaign."""

MOST_EXAMPLES = 5_000
"""Maximum number of examples whose targets are inspected for labels."""

MOST_CANDIDATES = 500
"""Maximum number of candidates inspected; those with only zeros come first."""

FEWEST_WITHOUT_POINT = 4
"""Minimum number of outputs of a candidate with only zeros before a cause is searched for, while it is in
question.
"""

HOLDS_TARGET = 0.25
"""Share of a candidate's outputs that contain their targets at which scores of 0 cause a warning."""

MOST_SHOWN = 60
"""Maximum length of an output, or a target, in a warning, in characters."""

OF_TARGETS = frozenset({"no_target", "unreadable_target"})
"""Reasons of comparisons without an outcome that are not caused by the output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A candidate with its inspected outputs."""

    counts: CandidateCounts
    model: str
    out: str | None
    """How the candidate was eliminated or dropped, in words; None while it is in question."""
    settings: Settings
    outputs: Sequence[JudgedOutput]
    is_cut: bool
    """Whether outputs are judged only up to the candidate's stop sequences."""
    faults: dict[Fault, list[JudgedOutput]] = field(default_factory=dict)

    @property
    def said(self) -> str | None:
        """Its faults in a few words, such as "12 empty, 3 thoughts"; None without faults."""
        if not self.faults:
            return None
        found = ", ".join(f"{len(outputs)} {fault}" for fault, outputs in self.faults.items())
        n, all_ = len(self.outputs), self.counts.texts
        return found if n >= all_ else f"{found} (of the first {n} inspected)"

    def judged(self, output: JudgedOutput) -> str:
        """The judged part of one of the candidate's outputs."""
        return judged_text(output.text, self.settings) if self.is_cut else output.text

    def find_faults(self, spec: JsonView) -> None:
        """Add the faults of the outputs.

        Args:
            spec: The campaign's spec.
        """
        for output in self.outputs:
            seen = Output(output.text, output.reasoning, output.finish_reason)
            for fault in faults_of(seen, self.settings):
                if fault != "thoughts" or not leaves_thoughts_out(spec, self.judged(output)):
                    self.faults.setdefault(fault, []).append(output)


def looked_at(look: Look, only: Collection[int] | None = None) -> list[Looked]:
    """Candidates of a campaign with some of their outputs; empty for log-likelihoods.

    Args:
        look: The campaign.
        only: Ids of the only candidates to inspect; None for all.
    """
    if look.record.spec.get("output_type", "generate") != "generate":
        return []
    known = counts_by_candidate(look.session, look.record.id, most=MOST_CANDIDATES)
    counts = [each for each in known if only is None or each.id in only]
    if not counts:
        return []
    made_of = settings_of(look.session, [each.id for each in counts])
    decision = outcome_records.latest_decision(look.session, look.record.id)
    endings = dict(enumerate(map(_ending, decision.status, decision.are_out) if decision else ()))
    is_duel = traits_of(look.record.objective).compares_pairs
    found = []
    for each in counts:
        model, sampling = made_of[each.id]
        outputs = [] if sampling.get("choices") else some_outputs(
            look.session,
            each.id,
            most=max(1, MOST_LOOKED_AT // len(known)),
            duels_of=look.record.id if is_duel else None,
            several="samples" in look.record.spec,
        )  # fmt: skip
        looked = Looked(
            counts=each,
            model=str(model.get("name")),
            out=endings.get(each.position),
            settings=Settings.from_record(model, sampling),
            outputs=outputs,
            is_cut=cuts_at_stop(look.record.spec),
        )
        looked.find_faults(look.record.spec)
        found.append(looked)
    return found


BEHIND_THOUGHTS = frozenset({"choice", "math", "numeric"})
"""Judges that read only the text after the reasoning."""


def leaves_thoughts_out(spec: JsonView, text: str) -> bool:
    """Whether the judge of a campaign itself ignores the reasoning in an output."""
    parts = judge_tree(spec.get("judge")).parts
    names = {each.type for each in parts}
    if not names <= BEHIND_THOUGHTS | {"code"} or any(each.params.get("extract") for each in parts):
        return False
    is_left_out = not names & BEHIND_THOUGHTS or without_thoughts(text) != text
    return is_left_out and ("code" not in names or (text.lstrip().startswith(START) and END in text))


def _ending(status: str, is_out: bool) -> str | None:
    """Status of a candidate that is out, in words; None for other candidates."""
    if not is_out:
        return None
    return "eliminated up to epsilon" if status == "active" else status


def _named(found: Sequence[Looked]) -> str:
    """Names of candidates, with the status of eliminated ones."""
    if len(out := {each.out for each in found}) == 1 and None not in out:
        return f"{list_of([each.counts.name for each in found])} ({out.pop()})"
    return list_of([f"{each.counts.name} ({each.out})" if each.out else each.counts.name for each in found])


def coverage(look: Look) -> list[Row]:
    """The rows of `campaign_views.coverage`, with the column `flagged`.

    It has a candidate's output faults, in the candidate's first row.
    """
    said = {each.counts.name: each.said for each in looked_at(look)}
    return [
        {name: value for name, value in row.items() if name != "detail"}
        | {"flagged": said.pop(row["candidate"], None), "detail": row["detail"]}
        for row in campaign_views.coverage(look.session, look.record.id)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """Number of a candidate's inspected outputs with some property."""

    of: Looked
    part: int
    all_: int

    @property
    def is_most(self) -> bool:
        """Whether the number deserves a warning about this candidate alone."""
        return self.part >= FEWEST_OF_ONE and self.part >= MOST_OF_ONE * self.all_

    def __str__(self) -> str:
        whole = f"all {self.part:,}" if self.part == self.all_ else f"{self.part:,} of {self.all_:,}"
        return f"{whole} of {_named([self.of])}"


MOST_COUNTED = 10
"""Maximum number of candidates that a warning names with their numbers."""


def whose(shares: Sequence[_Share]) -> str:
    """Clause that names the candidates with most faulty outputs.

    Empty if no few candidates stand out.
    """
    most = _in_order(shares)
    if not most:
        most = _that_have_nearly_all(shares)
    return f", {list_of([str(each) for each in most], most=MOST_COUNTED)}" if most else ""


def _that_have_nearly_all(shares: Sequence[_Share]) -> list[_Share]:
    """The few candidates with nearly all faulty outputs; empty if these are all."""
    having = sorted((each for each in shares if each.part), key=attrgetter("part"), reverse=True)
    all_ = sum(each.part for each in having)
    for n in range(1, min(MOST_NAMED, len(shares) - 1) + 1):
        if sum(each.part for each in having[:n]) >= NEARLY_ALL * all_:
            return having[:n]
    return []


def _in_order(shares: Sequence[_Share]) -> list[_Share]:
    """Shares that deserve a warning: eliminated candidates first, then by share."""
    most = [each for each in shares if each.is_most]
    return sorted(most, key=lambda each: (each.of.out is None, -each.part / each.all_))


def about(shares: Sequence[_Share]) -> tuple[str, ...]:
    """Names of the candidates whose own share deserves a warning."""
    return tuple(each.of.counts.name for each in _in_order(shares))


def _is_worth_saying(shares: Sequence[_Share]) -> bool:
    """Whether a relevant share of all outputs, or most of one candidate's, count."""
    part, all_ = sum(each.part for each in shares), sum(each.all_ for each in shares)
    return part > MOST_FLAGGED * all_ or any(each.is_most for each in shares)


def output_warnings(
    look: Look, *, has_ended: bool, only: Collection[int] | None = None
) -> list[CampaignWarning]:
    """Warnings about candidates' outputs; empty if a program's function scores.

    Args:
        look: The campaign.
        has_ended: Whether the campaign has ended.
        only: As in `looked_at`.
    """
    if any(each.get("provider") == FUNCTION for each in look.record.spec.get("models", ())):
        return []
    found = looked_at(look, only)
    if not found:
        return []
    labels = labels_of(targets_of(look.session, look.record.dataset_id, most=MOST_EXAMPLES))
    return warnings_about(look.record, found, labels, has_ended=has_ended, is_part=only is not None)


def warnings_about(
    campaign: CampaignRecord,
    found: Sequence[Looked],
    labels: Sequence[str],
    *,
    has_ended: bool,
    is_part: bool = False,
    fewest: int = FEWEST_OF_ONE,
    zeros: bool = False,
) -> list[CampaignWarning]:
    """The warnings about some outputs of candidates.

    Args:
        campaign: The campaign of the candidates.
        found: The candidates with their outputs.
        labels: The labels among the campaign's targets; empty if targets are not labels.
        has_ended: Whether the campaign has ended, so that few outputs are enough.
        is_part: Whether the campaign has candidates that are not in `found`.
        fewest: Minimum number of a candidate's outputs for a warning about scores that are all 0.
        zeros: Whether to warn about scores that are all 0 even without a visible cause in the outputs.
    """
    warnings = [
        _truncated(found, is_part=is_part),
        _refused(found),
        *(_of_fault(found, fault, is_part=is_part) for fault in SAID),
        None if is_part else _no_thoughts(found),
        _several_labels(campaign, found, labels),
    ]
    said = [warning for warning in warnings if warning is not None and warning.kind != "stop-ignored"]
    known = {name for warning in said for name in warning.about}
    warnings += _without_point(
        campaign, found, known, labels, has_ended=has_ended, fewest=fewest, zeros=zeros
    )
    return [warning for warning in warnings if warning is not None]


def _truncated(found: Sequence[Looked], *, is_part: bool) -> CampaignWarning | None:
    shares = [_Share(of=each, part=each.counts.truncated, all_=each.counts.texts) for each in found]
    shares = _in_order(shares) if is_part else shares
    if not _is_worth_saying(shares):
        return None
    part = sum(each.part for each in shares)
    named = f"{which}," if (which := whose(shares)) else ""
    were, are, ends = (
        ("was", "is judged in its cut-off form", "its end")
        if part == 1
        else ("were", "are judged in their cut-off form", "their ends")
    )
    return CampaignWarning(
        kind="truncated",
        sentence=f"{_share(shares)} {were} cut off by max_tokens or the context window{named} and {are}: "
        f"check whether answers are missing at {ends}, and raise max_tokens",
        about=about(shares),
    )


def _refused(found: Sequence[Looked]) -> CampaignWarning | None:
    shares = [
        _Share(of=each, part=each.counts.refused, all_=each.counts.scored + each.counts.unscored)
        for each in found
    ]
    most = _in_order(shares)
    if not most:
        return None
    said = one_line(most[0].of.counts.refusal or "")
    remedy = "check the prompt and what the server allows"
    if "tool" in said or "function_call" in said:
        remedy = "the model called a tool: tell it to answer in text, or serve it without tools"
    return CampaignWarning(
        kind="refused",
        sentence=f"no output for {sum(each.part for each in shares):,} comparisons{whose(shares)} "
        f"({_quoted(said, quote='')}): {remedy}",
        about=about(shares),
    )


Warned = Literal["thoughts", "in-thoughts", "empty", "stop-ignored", "structure"]
"""Faults that deserve a warning.
Outputs that end with a stop sequence are cut, and need no warning.
"""

SAID: dict[Warned, tuple[str, str]] = {
    "thoughts": (
        "contains the model's reasoning and is judged with it",
        "contain the model's reasoning and are judged with it",
    ),
    "in-thoughts": (
        "ended inside the model's reasoning, without an answer",
        "ended inside the model's reasoning, without an answer",
    ),
    "empty": ("is empty", "are empty"),
    "stop-ignored": ("continues after a stop sequence", "continue after a stop sequence"),
    "structure": ("does not match its structured_output", "do not match their structured_output"),
}
"""Verb phrases for each fault, for one output and for several."""


def _of_fault(found: Sequence[Looked], fault: Warned, *, is_part: bool) -> CampaignWarning | None:
    shares = [_Share(of=each, part=len(each.faults.get(fault, ())), all_=len(each.outputs)) for each in found]
    shares = _in_order(shares) if is_part else shares
    if not _is_worth_saying(shares):
        return None
    first = max(shares, key=lambda each: (each.is_most, each.of.out is not None, each.part)).of
    one, several = SAID[fault]
    words = one if sum(each.part for each in shares) == 1 else several
    return CampaignWarning(
        kind=fault,
        sentence=f"{_share(shares)} {words}{whose(shares)}: {_remedy(first, fault)}",
        about=about(shares),
        unread=_unread(found, fault),
    )


def _unread(found: Sequence[Looked], fault: Warned) -> int:
    """Number of outputs without an answer because of a fault, estimated from a sample."""
    if fault not in ("empty", "in-thoughts"):
        return 0
    shares = [(each, sum(output.no_answer for output in each.faults.get(fault, ()))) for each in found]
    return sum(round(n / len(each.outputs) * each.counts.texts) for each, n in shares if n)


def _no_thoughts(found: Sequence[Looked]) -> CampaignWarning | None:
    """Warn about a model whose reasoning should be separated, but was never found."""
    thinking: dict[str, list[Looked]] = {}
    for each in found:
        if each.settings.reasoning is not None:
            thinking.setdefault(each.model, []).append(each)
    for model, of_it in thinking.items():
        outputs = [output for each in of_it for output in each.outputs]
        if len(outputs) < FEWEST_OF_ONE or any(output.reasoning for output in outputs):
            continue
        reasoning = of_it[0].settings.reasoning
        cause = (
            "the server returns none (it may need a reasoning parser)"
            if reasoning is not None and reasoning.parser == "server"
            else "its server may omit the tags as special tokens (vLLM does so unless model_args has "
            "skip_special_tokens: false)"
        )
        return CampaignWarning(
            kind="no-thoughts",
            sentence=f"no reasoning was found in any of {len(outputs):,} outputs of {model}, for which the "
            f"file sets reasoning: {cause}; or thinking is off",
        )
    return None


def _remedy(looked: Looked, fault: Warned) -> str:
    """The likely cause and its remedy, from one candidate with the fault."""
    output, settings = looked.faults[fault][0], looked.settings
    if fault == "thoughts":
        return _of_thoughts(output, settings)
    if fault == "in-thoughts":
        if any(each.finish_reason == "length" for each in looked.faults[fault]):
            return "raise max_tokens, or turn thinking off"
        if settings.stop:
            return "a stop sequence may occur in the reasoning; remove it from stop_seqs"
        if settings.reasoning is not None and settings.reasoning.begins_inside:
            return "check whether its outputs really begin inside the reasoning (begins_inside)"
        return "check the model's reasoning parser, or turn thinking off"
    if fault == "stop-ignored":
        how = "up to the stop sequence" if looked.is_cut else "as a whole"
        return f"the server ignores stop_seqs; outputs are judged {how}, and all of their tokens are paid for"
    if fault == "structure":
        return (
            "the server ignores structured_output (plain completions of llama.cpp do; try chat: true); "
            "remove it, or use a server that supports it"
        )
    return _of_empty(looked, output)


def _of_thoughts(output: JudgedOutput, settings: Settings) -> str:
    if settings.reasoning is None and has_think_tags(output.text):
        inside = "" if output.text.lstrip().startswith("<think>") else ", begins_inside: true"
        return f"set the model's reasoning: {{parser: think-tags{inside}}}"
    if (
        has_think_tags(output.text)
        and settings.reasoning is not None
        and settings.reasoning.parser == "server"
    ):
        return "the server does not separate it; start the server with a reasoning parser, or use think-tags"
    return (
        "start the server with a reasoning parser and set reasoning: {parser: server}, turn thinking off, or "
        "set the judge's extract"
    )


def _of_empty(looked: Looked, output: JudgedOutput) -> str:
    settings = looked.settings
    if settings.is_agent:
        return "the agent gave no output, or its run failed (on_failure: empty); its trace says more"
    if output.finish_reason == "length":
        return "all tokens were used otherwise, such as for reasoning; raise max_tokens, or turn thinking off"
    if settings.stop:
        first = next((each for each in settings.stop if output.text.lstrip(" ").startswith(each)), None)
        named = first or settings.stop[0]
        return (
            f"stop sequence {named!r} may come first; end the prompt so that the answer begins at once, or "
            "remove it from stop_seqs"
        )
    if output.output_tokens > 1:
        return (
            "their tokens may all be reasoning (reasoning_content) or special tokens; turn thinking off in "
            "chat_template_args, or check the server's reasoning parser"
        )
    return "the model ends at once; check its prompt and its chat template"


def _without_point(
    campaign: CampaignRecord,
    found: Sequence[Looked],
    known: set[str],
    labels: Sequence[str],
    *,
    has_ended: bool,
    fewest: int,
    zeros: bool,
) -> list[CampaignWarning | None]:
    """Warnings about candidates with only zeros, by likely cause.

    Args:
        campaign: The campaign of the candidates.
        found: The candidates with their outputs.
        known: Names of candidates that other warnings explain already.
        labels: As in `warnings_about`.
        has_ended: As in `warnings_about`.
        fewest: As in `warnings_about`.
        zeros: As in `warnings_about`.
    """
    if traits_of(campaign.objective).compares_pairs:
        return []
    suspects = [
        each
        for each in found
        if each.counts.has_no_point
        and len(each.outputs) >= fewest
        and each.counts.name not in known
        and not all(output.reason in OF_TARGETS for output in each.outputs)
        and (has_ended or each.out or len(each.outputs) >= FEWEST_WITHOUT_POINT)
    ]
    by_cause: dict[Kind, list[Looked]] = {}
    for each in suspects:
        cause = _cause(each) or ("zero-other" if zeros and each.counts.scored else None)
        if cause is not None:
            by_cause.setdefault(cause, []).append(each)
    return [_zero(campaign, cause, of_it, labels) for cause, of_it in by_cause.items()]


def _cause(looked: Looked) -> Kind | None:
    """Likely cause of scores that are all 0 or all missing, by the outputs.

    None if no cause is visible.
    """
    outputs = looked.outputs
    if sum(_holds_target(looked, each) for each in outputs) >= HOLDS_TARGET * len(outputs):
        return "zero-holds-target"
    if sum(map(_is_unread, outputs)) >= MOST_OF_ONE * len(outputs):
        return "zero-unread"
    targets = {tuple(each.targets) for each in outputs}
    texts = {looked.judged(each).strip() for each in outputs}
    if len(outputs) >= FEWEST_OF_ONE and len(texts) == 1 and (len(targets) > 1 or targets == {()}):
        return "zero-all-equal"
    return None


def _is_unread(output: JudgedOutput) -> bool:
    """Whether the judge could not read an output: it has no answer, or is no program."""
    return output.no_answer or "SyntaxError" in (output.answer or "")


def _holds_target(looked: Looked, output: JudgedOutput) -> bool:
    """Whether an output contains one of its targets as a word.

    Single letters are case-sensitive.
    """
    text = looked.judged(output)
    return any(_holds(text, target.strip()) for target in output.targets)


def _is_but_for_spelling(text: str, output: JudgedOutput) -> bool:
    """Whether a text equals a target except for case, punctuation and white space."""
    said = normalise(text)
    return any(said == normalise(target) for target in output.targets)


def _holds(text: str, word: str) -> bool:
    if len(word) > 1:
        text, word = text.casefold(), word.casefold()
    start = text.find(word) if word else -1
    while start >= 0:
        if _stands_alone(text, start, start + len(word)):
            return True
        start = text.find(word, start + 1)
    return False


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether a part of a text is a separate word or number."""
    before, word, after = text[max(0, start - 2) : start], text[start:end], text[end : end + 2]
    if _joins(before[-1:], word[0]) or _joins(word[-1], after[:1]):
        return False
    is_in_number = word[-1].isdigit() and len(after) == 2 and after[0] in ".," and after[1].isdigit()
    is_signed = word[0].isdigit() and before[-1:] in ("-", "\N{MINUS SIGN}") and not before[:-1].strip()
    ends_number = word[0].isdigit() and len(before) == 2 and before[1] in ".," and before[0].isdigit()
    return not (is_in_number or is_signed or ends_number)


WITH_SPACES = "\u0e00"
"""Characters before this one belong to scripts that put spaces between words."""


def _joins(first: str, second: str) -> bool:
    """Whether two adjacent characters belong to one word."""
    return bool(first and second) and (first + second).isalnum() and max(first, second) < WITH_SPACES


def _several_labels(
    campaign: CampaignRecord, found: Sequence[Looked], labels: Sequence[str]
) -> CampaignWarning | None:
    """Warn about candidates whose outputs contain several labels.

    The judge `contains` needs only one of them to be right.
    """
    parts = judge_tree(campaign.spec.get("judge")).parts
    is_any = any(each.type == "contains" and each.params.get("match", "any") == "any" for each in parts)
    if not is_any or not labels:
        return None
    shares = [
        _Share(
            of=each,
            part=sum(_holds_several(each.judged(output), output.targets, labels) for output in each.outputs),
            all_=len(each.outputs),
        )
        for each in found
    ]
    if not about(shares):
        return None
    return CampaignWarning(
        kind="several-labels",
        sentence=f"{_share(shares)} contain several labels at once{whose(shares)}, "
        f"and judge contains accepts any of them: {_use_choice(labels)}",
        about=about(shares),
    )


def _holds_several(text: str, targets: Sequence[str], labels: Sequence[str]) -> bool:
    """Whether a text contains several labels, not all right; nested ones do not count."""
    held = [each for each in labels if _holds(text, each)]
    apart = [each for each in held if not any(each != other and _holds(other, each) for other in held)]
    right = {target.strip().casefold() for target in targets}
    return len(apart) > 1 and any(each.casefold() not in right for each in apart)


def _use_choice(labels: Sequence[str]) -> str:
    """The advice to use the judge `choice` for labels."""
    return f"use judge: {{type: choice, options: {as_options(labels)}}}"


def _zero(
    campaign: CampaignRecord, cause: Kind, found: Sequence[Looked], labels: Sequence[str]
) -> CampaignWarning:
    ordered = sorted(found, key=lambda each: (each.out is None, -len(each.outputs)))
    outputs = [(each, output) for each in ordered for output in each.outputs]
    n, (looked, shown) = len(outputs), outputs[0]
    scored = any(each.counts.scored for each in found)
    said = f"{_named(ordered)} {'scored 0' if scored else 'got no score'} on all {n:,} outputs"
    parts = judge_tree(campaign.spec.get("judge")).parts
    extract = f"{'check' if any(each.params.get('extract') for each in parts) else 'set'} the judge's extract"
    if cause == "zero-holds-target":
        held = [(each, output) for each, output in outputs if _holds_target(each, output)]
        looked, shown = held[0]
        said += f", and {len(held):,} of them contain the target"
        contains = any(each.type == "contains" for each in parts)
        if contains:
            remedy = "check the judge's parameters"
        elif any(each.type == "choice" for each in parts):
            remedy = extract
        elif labels:  # first, so that few outputs and all of them lead to the same judge
            remedy = f"{extract}, or {_use_choice(labels)}"
        elif all(_is_but_for_spelling(each.judged(output), output) for each, output in held):
            remedy = "use judge normalised, which ignores case and punctuation"
        else:
            remedy = f"{extract}, or use judge contains"
    elif cause == "zero-unread":
        unread = [(each, output) for each, output in outputs if _is_unread(output)]
        looked, shown = unread[0]
        all_ = "none of them" if len(unread) == n else f"only {n - len(unread):,} of them"
        said += f", and the judge could read {all_}"
        remedy = f"{extract}, or state in the prompt how to answer"
    elif cause == "zero-all-equal":
        said += ", and wrote the same output each time"
        remedy = "check whether the prompt shows the input"
    else:
        remedy = "compare some outputs with their targets, and check whether the prompt asks for their form"
    return CampaignWarning(
        kind=cause,
        sentence=f"{said}: {_example_of(looked, shown)}; {remedy}",
        about=tuple(each.counts.name for each in ordered),
    )


def shown_output(looked: Looked, kind: Kind) -> str:
    """An output with its target, for a warning about a single candidate."""
    of_kind = [output for fault, outputs in looked.faults.items() if fault == kind for output in outputs]
    if kind == "truncated":
        of_kind = [each for each in looked.outputs if each.finish_reason == "length"]
    return _example_of(looked, (of_kind or looked.outputs)[0])


def _example_of(looked: Looked, shown: JudgedOutput) -> str:
    name = example_name(shown.example, shown.example_number)
    named = name if name.startswith("#") else _quoted(name)
    return f"example {named} got {_quoted(looked.judged(shown))}{_for_target(shown)}"


def _for_target(output: JudgedOutput) -> str:
    return f", its target is {_quoted(output.targets[0])}" if output.targets else ""


def _quoted(text: str, *, quote: str = "'") -> str:
    """The beginning of a text, on one line."""
    line = one_line(text)
    return f"{quote}{line if len(line) <= MOST_SHOWN else line[: MOST_SHOWN - 1] + '…'}{quote}"


def _share(shares: Sequence[_Share]) -> str:
    part, all_ = sum(each.part for each in shares), sum(each.all_ for each in shares)
    is_whole = all_ >= sum(each.of.counts.texts for each in shares)
    return f"{part:,} of {all_:,}{'' if is_whole else ' inspected'} outputs ({percentage(part / all_)})"
