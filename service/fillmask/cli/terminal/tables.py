"""Tables of the results of each task."""

from collections.abc import Iterator, Sequence

from fillmask.cli.terminal.style import (
    BAR_CELLS,
    BOLD,
    DIM,
    GAP,
    Style,
    cells,
    cells_of,
    format_bar,
    format_number,
    visible,
)
from fillmask.tasks.classify.results import LabelScore
from fillmask.tasks.fill_mask.results import Fill, TargetFill
from fillmask.tasks.score.results import TextScore
from fillmask.tasks.sparse.results import SparseEmbedding

_MIN_TEXT_CELLS = 16


def format_fills(text: str, masks: Sequence[Sequence[Fill]], style: Style) -> Iterator[str]:
    """Format the fills of each mask, or the joint fills of all, as the lines of a table."""
    for number, fills in enumerate(masks, 1):
        if number > 1:
            yield ""
        if len(masks) > 1:
            yield style.apply(DIM, f"Mask {number}")
        if not fills:
            yield "No fills."
            continue
        if window := fills[0].window:
            yield style.apply(
                DIM, f"The model reads characters {window[0]} to {window[1]} of the text."
            )
        yield from _lines(text, fills, style)


def _lines(text: str, fills: Sequence[Fill], style: Style) -> Iterator[str]:
    tokens = [visible(fill.token_str) for fill in fills]
    sequences = [visible(fill.sequence) for fill in fills]
    place = _first_difference(text, fills[0].sequence)
    token_cells = max(map(cells, tokens))
    for fill, token, sequence in zip(fills, tokens, sequences, strict=True):
        numbers = [format_number(fill.score)]
        share = fill.score
        if isinstance(fill, TargetFill):
            share = fill.target_score
            numbers.append(format_number(share))
        bar = format_bar(share, style)
        head = GAP.join([*numbers, bar.ljust(BAR_CELLS)])
        padding = " " * (token_cells - cells(token))
        room = None
        if style.width is not None:
            room = style.width - len(head) - token_cells - 2 * len(GAP)
        shown = _shorten(sequence, place, room)
        yield f"{head}{GAP}{style.apply(BOLD, token)}{padding}{GAP}{shown}".rstrip()


def _first_difference(text: str, sequence: str) -> int:
    """Return the index of the first character that differs between two texts."""
    pairs = zip(text, sequence, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), len(text))


def _shorten(text: str, place: int, room: int | None) -> str:
    """Shorten a text to `room` cells around an index, or to nothing if `room` is too small."""
    if room is None or cells(text) <= room:
        return text
    if room < _MIN_TEXT_CELLS:
        return ""
    dots = "..."
    start = max(0, place - room // 3)
    shown = dots if start else ""
    used = len(shown)
    for character in text[start:]:
        used += cells_of(character)
        if used > room - len(dots):
            return shown + dots
        shown += character
    return shown


def format_labels(labels: Sequence[LabelScore], style: Style, *, has_logits: bool) -> Iterator[str]:
    """Format labels as the lines of a table. Logits have no bars."""
    for one in labels:
        label = style.apply(BOLD, visible(one.label))
        if has_logits:
            yield GAP.join([f"{one.score:9.4f}", label])
        else:
            bar = format_bar(one.score, style).ljust(BAR_CELLS)
            yield GAP.join([format_number(one.score), bar, label])


def format_scores(score: TextScore, style: Style) -> Iterator[str]:
    """Format a score as the lines of a table, where the highest surprisal has a full bar."""
    yield style.apply(
        DIM,
        f"Log-probability {score.log_prob:.4f}, pseudo-perplexity {score.pseudo_perplexity:.4f}. "
        "Surprisal of each token in bits:",
    )
    largest = max(token.surprisal for token in score.tokens)
    for token in score.tokens:
        share = token.surprisal / largest if largest > 0 else 0.0
        bar = format_bar(share, style).ljust(BAR_CELLS)
        name = style.apply(BOLD, visible(token.token_str))
        yield GAP.join([f"{token.surprisal:7.2f}", bar, name])


def format_weights(vector: SparseEmbedding, style: Style) -> Iterator[str]:
    """Format a sparse vector as the lines of a table, where the largest weight has a full bar."""
    weights = zip(vector.values.tolist(), vector.tokens, strict=True)
    ranked = sorted(weights, key=lambda one: -one[0])
    for weight, token in ranked:
        bar = format_bar(weight / ranked[0][0], style).ljust(BAR_CELLS)
        yield GAP.join([f"{weight:7.4f}", bar, style.apply(BOLD, visible(token))])
