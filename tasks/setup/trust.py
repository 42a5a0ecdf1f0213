"""Permissions that a campaign needs, such as to send keys or to run code.

A campaign's file may come from a third party. All permissions that it needs are determined before any of them
is used, so that the user can be asked first. A server on this machine counts as the user's own, except for
webhooks.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from glob import glob, has_magic
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from winnow.storage.engine.database import without_password
from winnow.storage.json_types import JsonView
from winnow.storage.text import in_home
from winnow.tasks.data.dataset_files import read_files
from winnow.tasks.data.harnesses import harness_of
from winnow.tasks.data.images import IMAGES_KEY, image_paths
from winnow.tasks.engines.agents.kit.settings import AgentSettings
from winnow.tasks.engines.known_providers import ELSEWHERE, REMOTE
from winnow.tasks.engines.server_keys import (
    DEFAULT_VARIABLE,
    OPENAI_URL,
    base_url_of,
    key_variable,
    server_url,
)
from winnow.tasks.errors import DatasetError
from winnow.tasks.plugins.allowed_code import PROGRAMS_OF_MODELS, Act, act_of_function, code_of_model
from winnow.tasks.spec.campaign import CampaignSpec, judges_of
from winnow.tasks.spec.judge_tree import WITH_FUNCTIONS, functions_of, names_file
from winnow.tasks.spec.sections.dataset import SourceSpec
from winnow.tasks.spec.sections.models import AgentModelSpec, places_of

Placed = tuple[str, JsonView]
"""A mapping with its key in the file."""

RAYS_OWN = frozenset({"auto", "local"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """One permission that the user has to give."""

    text: str
    """The action, in words that follow "it would".
    Equal actions have equal words, which are printable ASCII.
    """
    keys: tuple[str, ...]
    """Keys of the file that together require this permission."""
    digests: Mapping[str, str] | None = None
    """SHA-256 of each local code file that the action runs, by module or path.
    None if it runs no code from the user's disk.
    """


def permissions(spec: CampaignSpec, folder: Path) -> list[Permission]:
    """All permissions that a campaign needs, without duplicates.

    Files of code are read for this, but not run.

    Args:
        spec: The campaign.
        folder: Folder that its relative paths are based on, and in which it can write.
    """
    needed = {each.text: each for each in _needed(spec, folder)}
    return list(needed.values())


def _needed(spec: CampaignSpec, folder: Path) -> Iterator[Permission]:
    yield from _files_sent(spec, folder)
    for place, model in _models(spec):
        yield from _keys_sent(place, model)
        if model.get("provider", "vllm") not in ELSEWHERE:
            for name, act in code_of_model(model, folder):
                yield _allowing(act, f"{place}.model_args.{name}")
    for place, agent in agents_of(spec):
        for key, act in agent.acts(folder):
            yield _allowing(act, f"{place}.{key}")
        if agent.server is not None:
            for variable, key in agent.variables():
                yield from _key_sent(agent.server, variable, f"{place}.{key}", f"{place}.url")
    if (harness := harness_of(spec.dataset)) is not None:
        for act, keys in harness.acts(spec.dataset, folder):
            yield _allowing(act, *keys)
    for place, judge in _judges(spec):
        for key, path in functions_of(judge) if judge.get("type") in WITH_FUNCTIONS else ():
            file, _, function = in_home(path).rpartition(":")
            yield _allowing(act_of_function(folder / file, function), f"{place}.{key}")
        if judge.get("type") == "code" and judge.get("allow_code") is True:
            yield Permission(text=PROGRAMS_OF_MODELS, keys=(f"{place}.allow_code",))
    execution = spec.execution
    if execution.cluster == "ray" and execution.ray_address not in RAYS_OWN:
        address = execution.ray_address
        try:
            host = urlsplit(address if "://" in address else f"ray://{address}").hostname
        except ValueError:  # no URL; Ray says so
            host = None
        if not is_loopback(host):
            text = f"join the Ray cluster at {address!a}, which can run any code here"
            yield Permission(text=text, keys=("execution.ray_address",))
    yield from _webhooks(spec)
    if (logs := _outside(execution.log_folder, folder)) is not None:
        yield Permission(text=f"write logs into {logs}", keys=("execution.log_folder",))
    if (results := place_of_results(spec.storage, folder)) is not None:
        yield results


def agents_of(spec: CampaignSpec) -> Iterator[tuple[str, AgentSettings]]:
    """Yield the agents of a campaign, each with its key in the file."""
    for place, model in zip(places_of(spec.models), spec.models, strict=True):
        if isinstance(model, AgentModelSpec):
            yield place, model.settings


def _allowing(act: Act, *keys: str) -> Permission:
    return Permission(text=act.text, keys=keys, digests=act.digests)


def _judges(spec: CampaignSpec) -> Iterator[Placed]:
    """Yield the parameters of each judge, with their place in the spec.

    For a third-party judge, also all mappings below its parameters.
    """
    for judge in judges_of(spec):
        yield judge.place, judge.params
        if judge.is_plugin:
            yield from _mappings_below(judge.place, judge.params)


def _models(spec: CampaignSpec) -> Iterator[Placed]:
    """Yield the mappings of models; for a third-party judge, all mappings in it."""
    for index, model in enumerate(spec.models):
        yield f"models[{index}]", model.model_dump()
    for judge in judges_of(spec):
        if judge.is_plugin:
            yield judge.place, judge.params
            yield from _mappings_below(judge.place, judge.params)
        else:
            yield from judge.own_models
    if spec.certify is not None and spec.certify.autoevaluator is not None:
        yield "certify.autoevaluator.model", spec.certify.autoevaluator.model.model_dump()


def _mappings_below(place: str, value: object) -> Iterator[Placed]:
    """Yield all mappings inside a value, at any depth."""
    entries: list[tuple[str, object]] = []
    if isinstance(value, Mapping):
        entries = [(f"{place}.{key}", each) for key, each in value.items()]
    elif isinstance(value, list):
        entries = [(f"{place}[{index}]", each) for index, each in enumerate(value)]
    for inner, each in entries:
        if isinstance(each, Mapping):
            yield inner, each
        yield from _mappings_below(inner, each)


def _files_sent(spec: CampaignSpec, folder: Path) -> Iterator[Permission]:
    """Yield permissions to send files outside the folder to servers, even local ones.

    Examples are sent to each server of the campaign's candidates and judges. Templates are sent only to their
    own server, and images only to the servers of candidates.
    """
    of_all: list[_Read] = list(_data_read(spec))
    sent: dict[str, list[_Read]] = {}
    images = list(_images_outside(spec, folder))
    for place, model in _models(spec):
        if model.get("provider") in REMOTE:
            files = sent.setdefault(_server_of(model), [])
            files += [each for each in of_all if each not in files]
            if isinstance(template := model.get("chat_template"), str):
                files.append((f"{place}.chat_template", in_home(template)))
    of_candidates = {_server_of(each.model_dump()) for each in spec.models if each.provider in REMOTE}
    for _, agent in agents_of(spec):
        if agent.server is not None:
            files = sent.setdefault(origin_of(agent.server), [])
            files += [each for each in of_all if each not in files]
    for judge in judges_of(spec):
        template = judge.params.get("template")
        if isinstance(template, str) and names_file(template):
            servers = {_server_of(model) for _, model in judge.own_models if model.get("provider") in REMOTE}
            for server in servers & sent.keys():
                sent[server].append((f"{judge.place}.template", in_home(template)))
    for server, read in sent.items():
        found = [(key, path) for key, given in read for path in _outside_of(given, folder)]
        if server in of_candidates:
            found += images
        if found:
            shown = sorted({path for _, path in found})
            text = f"read {', '.join(shown)} and send {'it' if len(shown) == 1 else 'them'} to {server!a}"
            yield Permission(text=text, keys=tuple(dict.fromkeys(key for key, _ in found)))


def _images_outside(spec: CampaignSpec, folder: Path) -> Iterator["_Read"]:
    """The folders outside, as patterns, that hold images which a data file names for models of servers."""
    paths = [spec.dataset.path] if isinstance(spec.dataset.path, str) else spec.dataset.path
    if not spec.dataset.images or not paths or not any(each.provider in REMOTE for each in spec.models):
        return
    found: set[str | None] = set()
    with suppress(DatasetError, OSError, ValueError):  # which the check reports if the campaign reads as far
        rows = read_files([str(folder / each) for each in paths])
        for path in image_paths(rows, spec.dataset.images):
            found.add(_outside(path, folder, of_folder=True))
    yield from ((IMAGES_KEY, each) for each in sorted(filter(None, found)))


_Read = tuple[str, str]
"""A key that names a path, and the path."""


def _data_read(spec: CampaignSpec) -> Iterator[_Read]:
    """Yield the paths of a campaign's examples and solved examples."""
    sources: list[tuple[str, SourceSpec]] = [("dataset", spec.dataset)]
    for index, prompt in enumerate(spec.prompts):
        if prompt.few_shot is not None and prompt.few_shot.source is not None:
            sources.append((f"prompts[{index}].few_shot.from", prompt.few_shot.source))
    for place, source in sources:
        paths = [source.path] if isinstance(source.path, str) else source.path or ()
        yield from ((f"{place}.path", each) for each in paths)
        if source.hub is not None:
            yield f"{place}.hub", source.hub
    if (harness := harness_of(spec.dataset)) is not None:
        yield from harness.files(spec.dataset)


