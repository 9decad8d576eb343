"""Limits of the requests to a model, from the settings and the bundle."""

from pathlib import Path
from typing import Any

from fillmask.bundles.bundle import Bundle
from fillmask.bundles.discovery import directory_to_load
from fillmask.errors import InvalidRequestError, SettingsError
from fillmask.parameters.limits import MAX_LOCAL_PASSES, Limits
from fillmask.parameters.values import describe, integer_of
from fillmask.settings import MAX_THREADS, Settings

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
    """Return the settings of one bundle, without the limits that protect a server from its clients.

    A command and a Python program bound their queued work themselves. Only MAX_LOCAL_PASSES
    remains, which bounds the memory of a text.
    """
    changes = {"max_passes": MAX_LOCAL_PASSES, "bundle": directory_to_load(settings.bundle)}
    return settings.model_copy(update={**dict.fromkeys(_LIMITS, _NO_LIMIT), **changes})


def local_settings(path: Path | None, threads: int | None) -> Settings:
    """Return the settings of a model in Python, which don't depend on environment variables.

    Raises:
        InvalidRequestError: `threads` is invalid.
    """
    chosen: dict[str, Any] = {} if path is None else {"bundle": path}
    if threads is not None:
        number = integer_of(threads)
        if number is None or not 1 <= number <= MAX_THREADS:
            raise InvalidRequestError(
                f"threads must be a whole number from 1 to {MAX_THREADS} (got {describe(threads)})."
            )
        chosen["threads"] = number
    return without_limits(Settings.model_construct(**chosen))


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
        top_k_cure="; raise FILLMASK_MAX_TOP_K" if settings.max_top_k < ordinary_tokens else "",
    )
