"""The environment for Prefect's import, set without importing anything slow."""

import logging
import os
from pathlib import Path

from winnow.tasks.plugins.library_settings import settle_libraries
from winnow.tasks.plugins.own_files import state_folder

TALKER = "EventsWorker"
"""A Prefect logger that no setting silences: at the end of a run it reports that events are being sent."""


def settle_environment(folder: Path | None = None) -> None:
    """Set Prefect's defaults for this process before its first import, keeping the user's settings.

    `folder` is for Prefect's files if the user has no own Prefect; None is the user's state folder of the
    working folder.
    """
    settle_libraries()
    has_own = "PREFECT_API_URL" in os.environ or "PREFECT_PROFILE" in os.environ
    if not has_own and not (Path.home() / ".prefect" / "profiles.toml").exists():
        os.environ.setdefault(
            "PREFECT_HOME", str(folder.absolute() if folder else state_folder() / "prefect")
        )
    if home := os.environ.get("PREFECT_HOME"):
        # These two would go to ~/.prefect wherever PREFECT_HOME is.
        os.environ.setdefault("PREFECT_SERVER_MEMO_STORE_PATH", str(Path(home) / "memo_store.toml"))
        os.environ.setdefault("PREFECT_RESULTS_LOCAL_STORAGE_PATH", str(Path(home) / "storage"))
    # What goes wrong is told in a sentence; Prefect would print its traceback beside it.
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    logging.getLogger(TALKER).setLevel(logging.CRITICAL)
    # Nobody here has agreed to tell Prefect of what they run, and its notice would stand amid the answer.
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")
