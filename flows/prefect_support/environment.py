"""Set environment variables before Prefect is imported, without importing anything slow."""

import logging
import os
from pathlib import Path

from winnow.tasks.plugins.library_settings import settle_libraries
from winnow.tasks.plugins.own_files import state_folder

TALKER = "EventsWorker"
"""Name of a Prefect logger that no setting silences; it logs at a run's end that events are being sent."""


def settle_environment(folder: Path | None = None) -> None:
    """Set defaults for Prefect in this process, before its first import; the user's settings are kept.

    Args:
        folder: Folder for Prefect's files, unless the user has a Prefect of their own. None is a folder in
            the user's state folder that belongs to the working folder.
    """
    settle_libraries()
    has_own = "PREFECT_API_URL" in os.environ or "PREFECT_PROFILE" in os.environ
    if not has_own and not (Path.home() / ".prefect" / "profiles.toml").exists():
        os.environ.setdefault(
            "PREFECT_HOME", str(folder.absolute() if folder else state_folder() / "prefect")
        )
    if home := os.environ.get("PREFECT_HOME"):
        # By default these two are in ~/.prefect, even if PREFECT_HOME is set.
        os.environ.setdefault("PREFECT_SERVER_MEMO_STORE_PATH", str(Path(home) / "memo_store.toml"))
        os.environ.setdefault("PREFECT_RESULTS_LOCAL_STORAGE_PATH", str(Path(home) / "storage"))
    # Winnow reports errors in one sentence; Prefect would also print a traceback.
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    logging.getLogger(TALKER).setLevel(logging.CRITICAL)
    # Users have not agreed to send usage data to Prefect, and its notice would appear within the answer.
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")