def _server_of(model: Mapping[str, object]) -> str:
    """Origin of a model's server; the value in the file if it is not a URL."""
    url = model.get("model_base_url")
    try:
        return origin_of(
            base_url_of(model.get("provider"), model.get("model"), None if url is None else str(url))
        )
    except ValueError:
        return str(url or model.get("model"))


def _outside_of(given: str, folder: Path) -> Iterator[str]:
    """Yield the files of a path, pattern or folder that are outside the folder.

    Links are followed. A pattern that begins outside the folder is one entry.
    """
    try:
        path = folder / given
        if has_magic(given) and not path.exists():
            if glob(str(path), recursive=True) and _outside(str(path.parent), folder) is not None:
                yield ascii(str(path.parent.resolve() / path.name))
                return
            files = [Path(each) for each in glob(str(path), recursive=True)]
        else:  # a missing path is a name on the hub, or reading it reports the error
            files = [path] if path.exists() else []
        folders = [each for each in files if each.is_dir() and _outside(str(each), folder) is None]
        files += [within for each in folders for within in each.rglob("*")]
    except (OSError, RuntimeError, ValueError):
        yield ascii(given)
        return
    yield from filter(None, (_outside(str(each), folder) for each in files))


def _keys_sent(place: str, model: Mapping[str, object]) -> Iterator[Permission]:
    url, key = model.get("model_base_url"), model.get("api_key")
    if model.get("provider") not in REMOTE or not isinstance(key, str | None):
        return
    if not isinstance(url, str | None):
        return
    try:
        url = base_url_of(model.get("provider"), model.get("model"), url)
        if (variable := key_variable(url, key)) is None:
            return
        if f"${variable}" == DEFAULT_VARIABLE and origin_of(url) == origin_of(OPENAI_URL):
            return
        yield from _key_sent(url, variable, f"{place}.api_key", f"{place}.model_base_url")
    except ValueError:  # not a URL, or an unknown server: the check of the models reports it
        return


