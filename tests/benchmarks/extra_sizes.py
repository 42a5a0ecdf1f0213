"""Sizes of Winnow and of its extras: files of the packages that are installed here, by their metadata.

Run it with: .venv/bin/python -m tests.benchmarks.extra_sizes
"""

from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME = "winnow-llm"


def closure(requirements: Iterable[Requirement]) -> dict[str, Distribution | None]:
    """All packages that these requirements need, by name; None for one that is not installed here."""
    found: dict[str, Distribution | None] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    left = list(requirements)
    while left:
        wanted = left.pop()
        key = (canonicalize_name(wanted.name), frozenset(wanted.extras))
        if key in seen:
            continue
        seen.add(key)
        try:
            found[key[0]] = package = distribution(wanted.name)
        except PackageNotFoundError:
            found[key[0]] = None
            continue
        left += needed(package, wanted.extras)
    return found


def needed(package: Distribution, extras: Iterable[str]) -> list[Requirement]:
    """What a package with some of its extras requires on this machine."""
    parsed = map(Requirement, package.requires or ())
    names = [*extras, ""]
    return [
        each
        for each in parsed
        if each.marker is None or any(each.marker.evaluate({"extra": name}) for name in names)
    ]


def size(package: Distribution) -> int:
    """Bytes of a package's files, compiled ones left out."""
    files = [package.locate_file(each) for each in package.files or () if each.suffix != ".pyc"]
    return sum(each.stat().st_size for each in files if each.is_file())


def main() -> None:
    """Print the packages and megabytes of the base, and what each extra adds to it."""
    ours = distribution(NAME)
    base = closure(needed(ours, []))
    total = sum(size(each) for each in base.values() if each is not None)
    print(f"base: {len(base)} packages, {total / 1e6:.0f} MB")
    for extra in sorted(ours.metadata.get_all("Provides-Extra") or ()):
        added = {name: each for name, each in closure(needed(ours, [extra])).items() if name not in base}
        missing = sorted(name for name, each in added.items() if each is None)
        more = sum(size(each) for each in added.values() if each is not None)
        note = f"; not installed here: {', '.join(missing)}" if missing else ""
        print(f"{extra}: {len(added)} packages, {more / 1e6:.0f} MB{note}")


if __name__ == "__main__":
    main()
