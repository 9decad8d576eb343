"""What the model sees of a text that is longer than it reads: windows around the masks.

Masks that are near each other share a window, and each window is placed so that its masks have as
much text before them as behind. It begins and ends between words, and never leaves out a mask.

Shapes: T tokens of a text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from service.arrays import IntArray
from service.tokenization.tokenizer import EncodedText, EncodedWords


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A part of a text.

    Attributes:
        encoded: as the model reads it; its spans are places in the whole text.
        part: its first character in the text and the one after its last; None for all of it.
    """

    encoded: EncodedText
    part: tuple[int, int] | None = None


def windows(words: EncodedWords, mask_token_id: int, max_tokens: int) -> list[Window]:
    """The windows of a text that is too long, in the order of their masks.

    Args:
        words: the whole text.
        mask_token_id: the mask.
        max_tokens: longest window, special tokens included.
    """
    own = words.input_ids[words.positions]
    first, last = int(words.positions[0]), int(words.positions[-1])
    before, after = words.input_ids[:first], words.input_ids[last + 1 :]
    room = max_tokens - len(before) - len(after)
    masks = np.flatnonzero(own == mask_token_id).tolist()
    found = []
    for group in _groups(masks, room):
        start, end = _placed(group, words.words, room)
        found.append(
            Window(
                EncodedText(
                    input_ids=np.concatenate([before, own[start:end], after]),
                    mask_positions=np.array(group, dtype=np.int64) - start + len(before),
                    mask_spans=tuple(words.spans[mask] for mask in group),
                ),
                (words.spans[start][0], words.spans[end - 1][1]),
            )
        )
    return found


def _groups(masks: Sequence[int], room: int) -> Iterator[list[int]]:
    """Masks that share a window: at least a quarter of it is left on each side of them."""
    group: list[int] = []
    for mask in masks:
        if group and mask - group[0] >= max(1, room // 2):
            yield group
            group = []
        group.append(mask)
    yield group


def _placed(group: Sequence[int], words: IntArray, room: int) -> tuple[int, int]:
    """First token of a group's window and the one after its last, on both sides between words."""
    spare = room - (group[-1] + 1 - group[0])
    start = max(0, group[0] - spare // 2)
    end = min(len(words), start + room)
    start = max(0, end - room)
    while 0 < start < group[0] and words[start] == words[start - 1]:
        start += 1
    while group[-1] + 1 < end < len(words) and words[end - 1] == words[end]:
        end -= 1
    return start, end
