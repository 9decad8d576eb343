"""The task score, which scores a text and its tokens."""

import json
from collections.abc import Iterator

from fillmask.bundles.bundle import Bundle
from fillmask.cli.formats.output import Layout
from fillmask.cli.tasks.base import Done, Task
from fillmask.cli.terminal.style import Style
from fillmask.cli.terminal.tables import format_scores
from fillmask.models.served_model import ServedModel
from fillmask.parameters.texts import InputText
from fillmask.tasks.score.parameters import ScoreOptions, ScoreParameters
from fillmask.tasks.score.results import TextScore, scores_to_json

_CHARS_PER_TOKEN, _CHARS_PER_TARGET = 150, 22  # characters of a token's JSON, and of a target
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


class ScoreTask(Task):
    """Score of a text and of its tokens."""

    name = "score"
    parameters = ScoreParameters
    field = "score"

    async def run(
        self, model: ServedModel, text: InputText, options: ScoreOptions, label: str
    ) -> TextScore:
        [score] = await model.require_scoring().score([text], [options], label)
        assert isinstance(score, TextScore)  # noqa: S101 - the pipeline raises the errors of texts
        return score

    def response(self, result: TextScore) -> bytes:
        return scores_to_json([result], single=True)

    async def answer(self, result: TextScore) -> bytes:
        """Return a score without a rank, because each row is a separate request."""
        score = json.loads(self.response(result))
        del score["rank"]
        return json.dumps(score, ensure_ascii=False, separators=(",", ":")).encode()

    def layout(self, options: ScoreOptions, *, row_parameters: bool) -> Layout:  # noqa: ARG002 - for fills
        return Layout(self.field, _TYPES, json.loads, ("log_prob", "pseudo_perplexity"))

    def estimate_chars(self, bundle: Bundle, text: InputText, options: ScoreOptions) -> int:  # noqa: ARG002 - for masks
        """Count one token per character."""
        targets = _CHARS_PER_TARGET * len(options.targets or ())
        return len(text) * (1 + _CHARS_PER_TOKEN + targets)

    def table(self, done: Done, style: Style) -> Iterator[str]:
        return format_scores(done.result, style)
