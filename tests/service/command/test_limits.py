"""Limits: those of a service are not those of a person's own command."""

from service.bundles.bundle import read_bundle
from service.command.limits import MAX_PASSES, limits_of, without_limits
from service.settings import Settings
from tests.service.tiny import SPECIAL, VOCABULARY, Tiny


def test_all_words_of_the_model_may_be_asked_for(tiny: Tiny) -> None:
    """Special tokens are none."""
    limits = limits_of(read_bundle(tiny.path))
    assert limits.max_top_k == len(VOCABULARY) - len(SPECIAL)
    assert limits.max_passes == MAX_PASSES


def test_nothing_is_refused_as_too_much(tiny: Tiny) -> None:
    """What is of the model stays as it was set."""
    before = Settings(bundle=tiny.path, threads=3, max_batch_tokens=77, max_waiting_tokens=1)
    after = without_limits(before)
    assert (after.bundle, after.threads, after.max_batch_tokens) == (tiny.path, 3, 77)
    assert min(after.max_waiting_tokens, after.max_patient_tokens, after.max_masks) > 2**40
    assert before.max_waiting_tokens == 1
