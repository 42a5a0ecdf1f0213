"""route: answer arriving prompts and learn from their scores, or export the learned policy."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.flows.cli.options import DEFAULT_STORAGE, CampaignName, Json, Storage, TrustOption
from winnow.tasks.errors import SpecError, WinnowError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from winnow.storage.engine.database import Database
    from winnow.storage.records.record_types import CampaignRecord
    from winnow.tasks.campaign.resolved import ResolvedCampaign
    from winnow.tasks.data.datasets import Example
    from winnow.tasks.objectives.route.arrivals import RoutedAnswer


def route(
    name: CampaignName,
    prompt: Annotated[str | None, typer.Option(help="A prompt to answer: its field input.")] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="A correct answer to --prompt; repeatable.")
    ] = None,
    field: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A further field of --prompt; repeatable.")
    ] = None,
    prompts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file of prompts to answer, with the columns of the dataset."),
    ] = None,
    unanswered: Annotated[
        bool,
        typer.Option("--unanswered", help="Answer the stored prompts that have no answer yet."),
    ] = False,
    export: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the learned policy to a folder; answer no prompt."),
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    trust: TrustOption = False,
    json: Json = False,
) -> None:
    """Answer arriving prompts with the candidate that a route campaign chooses, and learn from its score.

    An exported policy chooses a candidate in milliseconds, without a database and without vLLM:
    winnow.Router.load(DIR).choose(PROMPT).
    """
    from winnow.storage.admin.schema import existing

    if sum((prompt is not None, prompts is not None, unanswered, export is not None)) != 1:
        raise SpecError("give one of --prompt TEXT, --prompts FILE, --unanswered and --export DIR")
    if prompt is None and (target or field):
        raise SpecError("--target and --field belong to --prompt; in a file of prompts, use columns instead")
    with existing(storage) as database:
        if export is not None:
            from winnow.flows.reports.output import tell
            from winnow.tasks.objectives.route.exporting import export_policy
            from winnow.tasks.setup.open_campaign import reopen_campaign
            from winnow.tasks.text.phrases import count_of

            exported = export_policy(database, *reopen_campaign(database, name, storage), export)
            print(f"{export}: the policy of {name}, after {count_of(exported.prompts, 'scored prompt')}")
            if exported.doubt is not None:
                tell(f"warning: {exported.doubt}")
            return
        from winnow.flows.run.trust_prompt import Trust, require_stored_trust
        from winnow.tasks.campaign.campaign import find_in

        require_stored_trust(find_in(database, storage, name), Trust(everything=trust, asks=True))
        examples = (
            None if unanswered else _examples(database, name, prompt, target or [], field or [], prompts)
        )
        n_answered, total = _answered(database, name, storage, examples, json=json)
    if unanswered and not (total or json):
        print(f"every prompt that arrived at {name} has an answer")
    if n_answered < total:
        missing = f"{total - n_answered:,} of {total:,} stored prompts have no answer"
        raise WinnowError(f"{missing}: {name} has no candidate left; winnow status {name} says why")


def _examples(
    database: "Database",
    name: str,
    prompt: str | None,
    targets: list[str],
    fields: list[str],
    file: Path | None,
) -> "list[Example]":
    from winnow.storage.records import campaigns as campaign_records
    from winnow.tasks.objectives.route.arrivals import read_prompts, typed_prompt

    if prompt is not None:
        return [typed_prompt(prompt, targets, fields)]
    with database.reading() as session:
        campaign = campaign_records.get_campaign(session, name)
    return read_prompts(str(file), campaign)


def _answered(
    database: "Database", name: str, storage: str, examples: "list[Example] | None", *, json: bool
) -> tuple[int, int]:
    """Answer prompts and print the answers; return the numbers of answers and of prompts.

    If `examples` is None, all stored prompts without an answer are answered.
    """
    from dataclasses import asdict

    from winnow.flows.reports.output import print_json, tell
    from winnow.flows.run.signals import Interrupts
    from winnow.storage.engine.database import storage_option
    from winnow.tasks.objectives.route.arrivals import answer_prompts, store_arrival
    from winnow.tasks.setup.open_campaign import reopen_campaign
    from winnow.tasks.text.phrases import count_of

    def reopened() -> "tuple[CampaignRecord, ResolvedCampaign]":
        return reopen_campaign(database, name, storage)

    positions = None if examples is None else store_arrival(database, *reopened(), examples)
    if examples is not None and positions is not None and len(positions) < len(examples):
        n_known = len(examples) - len(positions)
        of_them = f"{n_known:,} of {count_of(len(examples), 'prompt')} with these ids"
        tell(f"{of_them} {'is' if n_known == 1 else 'are'} already stored and not added again")
        _print_unanswered(database, name, storage, examples, new=positions)
    answers: list[RoutedAnswer] = []

    def say(answer: "RoutedAnswer") -> None:
        answers.append(answer)
        if not json:
            _print(answer)

    interrupts = Interrupts()
    interrupts.ask()  # the first signal then stops at once
    try:
        with interrupts.caught():
            total = answer_prompts(database, *reopened(), positions, say)
    except KeyboardInterrupt:
        hint = f"winnow route {name} --unanswered {storage_option(storage)}"
        tell(f"\nstopped by force; every prompt and each answer so far is stored; run: {hint}")
        raise typer.Exit(interrupts.exit_code) from None
    finally:
        if json and answers:
            print_json([asdict(each) for each in answers])
    if json and not answers:
        print_json([])
    return len(answers), total


def _print_unanswered(
    database: "Database", name: str, storage: str, given: "list[Example]", new: "Sequence[int]"
) -> None:
    """Print how many stored prompts have no answer, and the commands that answer them.

    These are prompts that arrived before an interruption, and given prompts of the campaign's own dataset
    that were not sent yet.
    """
    from winnow.flows.reports.output import tell
    from winnow.storage.engine.database import storage_option
    from winnow.storage.records import campaigns as campaign_records
    from winnow.storage.records import stream_batches
    from winnow.tasks.text.phrases import count_of

    with database.reading() as session:
        campaign = campaign_records.get_campaign(session, name)
        waiting = {*stream_batches.unanswered(session, campaign.id)} - {*new}
        fields = {each.key: each.fields for each in given}
        unasked = stream_batches.unasked(session, campaign.id)
        in_dataset = sum(fields.get(each.key) == each.fields for each in unasked)
    if waiting:
        have = "has" if len(waiting) == 1 else "have"
        asks = f"winnow route {name} --unanswered {storage_option(storage)}"
        tell(f"{count_of(len(waiting), 'prompt')} that arrived before {have} no answer yet: {asks}")
    if in_dataset:
        are, it = ("is", "it") if in_dataset == 1 else ("are", "them")
        asks = f"winnow resume {name} --set stopping.budget=MORE {storage_option(storage)}"
        which = f"{in_dataset:,} of them {are} from the campaign's own dataset and not sent yet"
        tell(f"{which}; to send {it}, run: {asks}")


def _print(answer: "RoutedAnswer") -> None:
    from winnow.tasks.text.printable import printable

    score = f"score {answer.score:g}" if answer.score is not None else f"unscored: {answer.reason}"
    print(f"{answer.candidate} ({score})", flush=True)
    if answer.text is not None:
        print(printable(answer.text), flush=True)
