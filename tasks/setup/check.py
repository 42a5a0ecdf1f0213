"""Check a campaign, and all that it refers to, before anything is stored."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from winnow.algorithms.errors import AlgorithmError
from winnow.algorithms.registry import describe, looks_ahead, third_party
from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.json_types import JsonObject
from winnow.storage.objectives import traits_of
from winnow.tasks.campaign.budget import devices_by_model, reporting_models, unpriced
from winnow.tasks.campaign.kept_rules import EXCESS, TIES
from winnow.tasks.campaign.resolved import ResolvedCampaign, common_params
from winnow.tasks.campaign.scored import ScoredCampaign
from winnow.tasks.candidates.cache_keys import is_greedy
from winnow.tasks.candidates.candidates import Candidate
from winnow.tasks.data.clusters import PLACE, clusters_of
from winnow.tasks.data.datasets import Dataset, Example
from winnow.tasks.data.images import DETAILS, IMAGES_KEY
from winnow.tasks.data.sources import read_dataset
from winnow.tasks.data.tag_counts import values_of
from winnow.tasks.data.template_grammar import TARGET, left_out_part
from winnow.tasks.data.trial_renders import try_templates
from winnow.tasks.dotted_names import MISSING, value_of
from winnow.tasks.engines.chat import Prompt, own_template, why_refused
from winnow.tasks.engines.checkpoints import reads_images
from winnow.tasks.engines.images import FETCHING, SHOWING
from winnow.tasks.engines.known_providers import AGENTS, REMOTE
from winnow.tasks.engines.list_prices import CURRENCY, list_price
from winnow.tasks.engines.providers import devices_wanted, require_provider
from winnow.tasks.errors import SpecError, TemplateError, unknown_name
from winnow.tasks.judges.protocol import BEST_OF, Sample, lacks_target
from winnow.tasks.judges.registry import create_judge, within
from winnow.tasks.plugins.entry_points import PluginFailed
from winnow.tasks.plugins.extras import missing_for, require
from winnow.tasks.plugins.source_code import code_digests
from winnow.tasks.setup.auto_epsilon import AUTO, with_epsilon
from winnow.tasks.setup.output_types import check_output_type, check_structured_outputs
from winnow.tasks.setup.yaml_file import to_add
from winnow.tasks.spec.campaign import CampaignSpec, judges_of
from winnow.tasks.spec.judge_tree import BUILT_IN, HUMAN
from winnow.tasks.spec.sections.budget import PriceSpec
from winnow.tasks.spec.selector_traits import ENDS_WITH_TIES

MOST_VALUES = 100
"""Maximum number of values of a tag."""


def check_campaign(
    spec: CampaignSpec, dataset: Dataset | None = None, *, is_allowed: bool = True, is_stored: bool = False
) -> ResolvedCampaign:
    """Resolve and check everything that a campaign refers to; write nothing.

    Args:
        spec: The campaign.
        dataset: Its data, if known already, as on resume; None to read them.
        is_allowed: See `read_dataset`.
        is_stored: Whether it began with these examples, so that its templates were already tried on them.

    Raises:
        SpecError: A part is missing or invalid; gives the key, the problem and the remedy.
    """
    check_people(spec)
    if not is_stored:
        _check_depth(spec)
    _check_objective(spec)
    dataset = dataset or read_dataset(spec.dataset, is_allowed=is_allowed)
    _check_fields(spec, dataset)
    has_auto_epsilon = spec.stopping.epsilon == AUTO
    spec = with_epsilon(spec, len(dataset.examples))
    checked = _with_budget(class_of(spec.objective).check(spec, dataset, is_allowed=is_allowed))
    checked = replace(checked, has_auto_epsilon=has_auto_epsilon)
    if not is_stored:
        checked = _with_list_prices(checked)
    check_structured_outputs(spec)
    _check_images(checked)
    _check_samples(checked)
    _check_tags(checked)
    _check_devices(checked)
    _check_selector(checked)
    checked = replace(checked, selector_code=_selector_code(spec), weighing=check_output_type(checked))
    _check_prices(checked)
    _check_gpu_seconds(checked)
    check_targets(checked)
    if not is_stored:
        _check_readable(checked)
        _try_templates(checked)
        check_tests(checked)
    _try_chats(checked)
    return checked


def _with_budget(checked: ResolvedCampaign) -> ResolvedCampaign:
    """Set the whole grid as the budget if the file sets no budget.

    It is at least one round.
    """
    spec = checked.spec
    if spec.stopping.budget is not None:
        return checked
    stopping = spec.stopping.model_copy(update={"budget": max(checked.grid, spec.batch_size)})
    return replace(checked, spec=spec.model_copy(update={"stopping": stopping}))


def _check_fields(spec: CampaignSpec, dataset: Dataset) -> None:
    """Refuse a campaign that names a field which was omitted from examples."""
    tags = {f"tags[{index}]": tag for index, tag in enumerate(spec.tags)}
    others = {
        "prompt_type": spec.prompt_type,
        "groups.by": None if spec.groups is None else spec.groups.by,
        "choices.field": None if spec.choices is None else spec.choices.field,
        PLACE: spec.dataset.cluster,
    }
    for path, name in (*tags.items(), *others.items()):
        if name is not None and left_out_part(name, dataset.left_out) is not None:
            raise SpecError(dataset.unknown_field(name), path=path)
    _check_clusters(spec, dataset)


def _check_clusters(spec: CampaignSpec, dataset: Dataset) -> None:
    """Refuse a cluster field that some examples lack, or that does not apply."""
    if spec.dataset.cluster is None:
        return
    traits = traits_of(spec.objective)
    if traits.measures_risk or traits.is_stream:
        why = "its bets need independent labels, and labels of one cluster are not"
        if traits.is_stream:
            why = "prompts arrive one by one"
        raise SpecError(
            f"is only for best-mean and best-duel: {spec.objective} counts single examples: {why}; remove "
            "cluster, and keep one example of each cluster",
            path=PLACE,
        )
    clusters = clusters_of([each.fields for each in dataset.examples], spec.dataset.cluster)
    if len(set(clusters)) == 1 < len(clusters):
        raise SpecError(
            f"{spec.dataset.cluster} has the same value in every example; name another field", path=PLACE
        )


def require_extras(checked: ResolvedCampaign) -> None:
    """Refuse a campaign whose engines need packages that are not installed.

    A campaign's file is valid without these packages, because another machine can run it. The machines of a
    cluster have their own packages.

    Raises:
        ExtraMissing: A package is missing; gives the command that installs the first one.
    """
    if checked.spec.execution.cluster == "ray":
        require("ray", "execution.cluster: ray")
        return
    for model in checked.models_to_ask:
        require_provider(model)


def _check_devices(checked: ResolvedCampaign) -> None:
    """Refuse a model that needs more devices than exist."""
    devices = checked.spec.execution.devices
    for model in checked.models:
        try:
            wanted = devices_wanted(model)
        except ValueError as error:
            raise SpecError(f"model '{model.name}': {error}", path="models") from error
        if devices and wanted > len(devices):
            raise SpecError(
                f"model '{model.name}' needs {wanted} devices (tensor_parallel_size x "
                f"pipeline_parallel_size), and there are {len(devices)}; add devices, or lower "
                "these arguments",
                path="execution.devices",
            )


def _check_images(checked: ResolvedCampaign) -> None:
    """Refuse images that a candidate could not be shown."""
    spec = checked.spec
    if not spec.dataset.images:
        return
    if traits_of(spec.objective).is_stream:
        raise SpecError(f"{spec.objective} answers prompts without images; remove images", path=IMAGES_KEY)
    if spec.output_type != "generate":
        raise SpecError(
            f"no images are shown with output_type: {spec.output_type}; remove images", path=IMAGES_KEY
        )
    for index, prompt in enumerate(spec.prompts):
        if prompt.few_shot is not None:
            raise SpecError(
                "solved examples are shown without images; remove few_shot, or dataset.images",
                path=f"prompts[{index}].few_shot",
            )
    described = [cast("list[JsonObject]", each.fields[DETAILS]) for each in checked.dataset.examples]
    urls = [each["url"] for images in described for each in images if "url" in each]
    models = {each.model.name: each.model for each in checked.candidates if each.model.provider not in AGENTS}
    for name, model in models.items():
        place = f"models[{[each.name for each in spec.models].index(name)}]"
        if model.provider not in SHOWING:
            raise SpecError(
                f"provider {model.provider} is shown no images; choose one of {', '.join(sorted(SHOWING))}",
                path=f"{place}.provider",
            )
        if not model.chat:
            raise SpecError("images are part of a chat; set chat: true", path=f"{place}.chat")
        if urls and model.provider not in FETCHING:
            raise SpecError(
                f"model '{name}' has provider {model.provider}, for which Winnow fetches no URL, such as "
                f"{urls[0]!a}; download the images, and name their paths",
                path=IMAGES_KEY,
            )
        if model.provider in REMOTE:
            continue
        if not reads_images(Path(model.model)):
            raise SpecError(
                f"{model.model} reads no images: its config.json has no vision part; choose a vision model",
                path=f"{place}.model",
            )
        if spec.execution.cluster == "ray":
            raise SpecError(
                "models on a Ray cluster are shown no images; remove cluster", path="execution.cluster"
            )


def _check_samples(checked: ResolvedCampaign) -> None:
    """Refuse samples that are all equal or do not apply, and an incomplete best-of."""
    chooses = checked.spec.judge.type == BEST_OF
    if chooses != (checked.spec.samples is not None and checked.spec.samples.reduce == BEST_OF):
        raise SpecError(
            f"judge {BEST_OF} and samples: {{reduce: {BEST_OF}}} need each other: the judge chooses among "
            "the samples; set both or neither",
            path="judge.type" if chooses else "samples",
        )
    if checked.spec.samples is None:
        return
    if checked.spec.output_type != "generate":
        raise SpecError(
            f"nothing is sampled with output_type: {checked.spec.output_type}; remove samples",
            path="samples",
        )
    for each in checked.candidates:
        if is_greedy(each.model, each.sampling):
            raise SpecError(
                f"candidate '{each.name}' is greedy, so all its samples are equal; set a temperature for "
                "it, exclude it, or remove samples",
                path="samples",
            )


def _check_tags(checked: ResolvedCampaign) -> None:
    """Refuse a tag that no example has, or with more than `MOST_VALUES` values."""
    if not checked.spec.tags:
        return
    examples = checked.dataset.examples
    for index, tag in enumerate(checked.spec.tags):
        if not any(value_of(example.fields, tag) is not MISSING for example in examples):
            raise SpecError(checked.dataset.unknown_field(tag), path=f"tags[{index}]")
        values = {value for example in examples for value in values_of(example.fields, tag)}
        if len(values) > MOST_VALUES:
            raise SpecError(
                f"{tag} has {len(values)} different values, and a tag can have at most {MOST_VALUES}; use a "
                "field that groups examples",
                path=f"tags[{index}]",
            )


def _check_objective(spec: CampaignSpec) -> None:
    """Refuse a selector of another objective, before the objective's own checks."""
    try:
        objective = describe(spec.selector.name, spec.objective).objective
    except (AlgorithmError, PluginFailed) as error:
        raise SpecError(str(error), path="selector") from error
    if objective != spec.objective:
        certify = spec.certify and spec.certify.model_dump()
        fitting = to_add("selector.name", {"objective": spec.objective, "certify": certify})
        raise SpecError(
            f"{spec.selector.name} is a selector for {objective}, not for {spec.objective}; "
            f"choose another{fitting}",
            path="selector.name",
        )


