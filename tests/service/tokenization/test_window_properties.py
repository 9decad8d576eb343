"""Windows of generated texts, compared with a search over all windows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fillmask.errors import InvalidRequestError
from fillmask.parameters.texts import TextPair
from fillmask.tokenization.encoded_text import EncodedWords
from fillmask.tokenization.encoded_tokens import EncodedTokens
from fillmask.tokenization.reader import TextReader
from fillmask.tokenization.windows import Window, split_into_windows, split_tokens
from tests.service.tiny import MASK_ID, MAX_TOKENS
from tests.service.tiny_calls import make_pair_tokenizer

MASK, WORD, START, END, BETWEEN = 1, 10, 2, 3, 4
Piece = tuple[bool, bool]  # whether a token is a mask, and whether it continues a word


@st.composite
def overlong_texts(draw: st.DrawFn) -> tuple[EncodedWords, int]:
    """Draw a single text or a pair with masks in the first text, and a maximum that it exceeds."""
    second = draw(st.integers(0, 6))
    is_mask = st.booleans() if draw(st.booleans()) else st.sampled_from([False] * 9 + [True])
    pieces: list[Piece] = draw(st.lists(st.tuples(is_mask, st.booleans()), min_size=1, max_size=60))
    if not any(one for one, _ in pieces):
        pieces[draw(st.integers(0, len(pieces) - 1))] = (True, False)
    own = [MASK if one else WORD + place for place, (one, _) in enumerate(pieces)]
    starts = [
        one or pieces[place - 1][0] or not continues
        for place, (one, continues) in enumerate(pieces)
    ]
    rest = [BETWEEN, *(100 + place for place in range(second)), END] if second else [END]
    fixed = len(rest) + 1
    ordinary = len(own) + second
    words = EncodedWords(
        input_ids=np.array([START, *own, *rest]),
        positions=np.array([*range(1, len(own) + 1), *(len(own) + 2 + i for i in range(second))]),
        spans=tuple((3 * i, 3 * i + 2) for i in range(ordinary)),
        words=np.array([*np.cumsum(starts), *(len(own) + 1 + i for i in range(second))]),
        parts=np.array([0] * len(own) + [1] * second),
        token_types=np.array([0] * (len(own) + 2) + [1] * (second + 1)) if second else None,
    )
    return words, fixed + draw(st.integers(1, max(1, len(own) - 1)))


@given(overlong_texts())
def test_windows_of_any_text(drawn: tuple[EncodedWords, int]) -> None:
    # Together the windows have all masks, in order. Each window is a part of the text between words
    # with the special tokens and the whole second text around it.
    words, max_tokens = drawn
    own = np.flatnonzero(words.parts == 0)
    masks = [i for i in own.tolist() if words.input_ids[words.positions[i]] == MASK]
    fixed = len(words.input_ids) - len(own)
    windows = split_into_windows(words, MASK, max_tokens)
    found: list[int] = []
    firsts: list[int] = []
    for window in windows:
        encoded = window.encoded
        start, end = _place(words, window)
        ids, after = words.input_ids.tolist(), 1 + len(own)
        assert encoded.input_ids.tolist() == [ids[0], *ids[1 + start : 1 + end], *ids[after:]]
        assert len(encoded.input_ids) <= max_tokens
        if words.token_types is None:
            assert encoded.token_types is None
        else:
            assert encoded.token_types is not None
            types = words.token_types.tolist()
            assert encoded.token_types.tolist() == [*types[: 1 + end - start], *types[after:]]
        inside = [start + int(position) - 1 for position in encoded.mask_positions]
        assert [words.spans[i] for i in inside] == list(encoded.mask_spans)
        room = max_tokens - fixed
        assert inside[-1] - inside[0] < max(1, room // 2)
        assert not found or inside[0] - firsts[-1] >= room // 2
        found += inside
        firsts.append(inside[0])
        assert (start, end) == _best_window(words.words[own].tolist(), inside, room)
    assert found == masks


READER = TextReader(make_pair_tokenizer(), MAX_TOKENS)
TOKENS = {"[MASK]": 1, "the": 1, "walks": 2, "dogs": 2, "zyx": 1, ".": 1}
TEXTS = st.lists(st.sampled_from(list(TOKENS)), max_size=50)
SPARE = st.integers(0, 2 * MAX_TOKENS) | st.integers(MAX_TOKENS - 5, MAX_TOKENS - 2)


@given(TEXTS, TEXTS, SPARE)
def test_windows_leave_room_for_any_fill(first: list[str], second: list[str], spare: int) -> None:
    # A fill of 1 + spare tokens in place of a mask fits into the model's input.
    text = TextPair(" ".join(first), " ".join(second)) if second else " ".join(first)
    second_tokens = sum(TOKENS[word] for word in second)
    fixed = 2 + bool(second) + second_tokens
    is_long = fixed + sum(TOKENS[word] for word in first) + spare > MAX_TOKENS
    invalid_pair = "[MASK]" in second or second_tokens > MAX_TOKENS // 2
    refused = "[MASK]" not in (*first, *second) or (
        is_long and (invalid_pair or fixed + 1 + spare > MAX_TOKENS)
    )
    if refused:
        with pytest.raises(InvalidRequestError, match=r"inputs.* (mask|windows)"):
            READER.read_windows(text, "inputs", spare)
        return
    windows = READER.read_windows(text, "inputs", spare)
    spans = [span for window in windows for span in window.encoded.mask_spans]
    assert [str(text)[start:end] for start, end in spans] == ["[MASK]"] * str(text).count("[MASK]")
    for window in windows:
        ids = window.encoded.input_ids
        assert len(ids) + spare <= MAX_TOKENS
        assert (ids[window.encoded.mask_positions] == MASK_ID).all()


def _place(words: EncodedWords, window: Window) -> tuple[int, int]:
    """Return the first token of a window's text and the token after it."""
    assert window.span is not None
    return (
        [start for start, _ in words.spans].index(window.span[0]),
        [end for _, end in words.spans].index(window.span[1]) + 1,
    )


