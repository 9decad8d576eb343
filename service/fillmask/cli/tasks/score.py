"""The task score, which scores a text and its tokens."""

import json
from collections.abc import Iterator

from fillmask.cli.formats.output import Layout
from fillmask.cli.tasks.base import Done, TaskRows
from fillmask.cli.terminal.style import Style
from fillmask.cli.terminal.tables import format_scores
from fillmask.tasks.score.parameters import ScoreParameters
from fillmask.tasks.score.results import TextScore

_TOKEN = {
    "token": int,
    "token_str": str,
    "part": str,  # null for a single text
    "start": int,
    "end": int,
    "log_prob": float,
    "surprisal": float,
}
_TYPES = {"log_prob": float, "pseudo_perplexity": float, "tokens": [_TOKEN]}


class ScoreRows(TaskRows):
    """Score of a text and of its tokens."""

    _field = "score"

    def answer(self, result: TextScore) -> bytes:
        """Return a score without a rank, because each row is a separate request."""
        score = result.to_dict()
        del score["rank"]
        return json.dumps(score, ensure_ascii=False, separators=(",", ":")).encode()

    def layout(self, parameters: ScoreParameters, *, row_parameters: bool) -> Layout:  # noqa: ARG002 - for fills
        return Layout(self._field, _TYPES, json.loads, ("log_prob", "pseudo_perplexity"))

    def table(self, done: Done, style: Style) -> Iterator[str]:
        return format_scores(done.result, style)
