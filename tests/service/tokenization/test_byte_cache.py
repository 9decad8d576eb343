"""Cache whose limit is a number of bytes."""

import threading

from fillmask.tokenization.byte_cache import ByteCache


def test_the_oldest_entries_are_dropped() -> None:
    # The limit counts bytes, not entries.
    cache: ByteCache[str, str] = ByteCache(100)
    for name in "abcd":
        cache.put(name, name.upper(), 30)
    assert cache.get("a") is None
    assert [cache.get(name) for name in "bcd"] == ["B", "C", "D"]
    assert cache.held_bytes == 90
    cache.put("e", "E", 70)
    assert [name for name in "bcde" if cache.get(name)] == ["d", "e"]
    assert (cache.held_bytes, len(cache)) == (100, 2)


def test_a_used_entry_stays() -> None:
    cache: ByteCache[str, int] = ByteCache(2)
    cache.put("a", 1, 1)
    cache.put("b", 2, 1)
    assert cache.get("a") == 1
    cache.put("c", 3, 1)
    assert (cache.get("a"), cache.get("b")) == (1, None)


def test_an_entry_above_the_limit_is_not_stored() -> None:
    # An entry above the limit would evict all other entries, and then itself.
    cache: ByteCache[str, int] = ByteCache(10)
    cache.put("a", 1, 5)
    cache.put("b", 2, 11)
    assert (cache.get("a"), cache.get("b")) == (1, None)


def test_a_replaced_entry_is_counted_once() -> None:
    # Two threads may store an entry under the same key.
    cache: ByteCache[str, int] = ByteCache(10)
    cache.put("a", 1, 5)
    cache.put("a", 2, 7)
    assert (cache.get("a"), cache.held_bytes) == (2, 7)


def test_threads_share_the_cache() -> None:
    cache: ByteCache[int, int] = ByteCache(1_000)

    def use(start: int) -> None:
        for number in range(start, start + 3_000):
            cache.put(number % 97, number, number % 90)
            cache.get((number * 7) % 97)

    threads = [threading.Thread(target=use, args=(i * 31,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.held_bytes == sum(size for _, size in cache._entries.values()) <= 1_000