def _check_selector(checked: ResolvedCampaign) -> None:
    spec = checked.spec
    if spec.stopping.ties is not None and spec.selector.name not in ENDS_WITH_TIES:
        raise SpecError(
            f"ties does not apply to {spec.selector.name}; remove ties, or choose one of "
            f"{', '.join(ENDS_WITH_TIES)}",
            path="stopping.ties",
        )
    if EXCESS in spec.selector.params:
        raise SpecError(
            f"new campaigns always report how much better another candidate can be; remove {EXCESS}",
            path=f"selector.params.{EXCESS}",
        )
    for clash in sorted(spec.selector.params.keys() & {*common_params(spec), TIES}):
        raise SpecError(
            f"{clash} is set for every selector by the spec's own keys "
            "(batch_size, stopping, fail_on_error, certify); set it there",
            path=f"selector.params.{clash}",
        )
    try:
        checked.tried.append(checked.create_selector())
        if spec.lookahead and not looks_ahead(spec.selector.name):
            raise SpecError(
                f"{spec.selector.name} has no method take_up, which lookahead needs to resume rounds in "
                "flight; remove lookahead, or choose another selector",
                path="lookahead",
            )
    except (AlgorithmError, PluginFailed) as error:
        raise SpecError(str(error), path="selector") from error


