"""Tables of the results of each task."""

from collections.abc import Iterator, Sequence

from tqdm.utils import disp_len, disp_trim

from fillmask.cli.terminal.style import BOLD, DIM, GAP, Style, format_bar, format_number, visible
from fillmask.tasks.classify.results import LabelScore
from fillmask.tasks.fill_mask.results import Fill, TargetFill
from fillmask.tasks.score.results import TextScore
from fillmask.tasks.sparse.results import SparseEmbedding

_MIN_TEXT_CELLS, _DOTS = 16, "..."


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
    place = _first_difference(text, fills[0].sequence)
    token_cells = max(disp_len(visible(fill.token_str)) for fill in fills)
    for fill in fills:
        number, share = format_number(fill.score), fill.score
        if isinstance(fill, TargetFill):
            share = fill.target_score
            number += GAP + format_number(share)
        padding = " " * (token_cells - disp_len(visible(fill.token_str)))
        head = _line(number, share, fill.token_str, style) + padding + GAP
        room = None if style.width is None else style.width - disp_len(head)
        yield f"{head}{_shorten(visible(fill.sequence), place, room)}".rstrip()


def _line(number: str, share: float | None, name: str, style: Style) -> str:
    """Return a line with a bar for a share from 0 to 1, or without a bar."""
    bars = [] if share is None else [format_bar(share, style)]
    return GAP.join([number, *bars, style.apply(BOLD, visible(name))])


def _first_difference(text: str, sequence: str) -> int:
    """Return the index of the first character that differs between two texts."""
    pairs = zip(text, sequence, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), len(text))


def _shorten(text: str, place: int, room: int | None) -> str:
    """Shorten a text to `room` cells around an index, or to nothing if `room` is too small."""
    if room is None or disp_len(text) <= room:
        return text
    if room < _MIN_TEXT_CELLS:
        return ""
    start = max(0, place - room // 3)
    shown = _DOTS * bool(start) + text[start : start + room]
    return disp_trim(shown, room - len(_DOTS)) + _DOTS * (disp_len(shown) > room - len(_DOTS))


def format_labels(labels: Sequence[LabelScore], style: Style, *, has_logits: bool) -> Iterator[str]:
    """Format labels as the lines of a table. Logits have no bars."""
    for one in labels:
        if has_logits:
            yield _line(f"{one.score:9.4f}", None, one.label, style)
        else:
            yield _line(format_number(one.score), one.score, one.label, style)


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
        yield _line(f"{token.surprisal:7.2f}", share, token.token_str, style)


def format_weights(vector: SparseEmbedding, style: Style) -> Iterator[str]:
    """Format a sparse vector as the lines of a table, where the largest weight has a full bar."""
    weights = zip(vector.values.tolist(), vector.tokens, strict=True)
    ranked = sorted(weights, key=lambda one: -one[0])
    for weight, token in ranked:
        yield _line(f"{weight:7.4f}", weight / ranked[0][0], token, style)
