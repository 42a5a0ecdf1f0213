"""How many examples a property that is slow to check tries, in the suite and in `make fuzz`."""

from hypothesis import settings


def tries(in_suite: int, **others: object) -> settings:
    """Settings of a property that tries so many examples where others try 100, and more in `make fuzz`."""
    return settings(max_examples=max(1, in_suite * settings().max_examples // 100), **others)