def _selector_code(spec: CampaignSpec) -> dict[str, str] | None:
    """Digests of a third-party selector's code, which must not change in a campaign.

    None for a built-in selector.
    """
    entry = third_party(spec.selector.name)
    return None if entry is None else code_digests(entry)


def _with_list_prices(checked: ResolvedCampaign) -> ResolvedCampaign:
    """Add list prices for models without a price, unless the currency differs.

    Agents report prices themselves, in a currency that only the user knows.
    """
    execution = checked.spec.execution
    has_agents = any(each.provider in AGENTS for each in checked.models)
    has_own = execution.prices or execution.price_per_hour is not None or has_agents
    if execution.currency not in ((CURRENCY,) if has_own else (CURRENCY, None)):
        return checked
    listed = {each.name: price for each in checked.models if (price := list_price(each))}
    prices = {name: PriceSpec(input=price[0], output=price[1]) for name, price in listed.items()}
    if not prices.keys() - execution.prices.keys():
        return checked
    changes = {"prices": {**prices, **execution.prices}, "currency": CURRENCY}
    changed = execution.model_copy(update=changes)
    return replace(checked, spec=checked.spec.model_copy(update={"execution": changed}))


def _check_prices(checked: ResolvedCampaign) -> None:
    execution, names = checked.spec.execution, [model.name for model in checked.models]
    for name in execution.prices:
        if name not in names:
            raise SpecError(unknown_name("model", name, names), path=f"execution.prices.{name}")
    if "cost" not in checked.spec.limits:
        return
    identity = checked.spec.identity()
    devices = devices_by_model(identity)
    reporting = reporting_models(identity)
    if missing := unpriced(names, execution.prices, execution.price_per_hour, devices, reporting):
        by_hour = ", or execution.price_per_hour" if devices.get(missing[0], 1) else ""
        raise SpecError(
            f"no token price for model {missing[0]}; set execution.prices.{missing[0]}: "
            f"{{input: X, output: Y}} (per million tokens){by_hour}",
            path="stopping.budget.cost",
        )


