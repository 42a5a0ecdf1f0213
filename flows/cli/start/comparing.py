"""compare: run a campaign from models, prompts and data, and write its file."""

import json
import os.path
import reprlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.flows.cli.options import LogFormatOption, LogLevelOption, SpecStorage, TrustOption, Verbose
from winnow.flows.reports.output import can_ask
from winnow.flows.run.log_format import LogFormat, logged
from winnow.storage.plain_files import read_text, refuse_link_elsewhere
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.stored_spec import DEFAULT_STORAGE
from winnow.tasks.text.phrases import count_of

if TYPE_CHECKING:
    from winnow.flows.run.comparing import Examples
    from winnow.flows.run.trial import Trial
    from winnow.storage.json_types import JsonObject, Row
    from winnow.tasks.answer.model import Answer
    from winnow.tasks.campaign.resolved import ResolvedCampaign
    from winnow.tasks.engines.protocol import ModelRef
    from winnow.tasks.setup.yaml_file import SpecFile

WITHOUT = "leave out their --model"
"""How this command begins without missing models."""

SHOWN = 6
"""Number of outputs shown before the campaign begins."""

ARROW = "=>"
"""Separates input and target of an example on the command line."""

Data = Annotated[
    str | None, typer.Option("--data", metavar="FILE", help="Your examples: .csv, .jsonl, .json or .parquet.")
]
Input = Annotated[str | None, typer.Option("--input", metavar="COLUMN", help="Column of the input.")]
Target = Annotated[str | None, typer.Option("--target", metavar="COLUMN", help="Column of the target.")]
Images = Annotated[
    list[str] | None,
    typer.Option("--images", metavar="COLUMN", help="Column of images to show to models; repeatable."),
]
OneExample = Annotated[
    list[str] | None,
    typer.Option(
        "--example", metavar=f"'INPUT {ARROW} TARGET'", help="An example, instead of --data; repeatable."
    ),
]
Models = Annotated[
    list[str],
    typer.Option(
        "--model",
        metavar="MODEL",
        help="openai:NAME, http://HOST/v1#SERVED-NAME, a checkpoint's folder, or OWNER/NAME on Hugging Face; "
        "repeatable.",
    ),
]
Prompts = Annotated[
    list[str] | None,
    typer.Option(
        "--prompt",
        metavar="TEMPLATE",
        help="A prompt template with {{ COLUMN }}, or @FILE for a file with a template; repeatable.",
    ),
]
JudgeOption = Annotated[
    str | None,
    typer.Option("--judge", metavar="JUDGE", help="Judge that scores an output; winnow judges lists them."),
]
BudgetOption = Annotated[
    int | None,
    typer.Option(
        "--budget", min=1, help="Maximum number of evaluations; default: every candidate on every example."
    ),
]
Yes = Annotated[
    bool,
    typer.Option("--yes", help="Do not ask whether the outputs are scored correctly; grants no permissions."),
]
Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write the campaign to.")]


