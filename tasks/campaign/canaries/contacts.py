"""What a running campaign knows of the servers that it has met: whether each serves what it served before."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """A served model as it was found at the first contact of this process."""

    epoch: int
    """How often its answers have changed since it was first known: texts of other epochs are another
    model's."""
    canary_id: int | None
    """What its texts are stored with; None where it gave no answer to compare."""


@dataclass(slots=True)
class Contacts:
    """The served models that were met, by name and by what and where they are."""

    by_name: dict[str, Contact] = field(default_factory=dict)
    by_place: dict[tuple[str, str], Contact] = field(default_factory=dict)
    """By `served_model` and URL of the server."""

    def epoch(self, name: str) -> int:
        """The epoch of a model; 0 where it is not served."""
        return self.by_name[name].epoch if name in self.by_name else 0

    def canary_id(self, name: str) -> int | None:
        """The canary that a text of a model is stored with."""
        return self.by_name[name].canary_id if name in self.by_name else None

    def is_unknown(self, name: str) -> bool:
        """Whether a model is served, and nobody can say whether it is what it was."""
        return name in self.by_name and self.by_name[name].canary_id is None