def _check_gpu_seconds(checked: ResolvedCampaign) -> None:
    if "gpu_seconds" in checked.spec.limits and not any(devices_by_model(checked.spec.identity()).values()):
        raise SpecError(
            "has no effect because all models run elsewhere; use tokens, comparisons or cost instead",
            path="stopping.budget.gpu_seconds",
        )


def _try_templates(checked: ResolvedCampaign) -> None:
    """Render templates on some examples, so that errors appear early.

    See `tasks.data.trial_renders`.
    """
    different = {each.names[1:3]: each for each in checked.candidates}.values()
    renders = [partial(_render, candidate) for candidate in different]
    try_templates(renders, checked.dataset.examples)


def _try_chats(checked: ResolvedCampaign) -> None:
    """Render chat templates, so that a refused prompt is reported now.

    An example is a prompt with a system message. This tries one example, if the checkpoint is a folder; more
    is unknown before the model is loaded.
    """
    example = checked.dataset.examples[0]
    for each in {each.names[:2]: each for each in checked.candidates}.values():
        folder, prompt = Path(each.model.model), each.prompt(example.fields, example.key)
        if isinstance(prompt, str) or each.model.provider in REMOTE:
            continue
        template = each.model.chat_template or own_template(folder)
        if template is None or missing_for("local", "a chat template"):
            continue
        args, in_parts = each.model.chat_template_args, each.model.shows_images
        if why := why_refused(template, folder, prompt, args, in_parts=in_parts):
            numbers = [number for number, one in enumerate(checked.spec.prompts) if one.name == each.names[1]]
            raise SpecError(
                f"the chat template of model '{each.model.name}' does not accept this prompt: {why}; "
                f"change the prompt, or exclude {{model: {each.model.name}, prompt: {each.names[1]}}}",
                path=f"prompts[{numbers[0]}]",
            )


def _render(candidate: Candidate, example: Example) -> Prompt:
    return candidate.prompt(example.fields, example.key)


TRIED = ("rules.", "isolated.")
"""Packages of judges that need no call and no permission."""
NOT_TRIED = ("human", "python")

READS_TARGETS = ("choice", "math", "numeric")
"""Rule judges that can be unable to read targets."""
CHECK_READABLE = "winnow.tasks.setup.unread_targets:check_readable"
"""Import path of the function, so that campaigns with other judges do not import it."""


def check_targets(checked: ResolvedCampaign) -> None:
    """Refuse a dataset without targets if no comparison could be scored.

    Raises:
        SpecError: No comparison could be scored; gives the judge and the field.
    """
    lacking = without_targets(checked)
    if len(lacking) == len(checked.dataset.examples):
        raise SpecError(
            f"judge {checked.spec.judge.type} compares outputs with targets, and no example has one; name "
            "the field with the targets, or choose a judge that needs no targets",
            path="dataset.fields.target",
        )