def compare(
    model: Models,
    prompt: Prompts = None,
    data: Data = None,
    example: OneExample = None,
    input_: Input = None,
    target: Target = None,
    images: Images = None,
    judge: JudgeOption = None,
    budget: BudgetOption = None,
    yes: Yes = False,
    out: Out = Path("campaign.yaml"),
    storage: SpecStorage = None,
    trust: TrustOption = False,
    verbose: Verbose = False,
    log_format: LogFormatOption = LogFormat.text,
    log_level: LogLevelOption = None,
) -> None:
    """Compare models and prompts on your examples: see some outputs with their scores, then the answer.

    Missing settings are guessed from the data, and shown before any request is sent. The campaign's file is
    written, so that you can edit it and run it again. An existing file is never overwritten.
    """
    from winnow.flows.run.comparing import campaign_values
    from winnow.flows.run.first_look import approved
    from winnow.flows.run.launch import launching, run_stored_campaign
    from winnow.flows.run.trust_prompt import Trust, approving
    from winnow.tasks.queries.status import campaign_status
    from winnow.tasks.setup.load import check_spec_file

    if os.path.exists(out):
        raise SpecError(
            f"{out} exists already; run it with winnow run {out}, or name another file by --out FILE"
        )
    try:
        refuse_link_elsewhere(out)
    except OSError as error:
        raise SpecError(f"{out} cannot be written: {error.strerror}") from error
    asked = _read_examples(data, example, input_, target, images or (), out)
    name = _free_name(Path(asked.path).name.partition(".")[0], storage or DEFAULT_STORAGE)
    values, asked = campaign_values(
        asked, model, prompt or [], judge, name=name, budget=budget, storage=storage
    )
    with logged(log_format, log_level), launching() as launch:
        approve = approving(Trust(everything=trust, asks=True))
        file = _file(out, values, model, prompt or [])
        checked = check_spec_file(file, approve, launch.recall)
        print("\n".join([*_guesses(asked, checked), *_warnings(file, checked), ""]), flush=True)
        trial = launch.try_out(checked, -(-SHOWN // len(checked.candidates)), keeps=False, without=WITHOUT)
        _show(trial)
        if not (yes or _confirm(trial, checked.spec.judge.type)):
            _print_other_judges(trial, checked, out)
            if asked.written is not None:
                asked.written.unlink(missing_ok=True)
            raise typer.Exit(2)
        _write(out, values)
        with approved({name for each in trial.warnings for name in each.about}):
            campaign = launch.store(checked)
            code = run_stored_campaign(campaign, is_brief=not verbose)
            with campaign.look() as look:
                answer = campaign_status(look).answer
    print("\n".join(_next(checked, answer, out)))
    raise typer.Exit(code)


def _read_examples(
    data: str | None,
    examples: Sequence[str] | None,
    input_: str | None,
    target: str | None,
    images: Sequence[str],
    out: Path,
) -> "Examples":
    from winnow.flows.run.comparing import examples_in

    if (data is None) == (not examples):
        raise SpecError(f"name your examples: --data FILE, or --example 'INPUT {ARROW} TARGET' for each")
    if data is None:
        return _from_command_line(examples or (), out)
    return examples_in(data, input_, target, images)


def _from_command_line(examples: Sequence[str], out: Path) -> "Examples":
    """Write the examples of the command line to a file, because a campaign's file names a data file."""
    from winnow.flows.run.comparing import Examples

    rows: list[Row] = []
    for each in examples:
        asked, arrow, target = each.rpartition(ARROW)
        if not arrow or not asked.strip() or not target.strip():
            raise SpecError(f"--example {each!r}: write 'INPUT {ARROW} TARGET'")
        rows.append({"input": asked.strip(), "target": target.strip()})
    path = out.with_name(f"{out.stem}-examples.jsonl")
    text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in rows)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        written = path
    except FileExistsError:
        if _text_in(path) != text:
            raise SpecError(
                f"{path} exists and has other examples; name another file by --out FILE"
            ) from None
        written = None
    except OSError as error:
        raise SpecError(f"{path} cannot be written: {error.strerror}") from error
    return Examples(
        path=str(path),
        fields={"input": "input", "target": "target"},
        targets=[[each["target"]] for each in rows],
        written=written,
    )


def _text_in(path: Path) -> str | None:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError):  # for example, a broken link
        return None


OPTIONS = {"judge": "--judge", "dataset": "--data", "models": "--model", "prompts": "--prompt"}
"""Keys of a campaign's file -> options of this command that set them."""


def _file(out: Path, values: "JsonObject", models: Sequence[str], prompts: Sequence[str]) -> "SpecFile":
    """The campaign's file before it is written; its errors name the options of the command."""
    from winnow.tasks.setup.yaml_file import SpecFile, parse_key

    class CommandLine(SpecFile):
        def locate(self, key: str) -> str:
            first, *rest = parse_key(key) or ("",)
            given = {"models": models, "prompts": prompts}.get(str(first), ())
            at = rest[0] if rest and isinstance(rest[0], int) else None
            option = OPTIONS.get(str(first))
            if option is None:
                return key or "compare"
            return f"{option} {reprlib.repr(given[at])}" if at is not None and at < len(given) else option

    return CommandLine(out, values)