def _best_window(words: list[int], masks: list[int], room: int) -> tuple[int, int]:
    """Return the longest window between words that loses at most half of each side's context."""
    first, last = masks[0], masks[-1] + 1
    before = (room - (last - first)) // 2
    low = max(0, min(first - before, len(words) - room))
    high = min(len(words), low + room)
    windows = [
        (start, end)
        for start in range(low, first + 1)
        for end in range(last, high + 1)
        if start == 0 or words[start] != words[start - 1]
        if end == len(words) or words[end - 1] != words[end]
        if start - low <= (first - low) // 2
        if high - end <= (high - last) // 2
    ]
    starts, ends = ({one[side] for one in windows} for side in (0, 1))
    return min(starts, default=low), max(ends, default=high)


@given(st.lists(st.booleans(), min_size=1, max_size=90), st.integers(4, 40), st.booleans())
def test_windows_of_tokens(continues: list[bool], most: int, typed: bool) -> None:  # noqa: FBT001 - drawn
    # Together the windows keep each token once, in order. Each has the special tokens around it.
    count = len(continues)
    ids = np.array([START, *range(WORD, WORD + count), END])
    positions = np.arange(1, count + 1)
    names, spans = [""] * count, [(place, place + 1) for place in range(count)]
    types = ids % 7 if typed else None
    parts = np.zeros(count, np.int64)
    tokens = EncodedTokens(ids, positions, names, spans, [False, *continues[1:]], parts, types)
    windows = split_tokens(tokens, most)
    kept = [one.input_ids[one.kept].tolist() for one in windows]
    assert [token for part in kept for token in part] == ids[1:-1].tolist()
    room = most - 2
    for one in windows:
        assert len(one.input_ids) <= most
        assert (one.input_ids[0], one.input_ids[-1]) == (START, END)
        assert (np.diff(one.input_ids[1:-1]) == 1).all()
        if one.token_types is not None:
            assert (one.token_types[1:-1] == one.input_ids[1:-1] % 7).all()
        # context, except near the ends of the text
        first, last = one.input_ids[one.kept[0]], one.input_ids[one.kept[-1]]
        if first > WORD:
            assert one.kept[0] - 1 >= room // 8
        if last < WORD + count - 1:
            assert len(one.input_ids) - 2 - one.kept[-1] >= room // 8
    assert len(windows) <= max(1, 1 + -(-(count - room) // max(1, room // 2)))
