"""Windows around the masks of a text that exceeds the model's input.

Masks that are near each other share a window. A window has as much text before its masks as after
its masks, except near the start and the end of the text. Each window starts and ends between words,
unless a word takes half of its side.
Each mask is in one window.

Shapes: T tokens of a text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fillmask.arrays import IntArray, int_array
from fillmask.tokenization.encoded_text import EncodedText, EncodedWords
from fillmask.tokenization.encoded_tokens import EncodedTokens


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A part of a text that the model reads in one pass.

    Attributes:
        encoded: tokens of the window. The spans of its masks count characters of the whole text.
        span: start and end of the window in the text, in characters. None means the whole text.
    """

    encoded: EncodedText
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TokenWindow:
    """A part of a text whose tokens the model labels in one pass.

    Attributes:
        input_ids: (W,) int64, including special tokens.
        token_types: (W,) int64 token types. None if all tokens have type 0.
        kept: positions in input_ids of the tokens that have most context in this window.
    """

    input_ids: IntArray
    token_types: IntArray | None
    kept: IntArray


def split_tokens(tokens: EncodedTokens, max_tokens: int) -> list[TokenWindow]:
    """Divide a text into overlapping windows, which together keep each ordinary token once.

    Neighbouring windows share half of their tokens, so a token has at least about a quarter of a
    window as context on each side, except near the ends of the text. Windows begin between words.

    Args:
        max_tokens: maximum length of a window in tokens, including special tokens.
    """
    ordinary, ids = len(tokens.positions), tokens.input_ids
    if len(ids) <= max_tokens:
        return [TokenWindow(ids, tokens.token_types, tokens.positions)]
    first, last = int(tokens.positions[0]), int(tokens.positions[-1])
    room = max_tokens - len(ids) + ordinary
    words = np.cumsum(np.logical_not(tokens.continues))
    starts = [0]
    while starts[-1] + room < ordinary:
        place = min(starts[-1] + max(1, room // 2), ordinary - room)
        starts.append(_word_boundary(words, place, place + room // 4))
    ends = [min(start + room, ordinary) for start in starts]
    # in the middle of what two windows share
    seams = [
        0,
        *((start + end) // 2 for start, end in zip(starts[1:], ends, strict=False)),
        ordinary,
    ]
    windows = []
    for start, end, (begin, stop) in zip(starts, ends, pairwise(seams), strict=True):
        chosen = np.r_[0:first, first + start : first + end, last + 1 : len(ids)]
        types = None if tokens.token_types is None else tokens.token_types[chosen]
        windows.append(TokenWindow(ids[chosen], types, np.arange(begin, stop) - start + first))
    return windows


def split_into_windows(words: EncodedWords, mask_token_id: int, max_tokens: int) -> list[Window]:
    """Split an overlong text into windows, in the order of the masks.

    Each window of a pair contains the whole second text. All masks are in the first text.

    Args:
        max_tokens: maximum length of a window in tokens, including special tokens.
    """
    own = np.flatnonzero(words.parts == 0)
    first, last = int(words.positions[own[0]]), int(words.positions[own[-1]])
    room = max_tokens - len(words.input_ids) + len(own)
    masks = np.flatnonzero(words.input_ids[words.positions[own]] == mask_token_id).tolist()
    windows = []
    for group in _group_masks(masks, room):
        start, end = _place_window(group, words.words[own], room)
        kept = np.r_[0:first, first + start : first + end, last + 1 : len(words.input_ids)]
        types = words.token_types
        windows.append(
            Window(
                EncodedText(
                    input_ids=words.input_ids[kept],
                    mask_positions=int_array(group) - start + first,
                    mask_spans=tuple(words.spans[mask] for mask in group),
                    token_types=None if types is None else types[kept],
                ),
                (words.spans[start][0], words.spans[end - 1][1]),
            )
        )
    return windows


def _group_masks(masks: Sequence[int], room: int) -> Iterator[list[int]]:
    """Group masks that share a window. At least a quarter of the window is free on each side."""
    group: list[int] = []
    for mask in masks:
        if group and mask - group[0] >= room // 2:
            yield group
            group = []
        group.append(mask)
    yield group


def _place_window(group: Sequence[int], words: IntArray, room: int) -> tuple[int, int]:
    """Return the start and end of a group's window, in tokens, at word boundaries.

    A side loses at most half of its context to the boundary.
    """
    spare = room - (group[-1] + 1 - group[0])
    start = max(0, group[0] - spare // 2)
    end = min(len(words), start + room)
    start = max(0, end - room)
    last = len(words) - 1
    reversed_end = _word_boundary(words[::-1], len(words) - end, last - group[-1])
    return _word_boundary(words, start, group[0]), len(words) - reversed_end


def _word_boundary(words: IntArray, place: int, mask: int) -> int:
    """Return the first place, up to halfway to a mask, at which a word begins, or this place."""
    boundary = place
    while 0 < boundary < mask and words[boundary] == words[boundary - 1]:
        boundary += 1
    return boundary if boundary - place <= (mask - place) // 2 else place
