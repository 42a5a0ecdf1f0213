"""Alembic's settings, without an ini file: the migrations travel inside the package."""

from pathlib import Path

from alembic.config import Config

from storage.database import Database


def alembic_config(database: Database) -> Config:
    """The settings for migrating an open database."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["database"] = database
    return config
