"""Mutations of JSON documents, which keep most mutants valid JSON.

Random bytes rarely pass a parser. These mutations change values, names and the structure of the
parsed document instead, so that the inputs reach the code behind the parser.
"""

import json
import string
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

MutateBytes = Callable[[bytes], bytes]

_BYTES_SHARE, _DUPLICATE_SHARE, _HUGE_SHARE = 0.1, 0.03, 0.002
_MANY, _HUGE = 40, 20_000
_NUMBERS = (0, 1, -1, 2, 5, 255, 2**31, 2**32, 2**63, -(2**63) - 1, 10**30, 10**400)
_FLOATS = (0.5, -0.0, 1.0, 5.0, 1e308, 1e-320, float("inf"), float("nan"))
_CHARACTERS = (
    *(*string.ascii_letters, *string.digits, *string.punctuation, *" \t\n\r\0\x7f"),
    *("é", "ß", "İ", "中", "😀", "\u0301", "\u200b", "\u202e", "\ufeff", "\ud800", "▁", "Ġ"),
)


def mutate_json(
    data: bytes, draw: Random, words: Sequence[str], mutate_bytes: MutateBytes
) -> bytes:
    """Return a changed document. Mutate the bytes instead if the document is not JSON.

    Args:
        words: names of fields and other texts that may enter the document.
        mutate_bytes: function that mutates bytes.
    """
    document = None if draw.random() < _BYTES_SHARE else _parse(data)
    if document is None:
        return mutate_bytes(data)
    root = [document]  # a list, so that the document itself has a place
    try:
        for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 5))):
            _mutate_once(root, draw, words)
    except (RecursionError, ValueError):  # the document is too deep, or a number too long to write
        return mutate_bytes(data)
    return _write(root[0], draw)


def cross_json(data: bytes, other: bytes, draw: Random) -> bytes:
    """Return a document with a value of another document in place of one of its own."""
    document, source = _parse(data), _parse(other)
    if document is None or source is None:
        middle = draw.randrange(len(data) + 1)
        return data[:middle] + other[middle:]
    root, given = [document], [source]
    holder, place = _choose(root, draw)
    from_holder, from_place = _choose(given, draw)
    holder[place] = from_holder[from_place]
    return _write(root[0], draw)


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _write(document: object, draw: Random) -> bytes:
    try:
        text = json.dumps(document, ensure_ascii=draw.random() < 0.5)
    except (ValueError, RecursionError):  # a number with too many digits
        return b"[" * draw.randrange(1, _HUGE)
    if '": ' in text and draw.random() < _DUPLICATE_SHARE:
        end = draw.choice([i for i in range(len(text)) if text.startswith('": ', i)]) + 3
        start = text.rfind('"', 0, end - 3)
        text = f"{text[:end]}0, {text[start:]}"
    return text.encode(errors="surrogatepass")


def _choose(root: Any, draw: Random) -> tuple[Any, Any]:
    """Return a random place in a document, as a list or an object and its index or name."""
    places: list[tuple[Any, Any]] = []
    left = [root]
    while left:
        holder = left.pop()
        names = range(len(holder)) if isinstance(holder, list) else list(holder)
        for name in names:
            places.append((holder, name))
            if isinstance(holder[name], list | dict):
                left.append(holder[name])
    # a document may consist of a long list, whose entries would hide the places outside it
    return draw.choice(places[:50] if draw.random() < 0.3 else places)


def _mutate_once(root: list[Any], draw: Random, words: Sequence[str]) -> None:
    holder, place = _choose(root, draw)
    value = holder[place]
    kind = draw.random()
    if kind < 0.15:
        holder[place] = _new_value(draw, words)
    elif kind < 0.25:
        other, at = _choose(root, draw)
        holder[place] = json.loads(json.dumps(other[at]))  # a copy without cycles
    elif kind < 0.35 and holder is not root:
        del holder[place]
    elif kind < 0.4 and isinstance(holder, dict):
        holder[_new_text(draw, words)] = holder.pop(place)
    else:
        holder[place] = _changed(value, draw, words)


def _changed(value: Any, draw: Random, words: Sequence[str]) -> Any:
    """Return a value that resembles the given value."""
    kind = draw.random()
    if kind < _HUGE_SHARE:
        changed = _many(value, draw, draw.randrange(_HUGE))
    elif kind < 0.05:
        changed = _many(value, draw, draw.randrange(_MANY))
    elif isinstance(value, bool) or value is None:
        changed = draw.choice([not value, 0, 1, None])
    elif isinstance(value, int):
        changed = draw.choice([value + 1, value - 1, -value, value * 2, float(value % 2**53)])
    elif isinstance(value, float):
        changed = draw.choice([-value, value * 2, value + 1, *_FLOATS])
    elif isinstance(value, str):
        changed = _changed_text(value, draw, words)
    elif isinstance(value, dict):
        changed = value | {_new_text(draw, words): _new_value(draw, words)}
    else:
        changed = [*value, _new_value(draw, words)] if draw.random() < 0.5 else value * 2
    return changed


def _changed_text(text: str, draw: Random, words: Sequence[str]) -> str:
    start = draw.randrange(len(text) + 1)
    end = min(len(text), start + draw.choice((0, 0, 1, 1, 2, 5)))
    inserted: str = draw.choice(["", draw.choice(_CHARACTERS), draw.choice(_CHARACTERS)])
    if draw.random() < 0.2:
        inserted = _new_text(draw, words)
    return text[:start] + inserted + text[end:]


def _many(value: Any, draw: Random, count: int) -> Any:
    """Return many copies of a value, many different values, or a deep value."""
    kind = draw.randrange(5)
    if kind == 0:
        return [value] * min(count, 1 + _HUGE // (1 + len(json.dumps(value))))
    if kind == 1:
        return [str(number) for number in range(count)]
    if kind == 2:
        return {str(number): number for number in range(count)}
    if kind == 3:
        return "".join(draw.choices(_CHARACTERS, k=7)) * (count // 7)
    for _ in range(min(count, 900)):
        value = [value]
    return value


def _new_value(draw: Random, words: Sequence[str]) -> Any:
    def text() -> str:
        return _new_text(draw, words)

    def value() -> Any:
        return _new_value(draw, words)

    makers: tuple[Callable[[], Any], ...] = (
        lambda: draw.choice((None, True, False)),
        lambda: draw.choice(_NUMBERS),
        lambda: draw.choice(_FLOATS),
        lambda: draw.randrange(64),
        text,
        text,
        lambda: [value() for _ in range(draw.randrange(3))],
        lambda: {text(): value() for _ in range(draw.randrange(3))},
    )
    return draw.choice(makers)()


def _new_text(draw: Random, words: Sequence[str]) -> str:
    if words and draw.random() < 0.8:
        return draw.choice(words)
    return "".join(draw.choices(_CHARACTERS, k=draw.randrange(4)))
