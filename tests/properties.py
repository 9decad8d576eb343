"""Numbers of examples for property-based tests."""

from hypothesis import settings


def examples(share: float) -> settings:
    """Return a decorator that runs a share of the profile's examples, for costly properties."""
    return settings(max_examples=max(1, round(share * settings().max_examples)))
