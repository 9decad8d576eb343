"""Cache whose limit is a number of bytes."""

from collections import OrderedDict

from hypothesis import given
from hypothesis import strategies as st

from fillmask.tokenization.byte_cache import ByteCache

STEPS = st.lists(st.tuples(st.sampled_from("abcde"), st.integers(1, 12) | st.none()))


@given(STEPS)
def test_the_least_recently_used_entries_are_dropped(steps: list[tuple[str, int | None]]) -> None:
    # The limit counts bytes, not entries. A replaced entry counts once, and one above the limit
    # would evict all others.
    cache: ByteCache[str, int] = ByteCache(10)
    expected: OrderedDict[str, int] = OrderedDict()
    for key, size_bytes in steps:
        if size_bytes is None:
            assert cache.get(key) == expected.get(key)
            if key in expected:
                expected.move_to_end(key)
        else:
            cache.put(key, size_bytes, size_bytes)
            if size_bytes <= 10:
                expected[key] = size_bytes
                expected.move_to_end(key)
            while sum(expected.values()) > 10:
                expected.popitem(last=False)
        assert (cache.held_bytes, len(cache)) == (sum(expected.values()), len(expected))
        assert list(cache._entries) == list(expected)  # the next ones to drop first
