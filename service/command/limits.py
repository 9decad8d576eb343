"""What the command may be asked for: who asks is who waits, so nearly anything."""

from service.bundles.bundle import Bundle
from service.settings import Settings
from service.tasks.options import Limits

# what a row of so many passes takes in memory while it waits is some 200 MB
MAX_PASSES = 2**16
_NO_LIMIT = 2**62


def without_limits(settings: Settings) -> Settings:
    """The settings without the limits that protect a service from its callers.

    How much waits at a time is bounded by the command itself.
    """
    return settings.model_copy(
        update={
            "max_masks": _NO_LIMIT,
            "max_passes": MAX_PASSES,
            "max_waiting_tokens": _NO_LIMIT,
            "max_patient_tokens": _NO_LIMIT,
            "max_wait_ms": _NO_LIMIT,
        }
    )


def limits_of(bundle: Bundle) -> Limits:
    """What parameters are checked against: all words of the model may be asked for."""
    return Limits(
        max_tokens=bundle.max_tokens,
        max_texts=1,
        max_masks=_NO_LIMIT,
        max_top_k=bundle.architecture.vocab_size - len(bundle.special_token_ids),
        max_passes=MAX_PASSES,
        max_body_bytes=_NO_LIMIT,
    )