def _check_readable(checked: ResolvedCampaign) -> None:
    """Refuse a campaign whose judge can read no target.

    See `tasks.setup.unread_targets`.
    """
    if (
        checked.spec.judge.type in READS_TARGETS
        and isinstance(checked, ScoredCampaign)
        and not traits_of(checked.spec.objective).measures_risk
    ):
        object_at(CHECK_READABLE)(checked.spec, checked.dataset.examples)


def without_targets(checked: ResolvedCampaign) -> Sequence[Example]:
    """Examples whose outputs cannot be scored, because they have no target.

    This is known only for judges that are rules or libraries; for others the result is empty.
    """
    if not isinstance(checked, ScoredCampaign) or traits_of(checked.spec.objective).measures_risk:
        return ()
    name = checked.spec.judge.type
    maker = BUILT_IN.get(name)
    if name in NOT_TRIED or maker is None or not maker.location.startswith(TRIED):
        return ()
    lacking = checked.dataset.without_targets
    if not lacking:
        return ()
    sample = Sample(output="1", fields=lacking[0].fields, example=lacking[0].key)
    return lacking if lacks_target(checked.judge, sample) else ()


def class_of(objective: str) -> type[ResolvedCampaign]:
    """The class of campaigns with the given objective."""
    found: type[ResolvedCampaign] = object_at(traits_of(objective).campaign)
    return found


MOST_AROUND = 32
"""Maximum nesting depth of judges."""


def _check_depth(spec: CampaignSpec) -> None:
    """Refuse judges that are nested too deep for the interpreter's stack."""
    for judge in judges_of(spec):
        if judge.place.count(".judges[") > MOST_AROUND:
            raise SpecError(
                f"a judge is nested inside more than {MOST_AROUND} others; combine the judges in one list",
                path=judge.place.partition(".judges[")[0],
            )


def check_people(spec: CampaignSpec) -> None:
    """Refuse a human judge in campaigns that do not support it.

    These are a human judge inside another judge, a stream of prompts, `lookahead`, `samples`, and every
    `output_type` except `generate`.

    Raises:
        SpecError: The campaign is one of these; gives the key and the remedy.
    """
    for judge in judges_of(spec):
        if judge.type == HUMAN and judge.place != "judge":
            raise SpecError(
                "a human judge cannot be part of another judge; make it the campaign's judge",
                path=judge.place,
            )
    if spec.judge.type != HUMAN:
        return
    if traits_of(spec.objective).is_stream:
        raise SpecError(
            f"a stream of prompts cannot wait for annotators; choose another judge for {spec.objective}",
            path="judge.type",
        )
    if spec.lookahead:
        raise SpecError("annotators judge one round at a time; remove lookahead", path="lookahead")
    if spec.samples is not None:
        raise SpecError("annotators judge one output for each example; remove samples", path="samples")
    if spec.output_type != "generate":
        raise SpecError(
            f"annotators judge generated outputs, and output_type: {spec.output_type} generates none; "
            "remove output_type",
            path="output_type",
        )


if TYPE_CHECKING:
    from winnow.tasks.judges.code.judge import CodeJudge

CODE = "code"
"""Type of the judge that runs programs."""


def check_tests(checked: ResolvedCampaign) -> None:
    """Refuse a judge `code` whose templates fail on an example, or that has no tests.

    Raises:
        SpecError: The judge is refused; gives the example and the problem.
    """
    spec = checked.spec
    for node in spec.judge.tree().walk():
        if node.type != CODE:
            continue
        place = node.place
        judge = cast("CodeJudge", within(node.params, place, create_judge).parts[0])
        seen: list[str] = []
        try_templates([partial(_render_tests, judge, place, seen)], checked.dataset.examples)
        are_labels = traits_of(spec.objective).measures_risk and TARGET in judge.variables
        if not any(seen) and not are_labels:
            raise SpecError("no example has tests; name the field with the tests", f"{place}.tests")


def _render_tests(judge: "CodeJudge", place: str, seen: list[str], example: Example) -> None:
    try:
        seen.append(judge.rendered(example.fields, example.targets, example.key)["tests"].strip())
    except TemplateError as error:
        raise SpecError(error.message, (error.path or "judge").replace("judge", place, 1)) from error