def _free_name(wanted: str, storage: str) -> str:
    """The wanted campaign name; with a number appended if it is in use."""
    from winnow.flows.reports.default_database import may_be_there, reading
    from winnow.storage.errors import StorageError
    from winnow.storage.records import campaigns as campaign_records
    from winnow.tasks.spec.shorthands import short_name

    name, taken = short_name(wanted), set()
    if may_be_there(storage):
        try:
            with reading(storage) as session:
                taken = {each.name for each in campaign_records.readable_campaigns(session)[0]}
        except StorageError:  # reported when the database is opened for writing
            taken = set()
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return next(each for each in (name, *numbered) if each not in taken)


def _guesses(asked: "Examples", checked: "ResolvedCampaign") -> list[str]:
    """Lines on the comparison, the guesses, the requests to servers, and the expected resolution."""
    from winnow.flows.reports.output import terminal_width
    from winnow.flows.reports.summary import hanging
    from winnow.tasks.answer.resolution import expected_resolution
    from winnow.tasks.engines.known_providers import REMOTE
    from winnow.tasks.setup.trust import agents_of
    from winnow.tasks.text.printable import one_line

    spec, width = checked.spec, terminal_width(sys.stdout)
    examples = count_of(len(checked.dataset.examples), "example")
    prompts = f" x {count_of(len(spec.prompts), 'prompt')}" if spec.prompts else ""
    lines = [
        f"{spec.name}: {count_of(len(spec.models), 'model')}{prompts} on "
        f"{examples} of {one_line(asked.path)}, judge {spec.judge.type}"
    ]
    lines += [line for each in asked.guessed for line in hanging("  guessed  ", one_line(each), width)]
    servers = {_server_of(each) for each in checked.models if each.provider in REMOTE}
    servers |= {agent.server for _, agent in agents_of(spec) if agent.server is not None}
    if servers:
        to = " and ".join(sorted(map(one_line, servers)))
        lines += hanging(
            "  sends    ", f"prompts for at most {count_of(checked.most, 'output')} to {to}", width
        )
    if (resolution := expected_resolution(checked)) is not None:
        lines += hanging("  can show ", resolution, width)
    return lines


def _warnings(file: "SpecFile", checked: "ResolvedCampaign") -> list[str]:
    """Lines on likely mistakes, as `winnow validate` prints them."""
    from winnow.flows.reports.output import terminal_width
    from winnow.flows.reports.summary import check_lines
    from winnow.flows.run.validation import warnings_before

    width = terminal_width(sys.stdout)
    return [line for each in warnings_before(file, checked) for line in check_lines(each, width)]


def _server_of(model: "ModelRef") -> str:
    """URL of a model's server, or a clause on its API if the URL is unknown."""
    from winnow.tasks.engines.server_keys import OPENAI_URL, base_url_of

    try:
        return base_url_of(model.provider, model.model, model.model_base_url) or OPENAI_URL
    except ValueError:
        return f"the API of {model.model}"


def _show(trial: "Trial") -> None:
    from winnow.flows.reports.output import terminal_width
    from winnow.flows.run.trial import trial_lines

    print("\n".join(trial_lines(trial, terminal_width(sys.stdout), SHOWN)), flush=True)


def _confirm(trial: "Trial", judge: str) -> bool:
    """Ask in the terminal whether the outputs are scored correctly.

    Raises:
        SpecError: If the command does not run in a terminal.
    """
    if not can_ask(sys.stdout):
        raise SpecError(
            "not a terminal, so you cannot be asked whether these scores are correct; if they are, add "
            f"--yes; if not, try --judge {'normalised' if judge == 'contains' else 'contains'}"
        )
    return typer.confirm("Are these scores correct?", default=not trial.warnings)


