"""A look at a checkpoint's folder before an expensive loader is started on it."""

from pathlib import Path

from winnow.tasks.engines.errors import EngineLoadFailed
from winnow.tasks.engines.protocol import ModelRef


def refuse_missing_checkpoint(model: ModelRef) -> None:
    """Refuse a local path that holds no checkpoint; what may be an id on the hub is left to the loader.

    Raises:
        EngineLoadFailed: If `model.model` is a path without a readable checkpoint.
    """
    folder = Path(model.model)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise EngineLoadFailed(
                model.name, f"the folder {folder} holds no config.json; name the folder of a saved checkpoint"
            )
    elif not _may_be_hub_id(model.model):
        raise EngineLoadFailed(
            model.name, f"there is no folder {folder}; check the path of the checkpoint or where you started"
        )


def both_readings(model: ModelRef) -> str:
    """What to say before a loader's complaint of a model that may be a mistyped path or an id on the hub.

    Empty where there is a folder. Else a loader speaks of the hub alone, which nobody may have meant.
    """
    folder = Path(model.model)
    if folder.is_dir():
        return ""
    return (
        f"there is no folder {folder.absolute()}, and as an id on the hub {model.model!r} cannot be loaded; "
        "correct the path, or see that the hub has it and can be reached: "
    )


def _may_be_hub_id(model: str) -> bool:
    return bool(model) and not model.startswith((".", "/", "~")) and model.count("/") <= 1
