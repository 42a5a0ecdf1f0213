"""Keep libraries from reading settings in the working folder or its parents.

A folder may be untrusted, and settings of libraries may name code to run or a server to send data to. The
user's own settings, in environment variables and in the home folder, stay active. Some libraries have no
switch for this: their modules are changed at import, or are imported in an empty folder.

| library | what it would read | prevented by |
|---|---|---|
| Prefect | .env, prefect.toml, pyproject.toml, profiles.toml | `_close_prefect`, `_close_prefects_models` |
| Streamlit | .streamlit/config.toml, .streamlit/secrets.toml | a process with another working folder |
| W&B | wandb/settings | `_close_wandb` |
| LiteLLM | .env, there and above | variables of its process, `litellm/engine.py` |
| MLflow | .env, only by its command | nothing, because its command is not used |
| numba, of vLLM | .numba_config.yaml | `_close_numba` |
| matplotlib | matplotlibrc | an import in another folder |
| torch | compiled code in a folder of /tmp that any user can create first | `compiled_code` |
| Ray | modules, because its workers import from there | `winnow.tasks.engines.ray.cluster` |
| Python's own processes | modules, if started with -c or -m | PYTHONSAFEPATH |

Transformers and vLLM read no settings there.
"""

import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import ClassVar

Change = Callable[[ModuleType], None]


def settle_libraries() -> None:
    """Keep libraries imported from now on out of the working folder; can be called repeatedly."""
    if not any(isinstance(each, _Guard) for each in sys.meta_path):
        sys.meta_path.insert(0, _Guard())
    for name, value in compiled_code().items():
        os.environ.setdefault(name, value)


def compiled_code() -> dict[str, str]:
    """Environment variable that puts torch's compiled code into the user's cache folder.

    Empty if the user has no home folder.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        base = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # the user has no home folder
        return {}
    return {"TORCHINDUCTOR_CACHE_DIR": str(base / "winnow" / "torchinductor")}


def close_imported() -> None:
    """Keep libraries that are already imported out of the working folder."""
    settle_libraries()
    for name, change in _Guard.CHANGES.items():
        if name in sys.modules:
            change(sys.modules[name])


def _close_prefect(sources: ModuleType) -> None:
    if home := os.environ.get("PREFECT_HOME"):
        with suppress(OSError):  # Prefect's server reports it
            Path(home).mkdir(mode=0o700, parents=True, exist_ok=True)  # Prefect creates only one level
    sources.TomlConfigSettingsSourceBase._read_files = lambda *_, **__: {}
    vars(sources)["_get_profiles_path"] = lambda: _profiles_path(sources)


def _close_prefects_models(base: ModuleType) -> None:
    build = base.build_settings_config
    vars(base)["build_settings_config"] = lambda *args, **given: {**build(*args, **given), "env_file": None}
    left = [base.PrefectBaseSettings]
    while left:
        model = left.pop()
        model.model_config["env_file"] = None
        left += model.__subclasses__()


def _profiles_path(sources: ModuleType) -> Path:
    if named := os.environ.get("PREFECT_PROFILES_PATH"):
        return Path(named)
    home = os.environ.get("PREFECT_HOME")
    own = (Path(home) if home else Path(sources.DEFAULT_PREFECT_HOME)) / "profiles.toml"
    return own if home or own.exists() else Path(sources.DEFAULT_PROFILES_PATH)


def _close_wandb(settings: ModuleType) -> None:
    settings.Settings.settings_workspace = property(lambda self: os.devnull)


def _close_numba(config: ModuleType) -> None:
    vars(config)["_config_fname"] = os.devnull  # numba reads the file again later


def _nothing(module: ModuleType) -> None:
    """Change nothing, because settings read at import are not read again."""


class _Guard(MetaPathFinder):
    """Import hook that finds the affected modules as Python does, and changes them at import."""

    CHANGES: ClassVar[dict[str, Change]] = {
        "prefect.settings.sources": _close_prefect,
        "prefect.settings.base": _close_prefects_models,
        "wandb.sdk.wandb_settings": _close_wandb,
        "numba.core.config": _close_numba,
        "matplotlib": _nothing,
    }

    READ_AT_IMPORT: ClassVar[dict[str, str]] = {
        "numba.core.config": ".numba_config.yaml",
        "matplotlib": "matplotlibrc",
    }

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `MetaPathFinder`."""
        if name not in self.CHANGES:
            return None
        others = (each for each in sys.meta_path if each is not self)
        spec = next(filter(None, (each.find_spec(name, path, target) for each in others)), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Changing(spec.loader, self.CHANGES[name], self.READ_AT_IMPORT.get(name))
        return spec


class _Changing(Loader):
    """Loader that loads a module normally, and then changes it."""

    def __init__(self, own: Loader, change: Change, file: str | None) -> None:
        self._own = own
        self._change = change
        self._file = file

    def __getattr__(self, name: str) -> object:
        return getattr(self._own, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """See `Loader`."""
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """See `Loader`."""
        with _elsewhere(self._file):
            self._own.exec_module(module)
        self._change(module)


@contextmanager
def _elsewhere(file: str | None) -> Generator[None, None, None]:
    """If the working folder has the file, change to the root folder until the block ends.

    The change affects all threads.
    """
    if file is None or not os.path.lexists(file):
        yield
        return
    here = os.open(".", os.O_RDONLY)
    os.chdir("/")
    try:
        yield
    finally:
        os.fchdir(here)
        os.close(here)
