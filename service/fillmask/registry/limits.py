"""Limits of the requests to a model, from the settings and the bundle."""

from fillmask.bundles.bundle import Bundle
from fillmask.errors import SettingsError
from fillmask.parameters.limits import Limits
from fillmask.settings import Settings

# a text with this many passes takes about 200 MB of memory while it waits
MAX_PASSES = 2**16
_NO_LIMIT = 2**62
_LIMITS = (
    "max_texts",
    "max_masks",
    "max_top_k",
    "max_body_bytes",
    "max_waiting_tokens",
    "max_bulk_tokens",
    "max_wait_ms",
)


def without_limits(settings: Settings) -> Settings:
    """Return the settings without the limits that protect a server from its clients.

    A command and a Python program bound their queued work themselves. Only the limit MAX_PASSES
    remains, which bounds the memory of a text.
    """
    return settings.model_copy(
        update={**dict.fromkeys(_LIMITS, _NO_LIMIT), "max_passes": MAX_PASSES}
    )


def limits_of(settings: Settings, bundle: Bundle) -> Limits:
    """Return the limits of the requests to a model.

    Raises:
        SettingsError: the model's longest text would not fit into the queue.
    """
    if settings.max_waiting_tokens < bundle.max_tokens:
        raise SettingsError(
            f"max_waiting_tokens must be at least {bundle.max_tokens}, the max_tokens of the "
            f"bundle (got {settings.max_waiting_tokens})."
        )
    ordinary_tokens = bundle.architecture.vocab_size - len(bundle.special_token_ids)
    return Limits(
        max_tokens=bundle.max_tokens,
        max_texts=settings.max_texts,
        max_masks=settings.max_masks,
        max_top_k=min(settings.max_top_k, ordinary_tokens),
        max_passes=settings.max_passes,
        max_body_bytes=settings.max_body_bytes,
    )
