"""Plug-ins that a program names itself, beside those that installed packages name by entry points."""

from importlib.metadata import EntryPoint, entry_points

_registered: dict[tuple[str, str], "Registered"] = {}


class Registered(EntryPoint):
    """An object of a running program, found by its name as those of installed packages are.

    Attributes:
        source: The text that defines it.
    """

    def __init__(self, name: str, group: str, plugin: object, *, value: str, source: str) -> None:
        super().__init__(name=name, value=value, group=group)
        vars(self).update(plugin=plugin, source=source)  # entry points refuse to be changed

    def load(self) -> object:
        """Return the object."""
        return vars(self)["plugin"]


def register(entry: Registered) -> None:
    """Have an entry found from now on, in the place of an earlier one of its name."""
    _registered[entry.group, entry.name] = entry


def plugins(group: str) -> dict[str, EntryPoint]:
    """Every plug-in of a group by its name; what this program registered comes before what is installed."""
    installed = {entry.name: entry for entry in entry_points(group=group)}
    ours = {name: entry for (of_group, name), entry in _registered.items() if of_group == group}
    return installed | ours
