"""validate, run, resume: the commands that need a campaign's files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.flows.cli.options import (
    DEFAULT_STORAGE,
    AllowAllZero,
    AllowMissing,
    Fork,
    LogFormatOption,
    LogLevelOption,
    OneCampaign,
    Overrides,
    SpecPath,
    SpecStorage,
    Storage,
    TrustOption,
    Verbose,
    overrides_of,
)
from winnow.flows.run.log_format import LogFormat, logged
from winnow.tasks.errors import SpecError

if TYPE_CHECKING:
    from winnow.tasks.spec.campaign import CampaignSpec

Exhaustive = Annotated[
    bool,
    typer.Option(
        "--exhaustive",
        help="Score every candidate on every example, as the campaign NAME-exhaustive, which reuses all "
        "texts of NAME; `winnow simulate campaign:NAME-exhaustive` compares selectors on its full table.",
    ),
]


def validate(spec: SpecPath, set_: Overrides = None, trust: TrustOption = False) -> None:
    """Check a campaign's file and all it refers to; write nothing, send nothing, run no code of others.

    The permissions that a run needs are listed. With --trust they are given from then on: the file's code is
    run, and a dataset that is not here yet is downloaded.
    """
    from winnow.flows.notify.announce import unset_variables
    from winnow.flows.run.trust_prompt import Trust, approving, remembered
    from winnow.tasks.answer.expected_engines import expected_unsteady
    from winnow.tasks.answer.resolution import expected_resolution
    from winnow.tasks.answer.status_lines import repeat_lines
    from winnow.tasks.plugins.extras import ExtraMissing
    from winnow.tasks.queries.warnings.from_spec import begun_twice, hidden_thoughts, own_judge, there_twice
    from winnow.tasks.setup.check import require_extras, without_targets
    from winnow.tasks.setup.likely_mistakes import likely_mistakes
    from winnow.tasks.setup.load import check_spec_file, with_stored_labels
    from winnow.tasks.setup.trust import permissions
    from winnow.tasks.setup.unread_targets import unread_targets
    from winnow.tasks.setup.yaml_file import read_spec_file

    file = read_spec_file(spec, set_ or [])
    checked = check_spec_file(file, approving(Trust(everything=True)) if trust else None)
    checked = with_stored_labels(checked, is_allowed=trust)
    print(f"{spec}: campaign '{checked.spec.name}' is sound: {checked.size}")
    if "task" in file.values:
        print(f"its task became:\n{_of_the_task(checked.spec)}")
    try:
        require_extras(checked)
    except ExtraMissing as missing:
        print(f"check: {missing}; winnow run refuses the campaign on this machine until then")
    known = remembered()
    for needed in permissions(checked.spec, Path.cwd()):
        head = "allowed" if known.allows(needed) else "to be allowed"
        print(f"{head}: it would {known.asked(needed)}")
    identity = checked.identity()
    for warning in (
        own_judge(identity),
        there_twice(identity),
        hidden_thoughts(identity),
        begun_twice(identity),
    ):
        if warning is not None:
            print(f"check: {warning.sentence}")
    for remark in checked.dataset.remarks:
        print(f"check: {remark}")
    for mistake in likely_mistakes(checked):
        print(f"check: {file.locate(mistake.path)}: {mistake.sentence}")
    if lacking := without_targets(checked):
        print(
            f"check: {len(lacking)} of {len(checked.dataset.examples)} examples have no target, such as "
            f"{lacking[0].key!r}, so that judge {checked.spec.judge.type} scores nobody on them: leave them "
            "out by dataset.filter, or give them one"
        )
    for sentence in unread_targets(checked.spec, checked.dataset.examples):
        print(f"check: {sentence}")
    for complaint in unset_variables(checked.spec.execution.notify):
        print(f"check: {complaint}")
    if (resolution := expected_resolution(checked)) is not None:
        print(f"new examples: {resolution}")
    for word, sentence in repeat_lines(expected_unsteady(checked)):
        print(f"{word}: {sentence}")


def _of_the_task(spec: "CampaignSpec") -> str:
    """The keys that a benchmark became, as a campaign's file would say them."""
    import yaml

    from winnow.tasks.setup.task_key import BECOMES

    values = spec.model_dump(mode="json", exclude_none=True, include={*BECOMES})
    first = spec.models[0].generate_config.model_dump(mode="json", exclude_unset=True)
    shown = {**values, **({"generate_config": first} if first else {})}
    text: str = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=100)
    return "\n".join(f"  {line}" for line in text.splitlines())


def run(
    spec: SpecPath,
    set_: Overrides = None,
    fork: Fork = None,
    exhaustive: Exhaustive = False,
    allow_missing: AllowMissing = False,
    allow_all_zero: AllowAllZero = False,
    storage: SpecStorage = None,
    trust: TrustOption = False,
    verbose: Verbose = False,
    log_format: LogFormatOption = LogFormat.text,
    log_level: LogLevelOption = None,
) -> None:
    """Run a campaign; one that was begun before goes on where it stopped."""
    from winnow.flows.run.launch import launching, run_stored_campaign
    from winnow.flows.run.trust_prompt import Trust, approving
    from winnow.tasks.setup.load import check_campaign_file

    overrides = overrides_of(
        set_,
        fork=fork,
        storage=storage,
        allow_missing=allow_missing,
        allow_all_zero=allow_all_zero,
    )
    approval = approving(Trust(everything=trust, asks=True))
    with logged(log_format, log_level), launching() as launch:
        checked = check_campaign_file(spec, overrides, approval, launch.recall)
        if exhaustive:
            from winnow.tasks.setup.load import exhaustive_campaign

            checked = exhaustive_campaign(checked)
        code = run_stored_campaign(launch.store(checked), is_brief=not verbose)
    raise typer.Exit(code)


def resume(
    name: OneCampaign = None,
    all_: Annotated[
        bool,
        typer.Option("--all", help="Every campaign that was left unfinished and that nobody runs."),
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change what may change of the campaign: stopping.budget, execution, tags and the like.",
        ),
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    trust: TrustOption = False,
    verbose: Verbose = False,
    log_format: LogFormatOption = LogFormat.text,
    log_level: LogLevelOption = None,
) -> None:
    """Go on with a stored campaign, or with all that were left unfinished; their files are not needed.

    A campaign that has spent its budget goes on with a larger one: winnow resume NAME --set
    stopping.budget=MORE
    """
    if (name is not None) == all_:
        raise SpecError("name a campaign to go on with, or say --all")
    if set_ and name is None:
        raise SpecError("--set changes one campaign; name it instead of saying --all")

    from winnow.flows.run.launch import change_stored_campaign, run_stored_campaign, run_unfinished_campaigns
    from winnow.flows.run.trust_prompt import Trust
    from winnow.tasks.campaign.campaign import opened_campaign

    allowed = Trust(everything=trust, asks=True)
    with logged(log_format, log_level):
        if name is None:
            code = run_unfinished_campaigns(storage, Trust(everything=trust))
        else:
            with opened_campaign(storage, name) as campaign:
                if set_:
                    change_stored_campaign(campaign, set_, allowed)
                code = run_stored_campaign(campaign, allowed, is_brief=not verbose)
    raise typer.Exit(code)