OTHERS = ("exact", "normalised", "contains", "numeric", "f1")
"""Further judges that are tried on the shown outputs."""


def _print_other_judges(trial: "Trial", checked: "ResolvedCampaign", out: Path) -> None:
    """Print the scores that other judges give the same outputs."""
    from winnow.flows.reports.default_database import may_be_there
    from winnow.flows.reports.output import terminal_width
    from winnow.flows.reports.summary import hanging
    from winnow.storage.engine.database import shown_url
    from winnow.tasks.data.labels import labels_of
    from winnow.tasks.judges.protocol import Sample
    from winnow.tasks.judges.registry import create_judge
    from winnow.tasks.text.phrases import rounded

    labels = labels_of(each.targets for each in checked.dataset.examples)
    judges = {name: create_judge(name) for name in OTHERS if name != checked.spec.judge.type}
    if labels:
        judges[f"'{{type: choice, options: {json.dumps(labels, ensure_ascii=False)}}}'"] = create_judge(
            "choice", options=labels
        )
    width = terminal_width(sys.stdout)
    text = f"No campaign was started, and {out} was not written."
    if may_be_there(checked.spec.storage):
        text += f" These outputs are stored in {shown_url(checked.spec.storage)}, and will be reused."
    text += " Scores of other judges:"
    print("\n".join(hanging("", text, width)))
    for name, judge in judges.items():
        verdicts = [
            judge.judge(Sample(output=each.text, targets=each.targets, has_forms=True)).score
            for each in trial.outputs[:SHOWN]
            if each.text is not None
        ]
        if any(score is not None for score in verdicts):
            scores = ("-" if each is None else rounded(each).removesuffix(".000") for each in verdicts)
            print(f"  {'  '.join(f'{each:>5}' for each in scores)}   --judge {name}")


def _write(out: Path, values: "JsonObject") -> None:
    from winnow.tasks.setup.written_files import campaign_text

    comment = [
        "Written by winnow compare, which ran it. To run a changed file under another name:",
        f"winnow run {out} --fork {values['name']}-2",
    ]
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(campaign_text(values, comment))
    except FileExistsError:
        raise SpecError(f"{out} exists by now; name another file by --out FILE") from None
    except OSError as error:
        raise SpecError(f"{out} cannot be written: {error.strerror}") from error


def _next(checked: "ResolvedCampaign", answer: "Answer", out: Path) -> list[str]:
    """Lines with commands to continue with: to see outputs, and to decide more than the answer does."""
    from winnow.storage.engine.database import shown_url, storage_option

    name = checked.spec.name
    storage = storage_option(shown_url(checked.spec.storage))
    return [
        "",
        "see outputs:",
        f"  winnow query {name} comparisons {storage}",
        *further(answer, name, out, storage),
    ]


STRICT = 0.01
"""The error probability offered after a proven answer."""


def further(answer: "Answer", name: str, out: Path, storage: str) -> list[str]:
    """Lines with the command that decides more than an answer does; empty if none can."""
    fork = f"  winnow run {out} --fork {name}-strict --set"
    if answer.outcome == "undecided" and answer.limit is not None:
        raised = " ".join(f"--set {each.key}=MORE" for each in (answer.limit, *answer.also_spent))
        return ["decide it with a larger budget:", f"  winnow resume {name} {raised} {storage}"]
    if answer.outcome == "undecided" and answer.lacking:
        return ["see which outcomes are missing to decide it:", f"  winnow query {name} coverage {storage}"]
    if not answer.is_guaranteed:
        return []
    if answer.claim.kind == "proven" and (answer.delta or 0.0) > STRICT:
        return ["make it stricter:", f"{fork} stopping.delta={STRICT:g}"]
    return ["make it stricter:", f"{fork} stopping.epsilon=0"] if answer.epsilon else []