def _key_sent(url: str | None, variable: str, *keys: str) -> Iterator[Permission]:
    """Yield the permission to send an environment variable to another machine.

    Raises:
        ValueError: The address is not a URL.
    """
    origin = origin_of(url)
    if not is_loopback(urlsplit(origin).hostname):
        yield Permission(text=f"send the environment variable {variable} to {origin!a}", keys=keys)


def _webhooks(spec: CampaignSpec) -> Iterator[Permission]:
    """Yield a permission for each webhook, even on this machine.

    A request to a wrong path of a local server could do anything.
    """
    for index, webhook in enumerate(spec.execution.notify):
        url = webhook.url
        where = f"the URL in the environment variable {url[1:]}" if url.startswith("$") else ascii(url)
        yield Permission(text=f"send how campaigns end to {where}", keys=(f"execution.notify[{index}].url",))


def origin_of(base_url: str | None) -> str:
    """Scheme, host and port of a server; None is OpenAI's API.

    Raises:
        ValueError: The text is not a URL.
    """
    parts = urlsplit(server_url(base_url))
    return f"{parts.scheme}://{parts.netloc}"


def is_loopback(host: str | None) -> bool:
    """Whether a host is this machine, by an address or name that always means it."""
    if host == "localhost":
        return True
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return False


def _outside(path: str, folder: Path, *, of_folder: bool = False) -> str | None:
    """The displayed path if it leads outside of the folder; else None.

    With `of_folder`, this is a pattern for all files in the path's folder.
    """
    try:
        found = (folder / path).resolve()
        inside = found.is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, or an invalid path
        return ascii(path)
    return None if inside else ascii(str(found.parent / "*" if of_folder else found))


def place_of_results(storage: str, folder: Path) -> Permission | None:
    """The permission to use a database; None if it needs no permission.

    See `permissions`.
    """
    results = _results(storage, folder)
    return None if results is None else Permission(text=f"keep results in {results}", keys=("storage",))


def _results(storage: str, folder: Path) -> str | None:
    """The displayed database, unless it is in the folder or on this machine's server.

    None if it is.
    """
    try:
        url = make_url(storage)
    except (ArgumentError, ValueError):  # opening the database reports the error
        return None
    if url.get_backend_name() == "sqlite" and not url.query and not (url.database or "").startswith("file:"):
        return None if url.database in (None, "", ":memory:") else _outside(url.database, folder)
    # A host in the query overrides the host before it in libpq.
    if not url.query and (not url.host or is_loopback(url.host)):
        return None
    return ascii(without_password(url))
