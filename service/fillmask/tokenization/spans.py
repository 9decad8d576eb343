"""Spans of tokens in a text or in the joined text of a pair, in characters."""

from collections.abc import Iterable, Iterator

from tokenizers import Encoding

from fillmask.parameters.texts import InputText


def positions_of(ids: list[int], token_id: int) -> Iterator[int]:
    """Yield the ascending positions of a token. list.index is ten times as fast as a loop."""
    position = -1
    for _ in range(ids.count(token_id)):
        position = ids.index(token_id, position + 1)
        yield position


def token_spans(
    text: InputText, encoding: Encoding, positions: Iterable[int]
) -> tuple[tuple[int, int], ...]:
    """Return the spans of tokens in a text, or in the joined text of a pair."""
    offsets = encoding.offsets
    if isinstance(text, str):
        return tuple([_trim(text, *offsets[p]) for p in positions])
    sequence_ids, joined, starts = encoding.sequence_ids, str(text), (0, text.second_start)
    return tuple(
        _trim(joined, *(starts[sequence_ids[p] or 0] + offset for offset in offsets[p]))
        for p in positions
    )


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without the white space that some tokenizers include in a token."""
    span = text[start:end]
    if span.isspace():
        return start, end
    return start + len(span) - len(span.lstrip()), end - (len(span) - len(span.rstrip()))
